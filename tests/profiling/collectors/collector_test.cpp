// The host side of a collector, which needs no GPU: marks of a program become spans, memory events and counts.
#include "profiling/collectors/collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "profiling/trace/span_walk.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/clock.h"
#include "profiling/cupti/pool_questions.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/pool_sizes.h"
#include "profiling/base/failure.h"
#include "profiling/cupti/gpu_source.h"

namespace ws::prof {
namespace {

OpTag test_ops() {
  static const OpTag first = register_ops({{"gemm1", "", "fc1", "forward", Meaning::Matrix, 10, 20},
                                           {"relu1", "", "fc1", "forward", Meaning::Pointwise, 1, 2}});
  return first;
}

void train(int steps) {
  for (int step = 0; step < steps; ++step) {
    const StepScope step_scope(step);
    const PhaseScope phase("forward");
    const OpScope gemm(test_ops());
    const OpScope relu(static_cast<OpTag>(test_ops() + 1));
  }
}

Trace gather(const CollectorOptions& options, const std::function<void(Collector&)>& work) {
  Collector collector;
  Trace trace;
  collector.start(options);
  work(collector);
  collector.stop();
  for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) append(trace, std::move(batch));
  return trace;
}

size_t spans(const Trace& trace, TrackKind kind) {
  size_t count = 0;
  for (const Track& track : trace.tracks()) count += track.kind == kind ? track.spans : 0;
  return count;
}

TEST(Collector, MarksBecomeNestedSpans) {
  const Trace trace = gather({.level = TraceLevel::Kernels}, [](Collector&) { train(100); });
  EXPECT_EQ(spans(trace, TrackKind::Steps), 100u);
  EXPECT_EQ(spans(trace, TrackKind::Phases), 100u);
  EXPECT_EQ(spans(trace, TrackKind::CpuThread), 200u);
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::CpuThread) continue;
    const Span& span = track.blocks.front().spans.front();
    EXPECT_EQ(trace.name(span.name), track.depth == 0 ? "gemm1" : "relu1");
    EXPECT_EQ(span.span_meaning(), track.depth == 0 ? Meaning::Matrix : Meaning::Pointwise);
    EXPECT_EQ(trace.ops[span.op].layer, "fc1");
    EXPECT_EQ(span.step, 1u);
  }
}

// A recording that began before the program started CUDA goes on with the GPU's records.
class LateGpu final : public GpuTracer {
 public:
  std::string open(bool inside_driver_start) override { opened += inside_driver_start; return ""; }
  void begin(TraceContext& now) override { context = &now; }
  void apply(const GpuKinds& kinds, bool) override { kernels = kinds.kernels; hide_calls = kinds.hide_calls; }
  void finish() override { ++finished; }
  void drain(bool last) override {
    if (!last) return;
    Span span;
    span.start = 10, span.duration = 5, span.kind = static_cast<uint64_t>(SpanKind::Kernel);
    span.name = context->batch.id(context->batch.name("kernel"));
    context->batch.row(TrackKind::Stream, "stream 7", "GPU 0").spans.push_back(span);
  }
  Device device() const override { return {"a card", "13.0", "9.0"}; }
  int device_number() const override { return 0; }
  ClockOffset calibrate_clock() override { return {}; }
  GpuCounts counts() const override { return {}; }
  void end() override { context = nullptr; }
  int opened = 0, finished = 0;
  bool kernels = false, hide_calls = false;
  TraceContext* context = nullptr;
};
LateGpu& late_gpu() {
  static LateGpu gpu;
  return gpu;
}

