// Level collectives: a program of two ranks on stand-ins for CUDA and NCCL is recorded without CUPTI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "profiling/analysis/ranks.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/recording/nccl_timer.h"
#include "profiling/recording/record_environment.h"
#include "profiling/recording/record_keys.h"
#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"
#include "tests/profiling/recording/recorded_run.h"
#include "tests/profiling/recording/cuda_stand_in.h"

namespace ws::prof {
namespace {

TEST(RecordCollectives, TwoRanksAreOneRunThatNamesTheLateRank) {
  const std::string file = ::testing::TempDir() + "collectives-" + std::to_string(getpid()) + ".wsrun";
  const std::string begin = std::to_string(steady_ns() + 500'000'000);
  const std::string rank = std::string(NCCL_PROGRAM) + " " + begin;
  const RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off};
  RecordedProgram program({"sh", "-c", "export WORLD_SIZE=2; RANK=0 " + rank + " & RANK=1 " + rank + " && wait $!"}, file, options);
  ASSERT_EQ(exit_status(program), 0);
  ASSERT_EQ(program.paths(), std::vector{file});
  RunFileReader reader(file);
  RunData run;
  run.trace = reader.trace(), run.summary = reader.summary();
  reader.fill(run.trace);
  EXPECT_EQ(run.summary.device, "2 × Stand-in");
  EXPECT_EQ(run.summary.extra["traced"], "Traces steps, ranges and the collectives of NCCL; no kernels and no calls.");
  EXPECT_TRUE(run.summary.extra.contains(kCollectivesInGraphs));
  size_t calls = 0;
  for (const Track& track : run.trace.tracks()) {
    EXPECT_FALSE(on_gpu(track)) << "nothing is said of kernels";
    if (!times_collectives(track)) continue;
    EXPECT_EQ(track.name, "collectives");
    calls += track.spans;
  }
  EXPECT_EQ(calls, 2u * 2 * 60) << "what was captured, was in progress or was called by another way is not there";
  const RankReport report = rank_report(run);
  ASSERT_EQ(report.collectives.size(), 2u);
  const bool first = report.collectives[0].name == "AllReduce";
  const CollectiveRow& reduce = report.collectives[first ? 0 : 1];
  EXPECT_EQ(reduce.name, "AllReduce");
  EXPECT_EQ(reduce.bytes, (4u << 20) + (4u << 18)) << "a group is one kernel";
  EXPECT_NEAR(reduce.transfer, 200, 20 + 2 * report.clock_error_us) << "the ranks' clocks";
  EXPECT_EQ(report.straggler.rank, 1);
  EXPECT_EQ(report.straggler.every, 10);
  EXPECT_NEAR(report.straggler.late_us, 3000, 60 + 2 * report.clock_error_us);
  EXPECT_GT(report.clock_error_us, 0);
  EXPECT_FALSE(report.computation);
  EXPECT_TRUE(std::isnan(report.exposed_us));
  EXPECT_EQ(to_text(report).find("exposed"), std::string::npos);
  std::filesystem::remove(file);
}

// An NCCL of an unknown version, and one that is switched off: nothing is redirected, and the run says why.
TEST(RecordCollectives, AnUnknownNcclIsLeftAlone) {
  const std::string file = ::testing::TempDir() + "unknown-nccl-" + std::to_string(getpid()) + ".wsrun";
  const RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off};
  for (const char* setting : {"WARPSIGHT_NCCL_VERSION=30100", "WARPSIGHT_WITHOUT=nccl"}) {
    const std::string begin = std::to_string(steady_ns() + 500'000'000);
    const std::string rank = std::string("export WORLD_SIZE=2; RANK=0 ") + NCCL_PROGRAM + " " + begin + " & RANK=1 " + NCCL_PROGRAM + " " + begin;
    RecordedProgram program({"sh", "-c", std::string("export ") + setting + "; " + rank + "; code=$?; wait $!; exit $code"}, file, options);
    ASSERT_EQ(exit_status(program), 4) << "the program sees that its calls are not timed";
    RunFileReader reader(file);
    const Trace trace = reader.trace();
    for (const Track& track : trace.tracks()) EXPECT_FALSE(times_collectives(track) && track.spans > 0) << setting;
    RunSummary summary = reader.summary();
    const std::string why = summary.extra[kCollectivesUnseen];
    EXPECT_TRUE(why.starts_with("NCCL 3.1 is not one that is known here") || why.starts_with("WARPSIGHT_WITHOUT switches nccl off")) << why;
    std::filesystem::remove(file);
  }
}

