// What a recorded program that marks no steps is taken to do in one.
#include "profiling/analysis/step_finder.h"

#include <gtest/gtest.h>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/failure.h"
#include "profiling/collectors/clock_window.h"

namespace ws::prof {
namespace {

const std::vector<std::string> kNames{"gemm",     "relu",           "loss",         "update", "cudaMalloc",
                                      "cudaFree", "cudaMallocHost", "train step 1", "batch",  "untraced on purpose"};

Span span_at(SpanKind kind, size_t name, TimeNs start, TimeNs end) {
  Span span;
  span.start = start;
  span.duration = static_cast<uint64_t>(end - start);
  span.kind = static_cast<uint64_t>(kind);
  span.name = static_cast<NameId>(name);
  return span;
}

struct Program {
  Program() = default;
  explicit Program(size_t most_kept) : finder(most_kept) {}
  StepFinder finder;
  TimeNs now = 1000;
  uint32_t call = 0;  // that launches the next kernel; 0: calls are not recorded
  void put(TrackKind track, const std::string& row, const Span& span) { finder.take(track, row, {&span, 1}, kNames); }
  Span kernel(size_t name) {
    Span span = span_at(SpanKind::Kernel, name, now, now + 500);
    if (call != 0) span.correlation = call++;
    return span;
  }
  void launch(TimeNs at, uint32_t number) {
    Span span = span_at(SpanKind::Api, 3, at, at + 5);
    span.meaning = static_cast<uint64_t>(Meaning::Launch);
    span.correlation = number;
    put(TrackKind::Api, "CPU calls", span);
  }
  // Four kernels of 500 ns, a gap of 100 between them and of 2000 before the first: 4300 in all.
  void step(bool recorded = true, size_t first = 0) {
    for (size_t k = 0; k < 4; ++k) {
      now += k == 0 ? 2000 : 100;
      if (recorded && k >= first) put(TrackKind::Stream, "GPU 0 stream 7", kernel(k));
      now += 500;
    }
    const StepAllocations calls{.allocations = 1, .frees = 1, .host_allocations = 1};
    finder.take(calls);  // counted in untraced stretches too
    put(TrackKind::Api, "CPU calls", span_at(SpanKind::Alloc, 4, now - 900, now - 890));
    put(TrackKind::Api, "CPU calls", span_at(SpanKind::Alloc, 6, now - 880, now - 870));
    put(TrackKind::Api, "CPU calls", span_at(SpanKind::Free, 5, now - 800, now - 790));
  }
  void untraced(int steps) {
    const TimeNs begin = now;
    for (int i = 0; i < steps; ++i) step(false);
    std::string row = kUntracedTrack;
    row.insert(0, "CPU ");
    put(TrackKind::Untraced, row, span_at(SpanKind::Overhead, 9, begin, now));
  }
};

TEST(StepFinder, FindsTheStepsOfKernels) {
  Program program;
  for (int i = 0; i < 100; ++i) program.step();
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 100u);
  EXPECT_FALSE(found.by_ranges);
  EXPECT_NEAR(found.us_each, 4.3, 0.05);
  EXPECT_DOUBLE_EQ(found.allocator_calls_each, 2);
  const auto spans = found.spans(NameId{3});
  ASSERT_EQ(spans.size(), 100u);
  EXPECT_EQ(spans[41].step, 42u);
  EXPECT_TRUE(spans[41].flags & kEstimated);
}

// The list of runs shows it without reading the trace.
TEST(StepFinder, TheStepTimeIsTheOneThatOpeningTheRunComputes) {
  Program program;
  program.step();
  program.now += 400'000;  // a warm-up
  for (int i = 0; i < 100; ++i) program.step();
  program.untraced(50);
  for (int i = 0; i < 100; ++i) program.step();
  const FoundSteps found = program.finder.find();
  const StepTime time = step_time(found);
  EXPECT_NEAR(time.us.value, 4.3, 0.05);
  EXPECT_TRUE(time.has_spread());
  RunData run;
  run.summary.us_per_step = found.us_each;
  run.trace.append(run.trace.track(TrackKind::Steps, "steps", "CPU"), found.spans(run.trace.intern("step")));
  run.trace.append(run.trace.track(TrackKind::Stream, "stream 7", "GPU 0"), span_at(SpanKind::Kernel, 0, 0, program.now));
  for (const FoundStep& rest : found.untraced)
    run.trace.append(run.trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), span_at(SpanKind::Overhead, 0, rest.start, rest.end));
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.us.value, time.us.value);
  EXPECT_DOUBLE_EQ(run_stats(run).step_time.p95_us, time.p95_us);
}

