// A foreign program, recorded from outside: everything it did is in the file, and its own behaviour is unchanged.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/span_walk.h"
#include "profiling/recording/record_program.h"
#include "profiling/base/failure.h"
#include "profiling/run_file/run_file.h"
#include "tests/support/own_file.h"

namespace ws::prof {
namespace {

int record_program(const std::vector<std::string>& command, const std::string& path, const RecordOptions& options) {
  RecordedProgram run(command, path, options);
  std::optional<int> status;
  while (!(status = run.wait(100)))
    while (!run.take().empty()) {
    }
  if (!run.recorded())
    throw Failure("Nothing was recorded: the program left with exit status " + std::to_string(*status) + ".");
  return *status;
}

class Recording : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("recording-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "run.wsrun";
  }
  void TearDown() override { test::remove_folder(folder_); }

  static void need_gpu() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  }
  int run(const std::string& mode) {
    return record_program({RECORDED_PROGRAM, mode}, file_, {.level = TraceLevel::Full, .library = INJECT_LIBRARY});
  }

  struct Read {
    RunSummary summary;
    std::map<std::string, int> kernels;
    uint64_t allocations = 0, frees = 0;
    size_t steps = 0, calls = 0;
    std::vector<std::string> problems;
  };
  Read read() {
    RunFileReader reader(file_);
    Trace trace = reader.trace();
    reader.fill(trace);
    Read result;
    result.summary = reader.summary();
    for (const StepAllocations& a : reader.allocations()) result.allocations += a.allocations, result.frees += a.frees;
    for (const Track& track : trace.tracks()) {
      if (track.kind == TrackKind::Steps) result.steps += track.spans;
      if (track.kind == TrackKind::Api) result.calls += track.spans;
      if (track.kind != TrackKind::Stream) continue;
      for (const SpanBlock& block : track.blocks) {
        for (const Span& span : block.spans) ++result.kernels[trace.name(span.name)];
      }
    }
    result.problems = reader.problems();
    return result;
  }

  std::filesystem::path folder_, file_;
};

int count(const std::map<std::string, int>& kernels, const std::string& part) {
  int sum = 0;
  for (const auto& [name, n] : kernels) sum += name.find(part) != std::string::npos ? n : 0;
  return sum;
}

TEST_F(Recording, HoldsEveryKernelCallAndAllocation) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("plain"), 0);
  const Read read_back = read();
  EXPECT_EQ(count(read_back.kernels, "fill_kernel"), 300);
  EXPECT_EQ(count(read_back.kernels, "empty_kernel"), 300);
  EXPECT_EQ(count(read_back.kernels, "other_kernel"), 100);
  EXPECT_EQ(read_back.allocations, 100u);
  EXPECT_EQ(read_back.frees, 100u);
  EXPECT_EQ(read_back.steps, 100u);
  EXPECT_GE(read_back.calls, 700u + 200u + 100u);
  EXPECT_EQ(read_back.summary.status, "finished");
  EXPECT_TRUE(read_back.problems.empty());
}

struct CaptureRanges : Recording, ::testing::WithParamInterface<TraceLevel> {};

TEST_P(CaptureRanges, HoldTheKernelsThatWereLaunchedInside) {
  need_gpu();
  if (IsSkipped()) return;
  const RecordOptions options{.level = GetParam(), .library = INJECT_LIBRARY, .captures = true};
  ASSERT_EQ(record_program({RECORDED_PROGRAM, "captured"}, file_, options), 0);
  const Read read_back = read();
  EXPECT_EQ(count(read_back.kernels, "fill_kernel"), 2 * 300);
  EXPECT_EQ(count(read_back.kernels, "empty_kernel"), 2 * 300);
  EXPECT_EQ(count(read_back.kernels, "other_kernel"), 2 * 101);
  EXPECT_EQ(read_back.allocations, 2 * 100u);
  EXPECT_EQ(read_back.frees, 2 * 100u);
  EXPECT_NEAR(static_cast<double>(read_back.steps), 200, 4) << "by their pattern";
  EXPECT_EQ(read_back.summary.said(kCaptureCountKey), "2");
  EXPECT_TRUE(read_back.problems.empty());
  RunFileReader reader(file_);
  Trace trace = reader.trace();
  reader.fill(trace);
  size_t gaps = 0;
  for (const Track& track : trace.tracks()) gaps += untraced(track) ? track.spans : 0;
  EXPECT_EQ(gaps, 1u);
  EXPECT_EQ(trace.losses.dropped_records + trace.losses.invalid_records, 0u);
}