// Two ranks whose capture ranges share 5 of 10 steps. The program's runtime calls the driver through pointers of its own.
TEST(RecordCollectives, OnlyCaptureRangesAreRecorded) {
  const std::string file = ::testing::TempDir() + "captures-" + std::to_string(getpid()) + ".wsrun";
  const std::string begin = std::to_string(steady_ns() + 500'000'000);
  const std::string rank = std::string(NCCL_PROGRAM) + " " + begin + " captures";
  const RecordOptions options{
      .level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off, .captures = true};
  RecordedProgram program({"sh", "-c", "export WORLD_SIZE=2; RANK=0 " + rank + " & RANK=1 " + rank + " && wait $!"}, file, options);
  ASSERT_EQ(exit_status(program), 0);
  RunFileReader reader(file);
  RunData run;
  run.trace = reader.trace(), run.summary = reader.summary();
  reader.fill(run.trace);
  EXPECT_EQ(run.summary.said(kCaptureCountKey), "3");
  EXPECT_EQ(run.summary.said(kNeverCaptured), "");
  std::map<int, uint64_t> calls, gaps;
  for (const Track& track : run.trace.tracks()) {
    if (times_collectives(track)) calls[track.rank] += track.spans;
    if (untraced(track)) gaps[track.rank] += track.spans;
  }
  EXPECT_EQ(calls, (decltype(calls){{0, 60}, {1, 60}})) << "a group and a broadcast in 30 steps, with what was said of them before";
  EXPECT_EQ(gaps, (decltype(gaps){{0, 2}, {1, 2}}));
  const RankReport report = rank_report(run);
  ASSERT_EQ(report.collectives.size(), 2u);
  for (const RankRow& row : report.ranks) EXPECT_EQ(row.collectives, 2u * 15) << "of the steps that both ranks have";
  std::filesystem::remove(file);
}

// What the first call of a kind has said holds for the next ones, until a communicator ends.
TEST(RecordCollectives, EachCallHasItsBytesAndItsCommunicator) {
  const std::string file = ::testing::TempDir() + "again-" + std::to_string(getpid()) + ".wsrun";
  const RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off};
  RecordedProgram program({"env", "RANK=0", NCCL_PROGRAM, "0", "again"}, file, options);
  ASSERT_EQ(exit_status(program), 0);
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::map<std::pair<std::string, uint64_t>, int> calls;
  for (const Track& track : trace.tracks())
    if (track.name == "collectives")
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        const Detail& said = trace.detail(span.detail);
        ++calls[{said.copy_kind, said.bytes}];
      });
  const std::string first = "Broadcast · 2 ranks · communicator 9f1c", second = "Broadcast · 2 ranks · communicator ab12";
  EXPECT_EQ(calls, (decltype(calls){{{first, 64}, 2}, {{first, 192}, 1}, {{second, 64}, 2}, {{second, 192}, 1}}));
  std::filesystem::remove(file);
}