TEST(StepFinder, TheHostsMarksAreAStepTimeOnlyWhereNoGpuWorks) {
  StepFinder finder;
  std::vector<Span> ranges;
  for (int i = 0; i < 20; ++i) ranges.push_back(span_at(SpanKind::Phase, 0, i * 200, i * 200 + 150));
  finder.take(TrackKind::Ranges, "CPU ranges", ranges, std::vector<std::string>{"step"});
  const FoundSteps found = finder.find();
  EXPECT_EQ(found.steps.size(), 20u);
  EXPECT_FALSE(step_time(found).known());
  EXPECT_DOUBLE_EQ(step_time(found, false).us.value, 0.2);
}

// Windows in which 20 steps and the end of another were recorded.
void expect_steps_of(const FoundSteps& found, size_t windows) {
  EXPECT_GE(found.steps.size(), windows * 19);
  EXPECT_LE(found.steps.size(), windows * 20);
  for (const FoundStep& step : found.steps) EXPECT_LT(step.end - step.start, 6500);
  EXPECT_NEAR(found.us_each, 4.3, 0.1);
  EXPECT_NEAR(found.allocator_calls_each, 2, 0.1);
}

// Most of the program runs unrecorded, and a window may open in the middle of a step: no step reaches over the rest.
TEST(StepFinder, WindowsDoNotStretchTheSteps) {
  Program program;
  for (int window = 0; window < 5; ++window) {
    program.step(true, 2);
    for (int i = 0; i < 20; ++i) program.step();
    program.untraced(200);
  }
  expect_steps_of(program.finder.find(), 5);
}

// The host launched all before the first kernel of them ran, as with graphs.
struct Ahead : Program {
  explicit Ahead(int ranges) {
    for (int i = 0; i < 3; ++i) step();  // to warm up
    now = 20'000;
    for (int i = 0; i < ranges; ++i)
      put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, now + i * 200, now + i * 200 + 150));
    now += 200 * ranges;
  }
};

TEST(StepFinder, AHostThatRunsAheadIsNotTheGpusTime) {
  Ahead program(40);
  const TimeNs begin = program.now;
  for (int i = 0; i < 40; ++i) program.step();
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 40u);
  EXPECT_TRUE(found.by_ranges);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(found.steps[i].start, begin + 4300 * i + 2000);
    EXPECT_EQ(found.steps[i].end, begin + 4300 * (i + 1));
  }
  EXPECT_NEAR(found.us_each, 4.3, 0.1);
}

// The first step prepares something, one prints, and evaluations of other kernels lie between steps and after the last one.
TEST(StepFinder, AHostThatRunsAheadIsNotTheGpusTimeWhereStepsDiffer) {
  Ahead program(40);
  const auto other = [&](size_t name) {
    program.now += 100;
    program.put(TrackKind::Stream, "GPU 0 stream 7", program.kernel(name));
    program.now += 500;
  };
  std::vector<TimeNs> starts;
  for (int i = 0; i < 40; ++i) {
    starts.push_back(program.now + 2000);
    program.step();
    if (i == 0) other(8), other(8);
    if (i == 7) other(9);
    if (i % 20 == 19)
      for (int batch = 0; batch < 5; ++batch) other(0), other(9);
  }
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 40u);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(found.steps[i].start, starts[i]) << i;
  EXPECT_EQ(found.steps[5].end, starts[6]);
  EXPECT_EQ(found.steps[19].end, starts[19] + 2400) << "where the evaluation begins";
}

// What ran for which range is not known then.
TEST(StepFinder, RangesStayWhereTheyAreWhenOneLaunchedOtherKernels) {
  Ahead program(40);
  for (int i = 0; i < 40; ++i) program.step(true, i == 20 ? 2 : 0);
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 40u);
  EXPECT_EQ(found.steps[0].start, 20'000);
}