INSTANTIATE_TEST_SUITE_P(Levels, CaptureRanges, ::testing::Values(TraceLevel::Graph, TraceLevel::Kernels, TraceLevel::Full),
                         [](const auto& level) { return std::string(to_string(level.param)); });

// What the program itself named: nested as it nested them, and its steps.
TEST_F(Recording, FindsTheRangesThatTheProgramNames) {
  need_gpu();
  if (IsSkipped()) return;
  ASSERT_EQ(run("nvtx"), 0);
  RunFileReader reader(file_);
  Trace trace = reader.trace();
  reader.fill(trace);
  std::map<std::string, std::vector<Span>> ranges;  // by name, numbers cut off
  std::map<std::string, std::set<int>> depths;
  std::vector<Span> steps;
  for (const Track& track : trace.tracks())
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (track.kind == TrackKind::Steps) steps.push_back(span);
      if (broad_kind(track.kind) != TrackKind::Phases) return;
      std::string name = trace.name(span.name);
      name = name.substr(0, name.find_last_not_of(" 0123456789") + 1);
      ranges[name].push_back(span), depths[name].insert(track.depth);
    });
  EXPECT_EQ(
      depths,
      (std::map<std::string, std::set<int>>{
          {"training step", {0}}, {"forward", {1}}, {"backward", {1}}, {"first layer", {2}}, {"second layer", {2}}}));
  for (const auto& [name, spans] : ranges) EXPECT_EQ(spans.size(), 60u) << name;
  const auto inside = [&](const std::string& inner, const std::string& outer) {
    for (const Span& span : ranges[inner])
      EXPECT_TRUE(std::ranges::any_of(
          ranges[outer], [&](const Span& around) { return around.start <= span.start && span.end() <= around.end(); }))
          << inner << " in " << outer;
  };
  inside("forward", "training step"), inside("backward", "training step"), inside("second layer", "forward");
  ASSERT_EQ(steps.size(), 60u);
  std::ranges::sort(steps, {}, &Span::start);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, i + 1);
    EXPECT_FALSE(steps[i].flags & kEstimated);
    EXPECT_EQ(steps[i].start, ranges["training step"][i].start);
  }
  EXPECT_EQ(reader.summary().extra.at("steps_from"), "the program's ranges");
  std::map<std::string, uint64_t> launched;  // kernels by the range that launched them
  for (const KernelRow& row : kernel_table(trace, -kAlways, kAlways, GroupBy::Op)) launched[row.key] = row.time.count;
  EXPECT_EQ(launched["forward · first layer"], 60u);
  EXPECT_EQ(launched["forward · second layer"], 60u);
  EXPECT_EQ(launched["backward"], 60u);
}