TEST(RecordCollectives, AMessageReportsWhoSendsAndWhoReceives) {
  const std::string file = ::testing::TempDir() + "messages-" + std::to_string(getpid()) + ".wsrun";
  const RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off};
  RecordedProgram program({"env", "RANK=1", NCCL_PROGRAM, "0", "messages"}, file, options);
  ASSERT_EQ(exit_status(program), 0);
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::map<std::string, int> calls;
  for (const Track& track : trace.tracks())
    if (track.name == "collectives")
      each_span(track, -kAlways, kAlways, [&](const Span& span) { ++calls[trace.detail(span.detail).copy_kind]; });
  EXPECT_EQ(calls, (decltype(calls){{"Recv · 4 ranks · communicator 9f1c · 0 → 1", 3},
                                    {"Send · 4 ranks · communicator 9f1c · 1 → 2", 3},
                                    {"Send · 4 ranks · communicator 9f1c · 1 → 3", 3}}));
  std::filesystem::remove(file);
}

TEST(RecordCollectives, AProgramThatLooksNcclUpItselfIsSeen) {
  const std::string file = ::testing::TempDir() + "opens-" + std::to_string(getpid()) + ".wsrun";
  const RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .python = PythonLevel::Off};
  RecordedProgram program({"env", "RANK=0", NCCL_PROGRAM, "0", "opens"}, file, options);
  ASSERT_EQ(exit_status(program), 0) << "5: another look-up of the program gave something else";
  RunFileReader reader(file);
  const Trace trace = whole_trace(reader);
  std::map<uint64_t, int> calls;
  for (const Track& track : trace.tracks())
    if (track.name == "collectives")
      each_span(track, -kAlways, kAlways, [&](const Span& span) { ++calls[trace.detail(span.detail).bytes]; });
  EXPECT_EQ(calls, (decltype(calls){{4u << 20, 3}, {64, 3}, {4u << 18, 3}})) << "looked up later, and before the recording began";
  EXPECT_EQ(reader.summary().said(kCollectivesUnseen), "");
  std::filesystem::remove(file);
}

TEST(RecordCollectives, WhatNeedsCuptiIsRefused) {
  RecordOptions options{.level = TraceLevel::Collectives, .library = INJECT_LIBRARY, .counters = true};
  EXPECT_THROW(record_environment(options, "/tmp/none.wsrun"), Failure);
  options.counters = false, options.window = "200ms/5s";
  EXPECT_THROW(check_options(options), Failure);
  options.level = TraceLevel::Full;
  EXPECT_NO_THROW(check_options(options));
  options.captures = true;
  EXPECT_THROW(check_options(options), Failure) << "either the clock or the program";
  EXPECT_EQ(usual_python_level(TraceLevel::Collectives), PythonLevel::Steps);
  EXPECT_EQ(record_level("collectives"), TraceLevel::Collectives);
  EXPECT_THROW(trace_level("collectives"), Failure) << "a training has other levels";
}

// The stand-in driver of this process.
class Timer : public ::testing::Test {
 protected:
  Timer() {
    EXPECT_TRUE(find_cuda_events(cuda_));
    context_.origin = steady_ns();
  }
  std::vector<Span> drawn() {
    Trace trace;
    append(trace, context_.batch.finish());
    std::vector<Span> spans;
    for (const Track& track : trace.tracks()) each_span(track, -kAlways, kAlways, [&](const Span& span) { spans.push_back(span); });
    losses_ += trace.losses.dropped_records;
    return spans;
  }
  CudaEvents cuda_;
  TraceContext context_;
  uint64_t losses_ = 0;
};