// The calls tell which range each kernel is of, whatever else it launched: one here has two kernels, one has none.
TEST(StepFinder, CallsShowWhatRanForARange) {
  Program program;
  program.call = 77;
  for (uint32_t number = 77; number < 77 + 12; ++number) program.launch(1000 + number, number);
  for (int i = 0; i < 3; ++i) program.step();
  const auto kernels_of = [](int step) { return step == 30 ? 0u : step == 20 ? 2u : 4u; };
  TimeNs host = 20'000;
  uint32_t number = program.call;
  for (int i = 0; i < 40; ++i, host += 200) {
    for (uint32_t k = 0; k < kernels_of(i); ++k) program.launch(host + 10 * (k + 1), number++);
    program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, host, host + 150));
  }
  program.now = host;
  std::vector<FoundStep> truth;
  for (int i = 0; i < 40; ++i) {
    const TimeNs before = program.now;
    if (kernels_of(i) > 0) program.step(true, 4 - kernels_of(i));
    const TimeNs first = before + (kernels_of(i) == 4 ? 2000 : 2000 + 2 * 600);
    truth.push_back(kernels_of(i) > 0 ? FoundStep{first, program.now} : FoundStep{before, before});
  }
  program.now += 2000;
  program.launch(host, number);  // after the last range, as an evaluation is
  program.put(TrackKind::Stream, "GPU 0 stream 7", program.kernel(2));
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), truth.size());
  EXPECT_TRUE(found.by_ranges);
  for (size_t i = 0; i < truth.size(); ++i) {
    EXPECT_EQ(found.steps[i].start, truth[i].start) << i;
    EXPECT_EQ(found.steps[i].end, truth[i].end) << i;
  }
}

// Most calls were not recorded: what ran for a range is not known, though the kernels repeat.
TEST(StepFinder, RangesStayWhereTheyAreWhenCallsAreMissing) {
  Ahead program(40);
  program.call = 5;
  program.launch(20'010, 5);
  for (int i = 0; i < 40; ++i) program.step();
  EXPECT_EQ(program.finder.find().steps[0].start, 20'000);
}

TEST(StepFinder, RangesThatNameStepsComeFirst) {
  Program program;
  for (int i = 0; i < 7; ++i) program.step();  // what is allocated before the first range is no step's
  for (int i = 0; i < 50; ++i) {
    const TimeNs begin = program.now;
    program.step();
    program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, begin, program.now));
    program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, begin + 10, program.now - 10));
    program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 8, begin, program.now));
  }
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 50u) << "a range inside of another one is no step of its own";
  EXPECT_TRUE(found.by_ranges);
  EXPECT_DOUBLE_EQ(found.allocator_calls_each, 2);
  EXPECT_EQ(found.spans(NameId{0})[0].flags, 0);
}

TEST(StepFinder, MarksOfAWarmUpAreNotTheSteps) {
  for (const auto& [marked, later, ranges] : {std::tuple(11, 80, false), {11, 20, true}, {40, 400, true}}) {
    Program program;
    for (int i = 0; i < marked; ++i) {
      const TimeNs begin = program.now;
      program.now += 100'000;
      program.step();
      program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, begin, program.now));
    }
    program.now += 5'000'000;  // it captures a graph
    for (int i = 0; i < later; ++i) program.step();
    const FoundSteps found = program.finder.find();
    EXPECT_EQ(found.by_ranges, ranges) << marked;
    EXPECT_NEAR(static_cast<double>(found.steps.size()), ranges ? marked : later, 2) << marked;
    if (!ranges) {
      EXPECT_NEAR(found.us_each, 4.3, 0.1);
    }
  }
}