// Its ranges end long before their kernels begin: the steps are when those ran, each with its own.
TEST_F(Recording, StepsOfAHostThatRunsAheadAreWhenTheirKernelsRan) {
  need_gpu();
  if (IsSkipped()) return;
  ASSERT_EQ(run("ahead"), 0);
  RunFileReader reader(file_);
  Trace trace = reader.trace();
  reader.fill(trace);
  std::vector<Span> steps, kernels;
  for (const Track& track : trace.tracks())
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (track.kind == TrackKind::Steps) steps.push_back(span);
      if (track.kind == TrackKind::Stream && is_kernel(span)) kernels.push_back(span);
    });
  std::ranges::sort(kernels, {}, &Span::start);
  ASSERT_EQ(steps.size(), 60u);
  ASSERT_EQ(kernels.size(), 60u + 20 * (1 + 2 + 3) + 1);
  size_t next = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].start, kernels[next].start) << "step " << i;
    next += 2 + i % 3;
    EXPECT_EQ(steps[i].end(), kernels[next - 1].end()) << "step " << i;
  }
  EXPECT_EQ(reader.summary().extra.at("steps_from"), "the program's ranges");
}

// The program counts the nodes of its graph and its launches itself.
TEST_F(Recording, HoldsWhatTheNodesOfAGraphTimesItsLaunchesComeTo) {
  need_gpu();
  if (IsSkipped()) return;
  const std::string counted = folder_ / "counted";
  setenv("COUNTED_FILE", counted.c_str(), 1);
  for (const TraceLevel level : {TraceLevel::Kernels, TraceLevel::Full, TraceLevel::Graph}) {
    SCOPED_TRACE(to_string(level));
    std::filesystem::remove(file_);
    ASSERT_EQ(record_program({RECORDED_PROGRAM, "counted"}, file_, {.level = level, .library = INJECT_LIBRARY}), 0);
    uint64_t launches = 0, kernels = 0, copies = 0, memsets = 0;
    std::ifstream(counted) >> launches >> kernels >> copies >> memsets;
    ASSERT_GT(launches * kernels * copies * memsets, 0u);
    RunFileReader reader(file_);
    Trace trace = reader.trace();
    reader.fill(trace);
    std::map<SpanKind, uint64_t> seen, outside;
    for (const Track& track : trace.tracks()) {
      if (!runs_on_gpu(track.kind)) continue;
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        ++seen[span.span_kind()];
        outside[span.span_kind()] += !(span.flags & kInGraph);
      });
    }
    EXPECT_EQ(trace.losses.dropped_records + trace.losses.invalid_records, 0u);
    if (level == TraceLevel::Graph) {
      EXPECT_EQ(seen, (std::map<SpanKind, uint64_t>{{SpanKind::GraphRun, launches}}));
      EXPECT_EQ(static_cast<uint64_t>(reader.summary().steps), launches) << "nothing but launches: each is a step";
      continue;
    }
    EXPECT_EQ(seen, (std::map<SpanKind, uint64_t>{{SpanKind::Kernel, launches * kernels},
                                                  {SpanKind::Copy, launches * copies},
                                                  {SpanKind::Memset, launches * memsets}}));
    for (const auto& [kind, eager] : outside) EXPECT_EQ(eager, 0u) << "all of them are of the graph";
  }
  unsetenv("COUNTED_FILE");
}

// Where the longest span lies, for the case that it is too long.
void describe_longest(const std::vector<Span>& spans, const std::vector<Span>& pauses) {
  const auto longest = std::ranges::max_element(spans, {}, [](const Span& s) { return uint64_t{s.duration}; });
  TimeNs opened = spans.front().start, closed = spans.back().end();
  for (const Span& rest : pauses) {
    if (rest.end() <= longest->end()) opened = std::max(opened, rest.end());
    if (rest.start >= longest->start) closed = std::min(closed, rest.start);
  }
  const auto us = [](TimeNs ns) { return static_cast<double>(ns) * 1e-3; };
  std::printf("  longest: number %td of %zu, begins %.1f µs after its window, ends %.1f µs before the window does",
              longest - spans.begin(), spans.size(), us(longest->start - opened), us(closed - longest->end()));
  if (longest != spans.begin())
    std::printf(", %.1f µs after the one before", us(longest->start - (longest - 1)->end()));
  if (longest + 1 != spans.end()) std::printf(", %.1f µs before the next", us((longest + 1)->start - longest->end()));
  std::printf("\n");
}