TEST(Collector, AGpuThatComesLaterIsRecordedFromThen) {
  late_gpu() = LateGpu();
  CollectorOptions options{.level = TraceLevel::Full, .inside_driver_start = true, .gpu_later = true};
  options.gpu.tracer = []() -> GpuTracer* { return &late_gpu(); };
  const Trace trace = gather(options, [](Collector& collector) {
    EXPECT_FALSE(collector.status().gpu);
    EXPECT_NE(collector.status().sentence.find("has not started CUDA"), std::string::npos);
    train(10);
    EXPECT_EQ(late_gpu().opened, 0);
    collector.add_gpu();
    collector.add_gpu();  // the driver of another thread
    EXPECT_TRUE(collector.status().gpu);
    EXPECT_TRUE(late_gpu().kernels);
    train(10);
  });
  EXPECT_EQ(late_gpu().opened, 1);
  EXPECT_EQ(late_gpu().finished, 1);
  EXPECT_EQ(spans(trace, TrackKind::Steps), 20u) << "nothing of before is lost";
  EXPECT_EQ(spans(trace, TrackKind::Stream), 1u);
}

// The first work on the GPU begins the clock: in a closed window nobody would see it.
TEST(Collector, AGpuThatComesLaterFindsTheWindowOpen) {
  late_gpu() = LateGpu();
  CollectorOptions options{.level = TraceLevel::Full, .inside_driver_start = true, .gpu_later = true};
  options.flush_ms = 5;
  options.gpu.tracer = []() -> GpuTracer* { return &late_gpu(); };
  options.clock = clock_window("10ms/5s");
  gather(options, [](Collector& collector) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it shuts
    collector.add_gpu();
    EXPECT_FALSE(late_gpu().hide_calls);
  });
}

TEST(Collector, StepsLevelLeavesOpsOut) {
  const Trace trace = gather({.level = TraceLevel::Steps}, [](Collector&) { train(10); });
  EXPECT_EQ(spans(trace, TrackKind::Steps), 10u);
  EXPECT_EQ(spans(trace, TrackKind::CpuThread), 0u);
}

TEST(Collector, AWindowOfStepsIsTracedAndTheRestSaySo) {
  const CollectorOptions options{.level = TraceLevel::Graph, .node_window = 3, .node_every = 10, .flush_ms = 20};
  const Trace trace = gather(options, [](Collector& collector) {
    for (int step = 0; step < 45; ++step) {
      const StepScope step_scope(step);
      const OpScope gemm(test_ops());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (collector.status().gpu) {
      EXPECT_NE(collector.status().sentence.find("3 of every 10"), std::string::npos);
    }
  });
  EXPECT_EQ(spans(trace, TrackKind::Steps), 45u) << "the marks of steps cost next to nothing";
  std::vector<std::pair<TimeNs, TimeNs>> untraced;
  std::vector<uint32_t> traced;
  std::vector<Span> steps;
  for (const Track& track : trace.tracks())
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (track.kind == TrackKind::CpuThread) traced.push_back(span.step - 1);
      if (track.kind == TrackKind::Steps) steps.push_back(span);
      if (track.kind == TrackKind::Untraced) untraced.emplace_back(span.start, span.end());
    });
  ASSERT_EQ(traced.size(), 15u);
  for (const uint32_t step : traced) EXPECT_LT(step % 10, 3u);
  for (const Span& step : steps) {
    const TimeNs middle = step.start + static_cast<TimeNs>(step.duration / 2);
    const bool named = std::ranges::any_of(untraced, [&](auto u) { return u.first <= middle && middle <= u.second; });
    EXPECT_EQ(named, (step.step - 1) % 10 >= 3) << "step " << step.step - 1;
  }
  const StepSample sample = StepsOfRun::of(trace).sample();
  // Two whole steps of each window. What a busy machine holds up for much longer than the rest counts as a pause.
  std::vector<TimeNs> lengths;
  for (size_t i = 1; i < steps.size(); ++i) lengths.push_back(steps[i].start - steps[i - 1].start);
  std::ranges::sort(lengths);
  const TimeNs usual = lengths[lengths.size() / 2];
  const auto held_up = std::ranges::count_if(lengths, [usual](TimeNs length) { return length > 4 * usual; });
  EXPECT_LE(sample.parts.steps, 10);
  EXPECT_GE(sample.parts.steps, 10 - held_up);
  ASSERT_FALSE(sample.work.empty());
  EXPECT_NEAR(sample.work.begin()->second.count, 1, 1e-9);
}