TEST_F(Timer, PlacesCallsOnTheClockOfTheHost) {
  NcclTimer timer(cuda_);
  EXPECT_FALSE(timer.begin_call(stand_in_stream()).gpu) << "nothing is recorded yet";
  EXPECT_EQ(timer.open(true), "");
  timer.begin(context_);
  void* const stream = stand_in_stream();
  const int64_t at = steady_ns() + 200'000'000;  // later than a busy machine comes to the first look
  const uint32_t first_step = ProgramRanges::instance().open_step();
  Marks::instance().configure({.ranges = true});
  for (int i = 0; i < 3; ++i) {
    stand_in_busy_until(stream, at + i * 10'000'000);
    const NcclTimer::Call call = timer.begin_call(stream);
    stand_in_busy_until(stream, at + i * 10'000'000 + 500'000);
    timer.end_call(call, {});
    if (i == 0) ProgramRanges::instance().step(-1);
  }
  timer.drain(false);
  EXPECT_TRUE(drawn().empty()) << "none is complete";
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at + 21'000'000)));
  timer.drain(true);
  const std::vector<Span> spans = drawn();
  ASSERT_EQ(spans.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const Span& span = spans[static_cast<size_t>(i)];
    EXPECT_NEAR(static_cast<double>(span.start + context_.origin - at), i * 1e7, 1e6);
    EXPECT_NEAR(static_cast<double>(span.duration), 5e5, 1e3);
    EXPECT_EQ(span.span_meaning(), Meaning::Communication);
    EXPECT_EQ(span.step, i == 0 ? 0u : 1u + first_step) << "as the program counts, whatever thread calls";
  }
  EXPECT_NEAR(static_cast<double>(spans[2].start - spans[0].start), 2e7, 1e3) << "differences do not depend on the host";
  EXPECT_EQ(timer.device().compute, "9.0");
  Marks::instance().configure({});
  timer.end();
  EXPECT_FALSE(timer.begin_call(stream).gpu);
}