// Kernels in windows only, with their own ends; allocations all the time; the rest is said to be untraced.
struct Windows : Recording, ::testing::WithParamInterface<std::tuple<const char*, TraceLevel>> {};

TEST_P(Windows, RecordPartOfALongRun) {
  need_gpu();
  if (IsSkipped()) return;
  const auto [mode, level] = GetParam();
  RecordOptions options{.level = level, .library = INJECT_LIBRARY};
  options.window = "100ms/400ms";
  ASSERT_EQ(record_program({RECORDED_PROGRAM, mode}, file_, options), 0);
  RunFileReader reader(file_);
  Trace trace = reader.trace();
  reader.fill(trace);
  EXPECT_TRUE(reader.problems().empty());
  std::vector<Span> kernels, pauses, steps;
  size_t one_by_one = 0;
  const auto collect = [](std::vector<Span>& into) { return [&into](const Span& span) { into.push_back(span); }; };
  for (const Track& track : trace.tracks()) {
    if (track.kind == TrackKind::Stream || track.kind == TrackKind::GraphLaunches)
      each_span(track, -kAlways, kAlways, collect(kernels));
    if (track.kind == TrackKind::Stream) each_span(track, -kAlways, kAlways, [&](const Span&) { ++one_by_one; });
    if (untraced(track)) each_span(track, -kAlways, kAlways, collect(pauses));
    if (track.kind == TrackKind::Steps) each_span(track, -kAlways, kAlways, collect(steps));
  }
  ASSERT_FALSE(kernels.empty());
  std::ranges::sort(kernels, {}, &Span::start);
  const Activity gpu = activity(trace, kernels.front().start, kernels.back().end());
  size_t outside = 0;
  uint64_t longest = 0;
  std::set<TimeNs> seen;  // windows that hold a kernel, by the 400 ms that they are in
  for (const Span& kernel : kernels) {
    const auto pause_at = [&](const Span& r) { return r.start <= kernel.start && kernel.end() <= r.end(); };
    outside += std::ranges::none_of(pauses, pause_at);
    longest = std::max<uint64_t>(longest, kernel.duration);
    seen.insert((kernel.start - kernels.front().start) / 400'000'000);
  }
  std::printf(
      "%s, %s: %zu spans, %zu in windows, longest %.1f µs, %zu windows, %zu steps of %.1f µs, traced %.0f of %.0f ms, "
      "busy %.1f %%, dropped %llu\n",
      mode, to_string(level), kernels.size(), outside, static_cast<double>(longest) * 1e-3, seen.size(), steps.size(),
      reader.summary().us_per_step, static_cast<double>(gpu.wall) * 1e-6,
      static_cast<double>(gpu.wall + gpu.untraced) * 1e-6, 100 * gpu.busy_share(),
      static_cast<unsigned long long>(trace.losses.dropped_records));
  describe_longest(kernels, pauses);
  EXPECT_GE(seen.size(), 3u);
  EXPECT_EQ(outside, kernels.size()) << "what began between windows is left out";
  EXPECT_LT(longest, 20'000'000u) << "a kernel ends in its own window; the next one begins 300 ms later, and a GPU that others use adds less";
  EXPECT_GT(gpu.untraced, gpu.wall);
  EXPECT_GT(gpu.busy_share(), 0.8) << "the stretches between are not idle";
  EXPECT_EQ(trace.losses.dropped_records, 0u);
  EXPECT_EQ(trace.losses.invalid_records, 0u);
  if (level == TraceLevel::Graph && std::string(mode) == "graphs") {
    EXPECT_EQ(one_by_one, 0u) << "kernels of a graph that is recorded as a whole";
  }
  uint64_t allocations = 0;
  for (const StepAllocations& a : reader.allocations()) allocations += a.allocations;
  EXPECT_GE(allocations, 40u) << "one in a hundred steps, in windows or not";
  EXPECT_GT(steps.size(), 100u);
  EXPECT_NEAR(reader.summary().us_per_step, 170, 30);
}