// Two ranks share a process. The calls of their threads say no rank; the second rank's GPU is 100 µs behind its host.
TEST(StepFinder, EachRankOfAProcessHasItsSteps) {
  StepFinders finders;
  const auto put = [&](int rank, TrackKind kind, const std::string& row, Span span, uint32_t launch = 0) {
    span.correlation = launch;
    if (kind == TrackKind::Api) span.meaning = static_cast<uint64_t>(Meaning::Launch);
    finders.take(rank, kind, row, {&span, 1}, kNames);
  };
  put(-1, TrackKind::Stream, "GPU 0 stream 7", span_at(SpanKind::Kernel, 0, 10, 20));  // before the ranks began
  finders.take({.allocations = 5});
  for (int step = 0; step < 40; ++step)
    for (int rank = 0; rank < 2; ++rank) {
      const TimeNs host = 1000 + 5000 * step, gpu = host + 100 + 100'000 * rank;
      const auto launch = static_cast<uint32_t>(2 * step + rank + 1);
      const std::string number = std::to_string(rank);
      put(rank, TrackKind::Ranges, "CPU thread " + number + " ranges", span_at(SpanKind::Phase, 7, host, host + 90));
      put(-1, TrackKind::Api, "CPU thread " + number + " calls", span_at(SpanKind::Api, 3, host + 10, host + 15), launch);
      put(rank, TrackKind::Stream, "GPU " + number + " stream 7", span_at(SpanKind::Kernel, 0, gpu, gpu + 700), launch);
      finders.take({.allocations = 1, .frees = 1});
    }
  const auto found = finders.find();
  ASSERT_EQ(found.size(), 2u) << "none of the process as a whole";
  for (int rank = 0; rank < 2; ++rank) {
    const FoundSteps& steps = found.at(rank);
    ASSERT_EQ(steps.steps.size(), 40u);
    EXPECT_EQ(steps.steps[7].start, 1000 + 35'000 + 100 + 100'000 * rank);
    EXPECT_EQ(steps.steps[7].end, steps.steps[7].start + 700);
    EXPECT_DOUBLE_EQ(steps.allocator_calls_each, (5 + 160) / 40.0) << "those of all ranks";
  }
}

// A recording of any length: of what is too much to keep, the steps stay.
TEST(StepFinder, FindsTheStepsOfMoreKernelsThanAreKept) {
  Program program(600);
  for (int i = 0; i < 100; ++i) {  // what comes before the loop: calls that are in no step
    program.put(TrackKind::Api, "CPU calls", span_at(SpanKind::Alloc, 4, program.now, program.now + 5));
    program.finder.take(StepAllocations{.allocations = 1});
    program.now += 10;
  }
  std::vector<TimeNs> begins;
  for (int i = 0; i < 5000; ++i) {
    begins.push_back(program.now + 2000);
    program.step();
    if (i % 1000 == 999) program.now += 1'000'000;  // an evaluation
  }
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 5000u);
  for (size_t i = 0; i < begins.size(); ++i) ASSERT_EQ(found.steps[i].start, begins[i]) << i;
  EXPECT_NEAR(found.allocator_calls_each, 2, 0.001);
  EXPECT_NEAR(found.us_each, 4.3 + 4 * 1000 / 5000., 0.01);
}

TEST(StepFinder, FindsTheStepsOfManyWindows) {
  Program program(600);
  for (int window = 0; window < 100; ++window) {
    program.step(true, 2);
    for (int i = 0; i < 20; ++i) program.step();
    program.untraced(50);
  }
  expect_steps_of(program.finder.find(), 100);
}

// What the loop does changes in mid-run: its second half has steps too.
TEST(StepFinder, FindsTheStepsOfAnotherLoopLaterOn) {
  Program program(600);
  for (int i = 0; i < 1000; ++i) program.step();
  for (int i = 0; i < 1000; ++i) {
    for (size_t k = 0; k < 3; ++k, program.now += 600)
      program.put(TrackKind::Stream, "GPU 0 stream 7",
                  span_at(SpanKind::Kernel, 3 - k, program.now, program.now + 500));
    program.now += 3000;
  }
  EXPECT_NEAR(static_cast<double>(program.finder.find().steps.size()), 2000, 160);
}

// It goes on in another stream: what is left of the first may not keep the finder from it.
TEST(StepFinder, FindsTheStepsOfAnotherStreamLaterOn) {
  Program program(600);
  for (int i = 0; i < 1000; ++i) program.step();
  for (int i = 0; i < 1000; ++i) {
    for (size_t k = 0; k < 4; ++k, program.now += 600)
      program.put(TrackKind::Stream, "GPU 0 stream 13", span_at(SpanKind::Kernel, k, program.now, program.now + 500));
    program.now += 2000;
  }
  EXPECT_NEAR(static_cast<double>(program.finder.find().steps.size()), 2000, 160);
}