// A machine that is busy interrupts the reading of the two clocks, so that the GPU seems to be 0.9 ms early.
TEST_F(Timer, AnInterruptedReadingOfTheClocksIsSaidOrNotUsed) {
  static int64_t pause = 0;
  static decltype(cuda_.event_record) real_record = cuda_.event_record;
  cuda_.event_record = [](void* event, void* stream) {
    const int answer = real_record(event, stream);
    for (const int64_t until = steady_ns() + pause; steady_ns() < until;) {}
    return answer;
  };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  void* const stream = stand_in_stream();
  double error = 0, calls = 0;
  const auto call_and_read = [&](int64_t pause_of_reading) {
    pause = 0;
    const int64_t at = steady_ns();
    stand_in_busy_until(stream, at);
    timer.end_call(timer.begin_call(stream), {});
    pause = pause_of_reading;
    timer.drain(true);
    const std::vector<Span> spans = drawn();
    ASSERT_EQ(spans.size(), 1u);
    error += std::abs(static_cast<double>(spans[0].start + context_.origin - at)), ++calls;
  };
  const auto half_width = [&] { return static_cast<double>(context_.gpu_clock.width) / 2; };
  call_and_read(900'000);
  EXPECT_GT(half_width(), 400e3);
  call_and_read(0);
  EXPECT_LE(error / calls, half_width() + 1e3);
  const double before = half_width();
  call_and_read(900'000);
  EXPECT_LE(half_width(), before + 1e3) << "the reading before it says more";
  EXPECT_LE(error / calls, half_width() + 1e3);
}

TEST_F(Timer, ACallWaitsForTheFirstReadingOfTheClocks) {
  static bool creates = true;
  static decltype(cuda_.event_create) real_create = cuda_.event_create;
  cuda_.event_create = [](void** event, unsigned flags) { return creates ? real_create(event, flags) : 2; };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  timer.end_call(timer.begin_call(stand_in_stream()), {});
  creates = false;
  timer.drain(false);
  EXPECT_TRUE(drawn().empty());
  creates = true;
  timer.drain(true);
  EXPECT_EQ(drawn().size(), 1u);
  EXPECT_LT(context_.gpu_clock.width, 1'000'000) << "the first anchor's time is not measured";
}

TEST_F(Timer, AsksForTheContextOfAStreamOnceUntilARecordFails) {
  static int asked = 0, failures = 0;
  static decltype(cuda_.stream_context) real_context = cuda_.stream_context;
  static decltype(cuda_.event_record) real_record = cuda_.event_record;
  cuda_.stream_context = [](void* stream, void** context) {
    ++asked;
    return real_context(stream, context);
  };
  cuda_.event_record = [](void* event, void* stream) {
    if (failures == 0) return real_record(event, stream);
    --failures;
    return 400;
  };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  void* const stream = stand_in_stream();
  for (int i = 0; i < 3; ++i) timer.end_call(timer.begin_call(stream), {});
  EXPECT_EQ(asked, 1);
  failures = 1;  // as if the stream had ended
  EXPECT_TRUE(timer.begin_call(stream).gpu);
  EXPECT_EQ(asked, 2);
  failures = 2;
  EXPECT_FALSE(timer.begin_call(stream).gpu);
  EXPECT_TRUE(timer.begin_call(stream).gpu);
  EXPECT_EQ(asked, 4);
}

TEST_F(Timer, AfterAnErrorOfTheGpuItAsksNothingMore) {
  static int queries = 0;
  cuda_.event_query = [](void*) {
    ++queries;
    return 700;
  };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  void* const stream = stand_in_stream();
  timer.end_call(timer.begin_call(stream), {});
  for (int i = 0; i < 5; ++i) timer.drain(false);
  EXPECT_TRUE(drawn().empty());
  EXPECT_EQ(losses_, 1u);
  EXPECT_LE(queries, 2);
  EXPECT_FALSE(timer.begin_call(stream).gpu);
}

TEST_F(Timer, AGpuThatCompletesNothingGetsABoundedNumberOfEvents) {
  static int made = 0;
  cuda_.event_query = [](void*) { return CudaEvents::kNotReady; };
  cuda_.event_create = [](void** event, unsigned) {
    *event = new std::int64_t(++made);
    return 0;
  };
  cuda_.event_record = [](void*, void*) { return 0; };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  void* const stream = stand_in_stream();
  for (int i = 0; i < 40'000; ++i) timer.end_call(timer.begin_call(stream), {});
  timer.drain(true);
  EXPECT_TRUE(drawn().empty());
  EXPECT_LT(made, 33'000);
  EXPECT_GE(losses_, 39'000u);
}

TEST_F(Timer, AfterABurstOfCallsTheNextOnesAreTimed) {
  static bool complete = false;
  cuda_.event_query = [](void*) { return complete ? 0 : CudaEvents::kNotReady; };
  cuda_.event_record = [](void*, void*) { return 0; };
  cuda_.event_elapsed = [](float* ms, void*, void*) {
    *ms = 1;
    return 0;
  };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  void* const stream = stand_in_stream();
  const auto burst = [&] {
    for (int i = 0; i < 20'000; ++i) timer.end_call(timer.begin_call(stream), {});
    timer.drain(true);
    return timer.counts().records;
  };
  EXPECT_EQ(burst(), 0u) << "nothing is complete yet";
  complete = true;
  timer.drain(true);
  const uint64_t first = timer.counts().records;
  EXPECT_GT(first, 16'000u);
  EXPECT_GT(burst(), first + 16'000) << "their events are free again";
}

TEST_F(Timer, ACallThatIsNotCompleteYetWaits) {
  static void* late = nullptr;
  cuda_.event_query = [](void*) { return 0; };
  cuda_.event_record = [](void*, void*) { return 0; };
  cuda_.event_elapsed = [](float* ms, void*, void* end) {
    *ms = 1;
    return end == late ? CudaEvents::kNotReady : 0;
  };
  NcclTimer timer(cuda_);
  timer.begin(context_);
  const NcclTimer::Call first = timer.begin_call(stand_in_stream()), second = timer.begin_call(first.stream);
  late = first.begin;
  timer.end_call(first, {}), timer.end_call(second, {});
  timer.drain(true);
  EXPECT_EQ(timer.counts().records, 1u);
  late = nullptr;
  timer.drain(true);
  EXPECT_EQ(timer.counts().records, 2u);
}

}  // namespace
}  // namespace ws::prof