INSTANTIATE_TEST_SUITE_P(Modes, Windows,
                         ::testing::Values(std::tuple{"long", TraceLevel::Full}, std::tuple{"long", TraceLevel::Graph},
                                           std::tuple{"graphs", TraceLevel::Kernels},
                                           std::tuple{"graphs", TraceLevel::Full},
                                           std::tuple{"graphs", TraceLevel::Graph}),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param)) + "_" + to_string(std::get<1>(chosen.param));
                         });

// The counters' libraries clean up when the program exits, and must not do so under our hands.
TEST_F(Recording, SamplesHardwareCountersUntilTheProgramEnds) {
  need_gpu();
  if (IsSkipped()) return;
  RecordOptions options{.level = TraceLevel::Full, .library = INJECT_LIBRARY};
  options.counters = true;
  for (int time = 0; time < 3; ++time) {
    ASSERT_EQ(record_program({RECORDED_PROGRAM, "long"}, file_, options), 0);
    RunFileReader reader(file_);
    EXPECT_EQ(reader.summary().status, "finished");
    Trace trace = reader.trace();
    reader.fill(trace);
    const auto said = reader.summary().extra.find("counters");
    ASSERT_NE(said, reader.summary().extra.end());
    if (said->second != "Samples hardware counters.") GTEST_SKIP() << said->second;
    const auto active = std::ranges::find(trace.counters(), "SM active", &CounterTrack::name);
    ASSERT_NE(active, trace.counters().end());
    EXPECT_GT(active->points.size(), 500u) << "one a millisecond, for a second and a half";
  }
}

// A program may leave the first card to others: we do not use it either, and sample the one that the program uses.
TEST_F(Recording, UsesNoCardThatTheProgramDoesNotUse) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) GTEST_SKIP() << "fewer than two GPUs";
  RecordOptions options{.level = TraceLevel::Full, .library = INJECT_LIBRARY};
  options.counters = true;
  ASSERT_EQ(record_program({RECORDED_PROGRAM, "second"}, file_, options), 0)
      << "4: something was begun on the first card";
  RunFileReader reader(file_);
  Trace trace = reader.trace();
  reader.fill(trace);
  EXPECT_EQ(count(read().kernels, "spin_kernel"), 8);
  for (const Track& track : trace.tracks()) EXPECT_TRUE(!on_gpu(track) || track.group == "GPU 1") << track.group;
  const auto active = std::ranges::find(trace.counters(), "SM active", &CounterTrack::name);
  if (active == trace.counters().end()) GTEST_SKIP() << reader.summary().extra.at("counters");
  size_t busy = 0;
  for (const CounterPoint& point : active->points) busy += point.value > 0.2;
  EXPECT_GT(busy, 400u) << "one of 132 multiprocessors, for most of 800 ms";
}

TEST_F(Recording, SurvivesAFork) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("fork"), 0);
  EXPECT_EQ(count(read().kernels, "other_kernel"), 100);
}

TEST_F(Recording, KeepsWhatWasWrittenWhenTheProgramJustStops) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("exit"), 3);
  RunFileReader reader(file_);
  EXPECT_EQ(reader.summary().status, "stopped") << "whoever recorded it has ended the file";
}

TEST_F(Recording, ReportsThatAProgramDidNotStartCuda) {
  try {
    run("none");
    FAIL() << "nothing was recorded";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("exit status 5"), std::string::npos) << failure.what();
  }
}

TEST_F(Recording, ReportsThatAProgramCannotBeStarted) {
  EXPECT_THROW(record_program({"/no/such/program"}, file_, {.library = INJECT_LIBRARY}), Failure);
  EXPECT_THROW(record_program({}, file_, {.library = INJECT_LIBRARY}), Failure);
}

}  // namespace
}  // namespace ws::prof