// Calls without kernels may not be kept for ever either, nor looked through with each that comes.
TEST(StepFinder, CallsWithoutKernelsEnd) {
  Program program(600);
  for (int i = 0; i < 100'000; ++i, program.now += 10)
    program.put(TrackKind::Api, "CPU calls", span_at(SpanKind::Alloc, 4, program.now, program.now + 5));
  EXPECT_TRUE(program.finder.find().steps.empty());
}

// Where graphs are recorded as a whole, a step is what they are launched for: two of them here, and a kernel on another
// stream now and then.
TEST(StepFinder, FindsTheStepsOfGraphs) {
  Program program;
  const std::vector<std::string> names{"graph 3", "graph 5", "log"};
  const auto put = [&](TrackKind kind, const std::string& row, SpanKind what, size_t name, TimeNs begin, TimeNs ns) {
    const Span span = span_at(what, name, begin, begin + ns);
    program.finder.take(kind, row, {&span, 1}, names);
  };
  for (int i = 0; i < 300; ++i) {
    put(TrackKind::GraphLaunches, "GPU 0 stream 7", SpanKind::GraphRun, 0, i * 100'000, 40'000);
    put(TrackKind::GraphLaunches, "GPU 0 stream 7", SpanKind::GraphRun, 1, i * 100'000 + 41'000, 30'000);
    if (i % 100 == 0) put(TrackKind::Stream, "GPU 0 stream 9", SpanKind::Kernel, 2, i * 100'000 + 80'000, 2000);
  }
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 300u);
  EXPECT_NEAR(found.us_each, 100, 0.2);
}

TEST(StepFinder, EachLaunchOfTheOnlyGraphIsAStep) {
  StepFinder finder;
  const std::vector<std::string> names{"graph 3"};
  for (int i = 0; i < 40; ++i) {
    const Span span = span_at(SpanKind::GraphRun, 0, i * 1000, i * 1000 + 900);
    finder.take(TrackKind::GraphLaunches, "GPU 0 stream 7", {&span, 1}, names);
  }
  EXPECT_EQ(finder.find().steps.size(), 40u);
}

// A training on a GPU that is recorded: the host launches a forward and a backward kernel per step from two threads, and
// the records of each thread come in buffers of their own.
struct Recorded {
  static constexpr TimeNs kHost = 1'000'000, kGpu = 3'000'000;  // of a step
  explicit Recorded(bool reads) : waits(reads) {}
  bool waits;  // the host reads the loss of each step
  StepFinder finder;
  std::vector<FoundStep> shown;
  size_t replaced = 0;
  TimeNs host = 1000, gpu = 0;
  uint32_t call = 1;
  std::vector<Span> forward, backward;  // not flushed yet

  void put(TrackKind track, const std::string& row, const Span& span) { finder.take(track, row, {&span, 1}, kNames); }
  void launch(const std::string& thread, size_t name, TimeNs at, TimeNs ns, std::vector<Span>& buffer) {
    Span span = span_at(SpanKind::Api, 3, at, at + 5);
    span.meaning = static_cast<uint64_t>(Meaning::Launch), span.correlation = call;
    put(TrackKind::Api, thread, span);
    gpu = std::max(gpu, at + 100);
    Span kernel = span_at(SpanKind::Kernel, name, gpu, gpu + ns);
    kernel.correlation = call++;
    buffer.push_back(kernel);
    gpu += ns;
  }
  void step() {
    const TimeNs begin = host;
    launch("CPU main", 0, host + 1000, kGpu / 3, forward);
    launch("CPU autograd", 1, host + 2000, kGpu - kGpu / 3, backward);
    host = waits ? gpu + 50'000 : host + kHost;
    put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, begin, host));
  }
  // Those that the GPU has finished.
  void flush(std::vector<Span>& buffer, TimeNs until) {
    while (!buffer.empty() && buffer.front().end() <= until) put(TrackKind::Stream, "GPU 0 stream 7", buffer.front()), buffer.erase(buffer.begin());
  }
  void look() {
    const FoundSteps& found = finder.so_far(host);
    replaced += found.stayed < shown.size();
    ASSERT_LE(found.stayed, shown.size());
    shown.resize(found.stayed);
    shown.insert(shown.end(), found.steps.begin() + static_cast<std::ptrdiff_t>(found.stayed), found.steps.end());
  }
};