// Where there is a GPU the first window waits for its first work: see the tests there.
TEST(Collector, AWindowByTheClockNeedsNoSteps) {
  CollectorOptions options{.level = TraceLevel::Kernels, .flush_ms = 20};
  options.clock = clock_window("60ms/180ms");
  bool gpu = false;
  const Trace trace = gather(options, [&](Collector& collector) {
    gpu = collector.status().gpu;
    for (int i = 0; i < 450; ++i) {
      const PhaseScope phase("forward");
      const OpScope gemm(test_ops());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  if (gpu) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(spans(trace, TrackKind::Phases), 450u) << "marks go on";
  std::vector<std::pair<TimeNs, TimeNs>> pauses;
  size_t outside = 0, inside = 0;
  int64_t rested = 0;
  for (const Track& track : trace.tracks())
    if (untraced(track))
      each_span(track, -kAlways, kAlways, [&](const Span& s) {
        pauses.emplace_back(s.start, s.end()), rested += static_cast<int64_t>(s.duration);
      });
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::CpuThread)
      each_span(track, -kAlways, kAlways, [&](const Span& s) {
        const TimeNs middle = s.start + static_cast<TimeNs>(s.duration / 2);
        ++(std::ranges::any_of(pauses, [&](auto r) { return r.first < middle && middle < r.second; }) ? inside
                                                                                                     : outside);
      });
  EXPECT_GT(outside, 50u);
  EXPECT_LT(inside, 20u) << "only what was on its way when the window closed";
  EXPECT_LT(outside + inside, 300u);
  const int64_t all = trace.last_time() - trace.first_time();
  EXPECT_GT(rested, all * 4 / 10);
  EXPECT_LT(rested, all * 8 / 10);
}

TEST(ClosedTimes, AreKnownForAWhileAfterwards) {
  ClosedTimes closed;
  EXPECT_FALSE(closed.at(5));
  closed.open(1);
  EXPECT_FALSE(closed.at(0));
  closed.close(100);
  EXPECT_TRUE(closed.at(100) && closed.at(1'000'000)) << "until it opens";
  EXPECT_FALSE(closed.at(99));
  closed.open(200);
  closed.close(300), closed.open(400);
  for (const auto& [time, was] :
       {std::pair{99, false}, {150, true}, {199, true}, {200, false}, {299, false}, {300, true}, {400, false}})
    EXPECT_EQ(closed.at(time), was) << time;
  for (int i = 0; i < 5000; ++i) closed.close(1000 + 2 * i), closed.open(1001 + 2 * i);
  EXPECT_TRUE(closed.at(1000 + 2 * 4500));
  EXPECT_FALSE(closed.at(1001 + 2 * 4500));
}

TEST(PoolSizes, RecordsAndAnswersOfOnePoolAreNotCountedTwice) {
  PoolSizes pools;
  const PoolAnswer first{0xa0, {100, 60}}, second{0xb0, {50, 20}};
  EXPECT_EQ(pools.asked({}), std::nullopt) << "nobody uses one";
  EXPECT_EQ(pools.asked(std::array{first, second}), (PoolSize{150, 80}));
  EXPECT_EQ(pools.recorded(0xa0, {100, 70}), (PoolSize{150, 90})) << "the other one is still there";
  EXPECT_EQ(pools.recorded(0xc0, {8, 8}), (PoolSize{158, 98}));
  EXPECT_EQ(pools.destroyed(0xb0), (PoolSize{108, 78}));
}

TEST(PoolSizes, AnswersReportPoolsThatRecordsLack) {
  PoolSizes pools;
  pools.asked(std::array{PoolAnswer{0xa0, {100, 60}}, PoolAnswer{0xb0, {50, 20}}});
  pools.recorded(0xa0, {100, 70});
  EXPECT_EQ(pools.asked(std::array{PoolAnswer{0xa0, {100, 1}}, PoolAnswer{0xb0, {50, 30}}}), std::nullopt);
  EXPECT_EQ(pools.recorded(0xa0, {100, 71}), (PoolSize{150, 101})) << "the record's 71, the answer's 30";
  EXPECT_EQ(pools.asked(std::array{PoolAnswer{0xa0, {100, 2}}}), std::nullopt);
  EXPECT_EQ(pools.recorded(0xa0, {100, 72}), (PoolSize{100, 72})) << "the other one is gone";
  pools.destroyed(0xa0);
  EXPECT_EQ(pools.asked(std::array{PoolAnswer{0xa0, {100, 2}}, PoolAnswer{1, {0, 0}}}), std::nullopt);
  EXPECT_EQ(pools.asked(std::array{PoolAnswer{1, {0, 0}}}), PoolSize{}) << "asked of before it was destroyed";
}

TEST(PoolSizes, NamesThatOnlyRecordsUseStandForThemselves) {
  PoolSizes pools;
  const std::array answers{PoolAnswer{0xa0, {100, 60}}};
  EXPECT_EQ(pools.recorded(1, {100, 50}), (PoolSize{100, 50}));
  EXPECT_EQ(pools.asked(answers), std::nullopt) << "records have just spoken, and know the moment";
  EXPECT_EQ(pools.asked(answers), (PoolSize{100, 60})) << "they are silent now";
  EXPECT_EQ(pools.recorded(1, {100, 55}), (PoolSize{100, 55}));
  EXPECT_EQ(pools.asked({}), std::nullopt);
  EXPECT_EQ(pools.asked({}), std::nullopt) << "not heard of any more is not gone";
}

// A pool is destroyed while the driver is asked: about another one, which is nobody's business, or about this one.
TEST(PoolQuestions, WhoDestroysAPoolWaitsForTheQuestionAboutItAlone) {
  using std::chrono::milliseconds;
  constexpr milliseconds kShort{5}, kLong{20'000};
  PoolQuestions questions;
  ASSERT_TRUE(questions.begin(1));
  EXPECT_TRUE(questions.leave(2, kLong));
  EXPECT_FALSE(questions.begin(2)) << "it is being destroyed";
  questions.left(2);
  EXPECT_TRUE(questions.may_go_on());
  EXPECT_FALSE(questions.leave(1, kShort)) << "and no longer than that";
  EXPECT_FALSE(questions.may_go_on());
  questions.left(1);
  std::atomic<bool> answered{false}, early{false};
  std::thread destroyer([&] {
    early = !questions.leave(1, kLong) || !answered;
    questions.left(1);
  });
  while (questions.may_go_on()) std::this_thread::yield();
  answered = true;
  questions.end();
  destroyer.join();
  EXPECT_FALSE(early);
  EXPECT_TRUE(questions.begin(1)) << "another pool with the same handle";
}

// Which pool a device uses is known only once the driver says: until then it may be any.
TEST(PoolQuestions, APoolThatIsNotKnownYetMayBeAny) {
  PoolQuestions questions;
  questions.begin_unknown();
  EXPECT_FALSE(questions.leave(7, std::chrono::milliseconds(5)));
  EXPECT_FALSE(questions.known_as(7)) << "it goes: nothing more is asked about it";
  EXPECT_TRUE(questions.leave(8, std::chrono::milliseconds(5)));
  questions.begin_unknown();
  EXPECT_TRUE(questions.known_as(9));
  EXPECT_TRUE(questions.leave(10, std::chrono::milliseconds(5)));
  EXPECT_FALSE(questions.leave(9, std::chrono::milliseconds(5)));
}

TEST(Collector, CountersThatCannotBeSampledSayWhy) {
  Collector collector;
  const CollectorStatus status = collector.start({.gpu = cupti_gpu_source(), .level = TraceLevel::Steps, .hardware_counters = true});
  EXPECT_FALSE(status.counters.empty());
  if (!status.gpu) {
    EXPECT_EQ(status.counters.rfind("No hardware counters: ", 0), 0u) << status.counters;
  }
  collector.stop();
}

TEST(Collector, OffListensToNothing) {
  const Trace trace = gather({.level = TraceLevel::Off}, [](Collector& collector) {
    EXPECT_EQ(listener(), nullptr);
    EXPECT_EQ(collector.status().sentence, "Tracing is off.");
    train(10);
  });
  EXPECT_EQ(trace.span_count(), 0u);
}

TEST(Collector, LevelCanChangeWhileItRuns) {
  const Trace trace = gather({.level = TraceLevel::Steps}, [](Collector& collector) {
    train(10);
    collector.set_level(TraceLevel::Kernels);
    train(10);
    collector.set_level(TraceLevel::Off);
    train(10);
  });
  EXPECT_EQ(spans(trace, TrackKind::Steps), 20u);
  EXPECT_EQ(spans(trace, TrackKind::CpuThread), 20u);
}

TEST(Collector, ReportsWhatItTracesWithoutAGpu) {
  Collector collector;
  CollectorOptions options{.gpu = cupti_gpu_source()};
  options.hardware_counters = true;
  const CollectorStatus status = collector.start(options);
  if (status.gpu) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(status.sentence.rfind("Traces the CPU only: ", 0), 0u) << status.sentence;
  EXPECT_TRUE(status.counters_refused) << status.counters;
  std::map<std::string, std::string> kept;
  keep_status(status, kept);
  EXPECT_TRUE(kept.contains("cpu_only") && kept.contains("counters_refused"));
  EXPECT_EQ(kept["traced"], status.sentence);
}

TEST(Collector, OnlyOneGathersAtATime) {
  Collector first, second;
  first.start({.level = TraceLevel::Steps});
  EXPECT_THROW(second.start({}), Failure);
  first.stop();
  EXPECT_TRUE(second.start({.level = TraceLevel::Steps}).running);
}

// Between 32 and 64 steps of this length the meter pauses.
void train_slowly(Collector&) {
  for (int step = 0; step < 48; ++step) {
    const StepScope step_scope(step);
    const OpScope op(test_ops());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(Collector, RanksAreTracedWithoutPauses) {
  const Trace trace =
      gather({.level = TraceLevel::Kernels, .untraced_share = 0.5, .gpu_is_rank = true}, train_slowly);
  EXPECT_EQ(spans(trace, TrackKind::CpuThread), 48u);
  for (const Track& track : trace.tracks()) EXPECT_NE(track.name, kUntracedTrack);
}

TEST(Collector, ARestThatTheEndCutsShortIsDrawnToo) {
  const Trace trace = gather({.level = TraceLevel::Kernels, .untraced_share = 0.5}, train_slowly);
  TimeNs last_op = 0, rest = 0;
  for (const Track& track : trace.tracks())
    each_span(track, trace.first_time(), trace.last_time() + 1, [&](const Span& span) {
      if (track.kind == TrackKind::CpuThread) last_op = std::max(last_op, span.end());
      if (untraced(track)) rest = std::max(rest, span.end());
    });
  EXPECT_GT(last_op, 0);
  EXPECT_GT(rest, last_op + 10'000'000);
}

TEST(Collector, MemoryNotesKeepOwnerBytesOpAndStep) {
  const Trace trace = gather({.level = TraceLevel::Steps}, [](Collector&) {
    const StepScope step(41);
    const OpScope op(test_ops());
    note_memory({MemoryAction::Reserve, 0x1000, 4096, kNoOp, "arena"});
    note_memory({MemoryAction::Allocate, 0x1000, 256, test_ops(), "arena"});
    note_memory({MemoryAction::Free, 0x1000, 256, kNoOp, "caching"});
  });
  ASSERT_EQ(trace.memory().size(), 3u);
  EXPECT_EQ(trace.memory()[0].kind, MemoryAction::Reserve);
  EXPECT_EQ(trace.memory()[1].bytes, 256u);
  EXPECT_EQ(trace.memory()[1].op, test_ops());
  EXPECT_EQ(trace.memory()[1].step, 42u);
  EXPECT_EQ(trace.memory_sources[trace.memory()[2].source], "caching");
}

TEST(Collector, ThreadsKeepRowsOfTheirOwn) {
  const Trace trace = gather({.level = TraceLevel::Kernels}, [](Collector&) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { train(500); });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(spans(trace, TrackKind::CpuThread), 4u * 1000);
  EXPECT_EQ(trace.losses.dropped_records, 0u);
}

// A new thread takes over the queue of one that has ended, which may not have been read yet.
TEST(Marks, EventsNameTheThreadThatMadeThem) {
  Marks& marks = Marks::instance();
  marks.drain([](const HostEvent&) {});
  marks.configure({.ops = true});
  std::vector<int32_t> made, read;
  for (int i = 0; i < 2; ++i)
    std::thread([&] {
      marks.op_begin(test_ops());
      marks.op_end();
      made.push_back(Marks::thread().id);
    }).join();
  marks.configure({});
  marks.drain([&](const HostEvent& event) { read.push_back(event.thread); });
  EXPECT_NE(made[0], made[1]);
  EXPECT_EQ(read, made);
}

TEST(Collector, TimesCountFromTheOriginThatWasGiven) {
  const int64_t origin = steady_ns() - 5'000'000'000;
  const Trace trace = gather({.level = TraceLevel::Steps, .origin_ns = origin}, [](Collector&) { train(1); });
  EXPECT_GT(trace.first_time(), 4'900'000'000);
  EXPECT_LT(trace.first_time(), 60'000'000'000);
}

TEST(Collector, ALiveReaderGetsBatchesWhileTheProgramRuns) {
  Collector collector;
  collector.start({.level = TraceLevel::Steps, .flush_ms = 20});
  train(5);
  Trace trace;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (spans(trace, TrackKind::Steps) < 5 && std::chrono::steady_clock::now() < deadline) {
    append(trace, collector.take());
    std::this_thread::yield();
  }
  EXPECT_EQ(spans(trace, TrackKind::Steps), 5u);
}

// What nobody takes is bounded, and what does not fit is counted.
TEST(Collector, DropsAndCountsWhatNobodyTakes) {
  Collector collector;
  collector.start({.level = TraceLevel::Steps, .flush_ms = 10, .max_waiting_spans = 1000});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int steps = 0;
  uint64_t dropped = 0;
  while (dropped == 0 && std::chrono::steady_clock::now() < deadline) {
    train(500);
    steps += 500;
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    if (steps > 20'000) break;
  }
  collector.stop();
  Trace trace;
  for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) append(trace, std::move(batch));
  EXPECT_GT(trace.losses.dropped_records, 0u);
  EXPECT_EQ(trace.losses.dropped_records + trace.span_count(),
            static_cast<uint64_t>(steps) * 2);  // a step and its phase
  EXPECT_EQ(collector.status().losses.dropped_records, trace.losses.dropped_records);
}

TEST(TraceLevels, HaveNames) {
  EXPECT_EQ(trace_level("graph"), TraceLevel::Graph);
  EXPECT_STREQ(to_string(TraceLevel::Full), "full");
  EXPECT_THROW(trace_level("everything"), Failure);
}

TEST(Clock, KeepsTheTightestBracket) {
  int64_t now = 0;
  int round = 0;
  const ClockOffset offset = calibrate([&] { return static_cast<uint64_t>(now + 1'000'000); },
                                       [&] { return now += (++round == 6 ? 10 : 500); }, 8);
  EXPECT_EQ(offset.width, 10);
  EXPECT_NEAR(static_cast<double>(offset.offset), 1'000'000, 6);
}

}  // namespace
}  // namespace ws::prof