TEST(StepsOfARunningProgram, ComeAsTheGpuRanThem) {
  for (const bool waits : {true, false}) {
    Recorded program(waits);
    size_t before = 0;
    for (int i = 0; i < 400; ++i) {
      program.step();
      program.flush(program.forward, waits ? kAlways : program.host);
      if (i % 7 == 0) program.flush(program.backward, waits ? kAlways : program.host);
      program.look();
      if (i % 50 == 49) {
        EXPECT_GT(program.shown.size(), before) << i;
        before = program.shown.size();
      }
    }
    EXPECT_LE(program.replaced, 2u) << "who runs ahead is known after a few steps";
    // The GPU is three times slower than a host that does not wait. Of the steps that it has run, few are held back.
    EXPECT_GE(program.shown.size(), waits ? 390u : 120u);
    for (size_t i = 10; i < program.shown.size(); ++i)
      EXPECT_NEAR(static_cast<double>(program.shown[i].end - program.shown[i].start), Recorded::kGpu, 60'000) << i;
    program.flush(program.forward, kAlways), program.flush(program.backward, kAlways);
    const FoundSteps found = program.finder.find();
    ASSERT_EQ(found.steps.size(), 400u);
    EXPECT_EQ(found.stayed, program.shown.size()) << "the file has the same steps";
  }
}

// Launches of the last step have no kernel: it failed, or a graph captured them. Then its step waits for some seconds only.
TEST(StepsOfARunningProgram, DoNotWaitForeverForKernels) {
  Recorded program(true);
  for (int i = 0; i < 20; ++i) program.step(), program.flush(program.forward, kAlways), program.flush(program.backward, kAlways);
  program.step();
  program.backward.clear();
  for (int i = 0; i < 20; ++i) {
    program.step();
    program.flush(program.forward, kAlways), program.flush(program.backward, kAlways);
    program.look();
  }
  EXPECT_EQ(program.shown.size(), 20u);
  program.host += 10'000'000'000;
  program.look(), program.look();
  EXPECT_EQ(program.shown.size(), 40u);
  EXPECT_EQ(program.finder.find().stayed, 40u);
}

// What comes later changes steps that were shown: a kernel that came very late, and a range around several.
TEST(StepsOfARunningProgram, FollowLaterFacts) {
  Recorded program(false);
  const auto steps = [&program](int count) {
    for (int i = 0; i < count; ++i) {
      program.step();
      program.flush(program.forward, program.host), program.flush(program.backward, program.host);
      program.look();
    }
  };
  steps(60);
  const std::vector<FoundStep> before = program.shown;
  ASSERT_GT(before.size(), 15u);
  Span late = span_at(SpanKind::Kernel, 2, before[9].end, before[9].end + 10);
  late.correlation = 2 * 9 + 1;
  program.put(TrackKind::Stream, "GPU 0 stream 7", late);
  program.look();
  EXPECT_EQ(program.shown[9].end, before[9].end + 10);
  const size_t count = program.shown.size();
  program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, 1000 + 2 * Recorded::kHost, 1000 + 6 * Recorded::kHost));
  steps(2);
  ASSERT_GE(program.shown.size(), count - 3);
  EXPECT_EQ(program.shown[2].start, before[2].start);
  EXPECT_EQ(program.shown[2].end, before[5].end);
  EXPECT_EQ(program.shown[3].start, before[6].start);
  program.flush(program.forward, kAlways), program.flush(program.backward, kAlways);
  const FoundSteps found = program.finder.find();
  EXPECT_EQ(found.steps.size(), 62u - 3u);
  EXPECT_EQ(found.stayed, program.shown.size());
}

TEST(StepsOfARunningProgram, AreTheRepetitionsOfItsKernels) {
  Program program;
  std::vector<FoundStep> shown;
  size_t replaced = 0;
  for (int i = 0; i < 600; ++i) {
    program.step();
    if (i % 100 == 50) program.now += 1'000'000;  // an evaluation
    const FoundSteps& found = program.finder.so_far(program.now);
    replaced += found.stayed < shown.size();
    shown.resize(found.stayed);
    shown.insert(shown.end(), found.steps.begin() + static_cast<std::ptrdiff_t>(found.stayed), found.steps.end());
    if (i == 300) {
      EXPECT_GT(shown.size(), 250u);
    }
  }
  EXPECT_GT(shown.size(), 550u);
  EXPECT_EQ(replaced, 0u);
  const FoundSteps found = program.finder.find();
  EXPECT_EQ(found.steps.size(), 600u);
  EXPECT_EQ(found.stayed, shown.size());
}

TEST(StepsOfARunningProgram, ARecordingOfAnyLengthKeepsWhereTheGpuRanThem) {
  Recorded program(false);
  program.finder = StepFinder(200);
  for (int i = 0; i < 3000; ++i) {
    program.step();
    program.flush(program.forward, program.host), program.flush(program.backward, program.host);
    if (i % 10 == 0) program.look();
  }
  program.flush(program.forward, kAlways), program.flush(program.backward, kAlways);
  const FoundSteps found = program.finder.find();
  ASSERT_EQ(found.steps.size(), 3000u);
  EXPECT_EQ(found.steps[2500].end - found.steps[2500].start, Recorded::kGpu);
}

TEST(StepFinder, TheProgramsMarksComeBeforeRangesAndRepetitions) {
  Program program;
  for (uint32_t i = 0; i < 40; ++i) {
    Span mark = span_at(SpanKind::Step, 8, program.now, program.now + 8600);
    if (i % 10 != 0) mark.step = i + 1;  // an evaluation is no step
    program.step(), program.step();
    program.put(TrackKind::Steps, "CPU steps", mark);
    program.put(TrackKind::Ranges, "CPU ranges", span_at(SpanKind::Phase, 7, mark.start, mark.start + 4000));
    EXPECT_TRUE(program.finder.so_far(program.now).steps.empty()) << "whoever follows it has the marks";
  }
  const FoundSteps found = program.finder.find();
  EXPECT_TRUE(found.marked);
  EXPECT_STREQ(found.from(), "the program's marks");
  ASSERT_EQ(found.steps.size(), 36u);
  EXPECT_EQ(found.steps[0].step, 2u);
  EXPECT_EQ(found.steps[0].end - found.steps[0].start, 8600);
}

TEST(StepFinder, FindsNoneInNothing) {
  Program program;
  EXPECT_TRUE(program.finder.find().steps.empty());
  program.untraced(3);
  EXPECT_TRUE(program.finder.find().steps.empty());
}

TEST(ClockWindow, ReadsTimesWithUnits) {
  const ClockWindow window = clock_window("200ms/5s");
  EXPECT_EQ(window.open_ns, 200'000'000);
  EXPECT_EQ(window.every_ns, 5'000'000'000);
  EXPECT_EQ(to_text(window), "200 ms of every 5 s");
  EXPECT_EQ(to_text(clock_window("1.5s/2min")), "1500 ms of every 2 min");
  for (const char* wrong :
       {"", "5", "200ms", "200/5", "200ms/", "/5s", "5s/200ms", "5s/5s", "0s/5s", "-1s/5s", "1ms/5s", "200 ms/5 s",
        "1s/2h", "1s/5s/9s", "nans/5s", "infs/5s", "1e9s/1e10s", "1s/1.001s"})
    EXPECT_THROW(clock_window(wrong), Failure) << wrong;
}

TEST(ClockWindow, OpensAndCloses) {
  const ClockWindow window{200, 1000};
  EXPECT_TRUE(window.open(0));
  EXPECT_TRUE(window.open(199));
  EXPECT_FALSE(window.open(200));
  EXPECT_FALSE(window.open(999));
  EXPECT_TRUE(window.open(1000));
  EXPECT_EQ(window.until_change(50), 150);
  EXPECT_EQ(window.until_change(200), 800);
  EXPECT_EQ(window.until_change(1999), 1);
  EXPECT_TRUE(ClockWindow{}.open(123));
}

}  // namespace
}  // namespace ws::prof
