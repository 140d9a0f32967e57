// What the collector says of a training step, against what the engine counts and what a clock beside it says.
#include <cuda_runtime_api.h>

#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <thread>

#include "engine/cuda/executor/cuda_executor.h"
#include "engine/devices/devices.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/clock.h"
#include "tests/gpu/profiling_support.h"
#include "tests/support/step_times.h"
#include "tests/support/gpu.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws::prof::testing {
namespace {

RunSpec small_spec(Allocator allocator) {
  RunSpec spec;
  spec.model.hidden = {128, 64};
  spec.train.optimizer = Optimizer::Sgd;
  spec.exec.device = Device::Cuda;
  spec.exec.allocator = allocator;
  spec.exec.fusion = Fusion::Off;
  return spec;
}

// Trains in calls of as many steps as one likes; what happens in between is the test's.
class Trained {
 public:
  explicit Trained(const RunSpec& spec) : spec_(spec), data_(ws::test::random_data(2048, 100, 10, true)) {
    executor_ = cuda::make_cuda_executor(device_info().name);
    model_ = make_model(spec_.model, data_.features, data_.outputs);
    executor_->load(model_, data_, spec_);
    executor_->set_state(ws::test::initial_state(model_, spec_));
    std::vector<uint32_t> order(static_cast<size_t>(data_.train.rows));
    std::iota(order.begin(), order.end(), 0u);
    executor_->begin_epoch(order);
    bind(64);
  }
  void bind(int64_t batch) { executor_->bind(compile(spec_, model_, batch_ = batch).plan); }
  void run(int64_t steps, bool wait) {
    const std::vector<float> rates(static_cast<size_t>(steps), 1e-3f);
    if ((row_ + steps) * batch_ > data_.train.rows) row_ = 0;
    executor_->run(step_, row_ * batch_, rates);
    step_ += steps, row_ += steps;
    results_.clear();
    executor_->results(results_, wait);
  }
  int64_t step() const { return step_; }
  Executor& executor() { return *executor_; }

 private:
  RunSpec spec_;
  data::Dataset data_;
  Model model_;
  std::unique_ptr<Executor> executor_;
  std::vector<StepResult> results_;
  int64_t step_ = 0, row_ = 0, batch_ = 64;
};

struct Calls {
  int64_t blocks = 0, freed = 0;           // as the plan's ops asked
  int64_t from_driver = 0, to_driver = 0;  // what reached it
  bool operator==(const Calls&) const = default;
};
void PrintTo(const Calls& c, std::ostream* out) {
  *out << c.blocks << " blocks, " << c.freed << " freed, " << c.from_driver << " from the driver, " << c.to_driver
       << " back";
}

Calls difference(const AllocatorCalls& now, const AllocatorCalls& before) {
  return {now.allocate - before.allocate, now.free - before.free, now.device_allocate - before.device_allocate,
          now.device_free - before.device_free};
}

// By step, of the ops that allocate and free: a matrix product that tries its algorithms out takes memory of its own.
std::map<int64_t, Calls> as_collected(const Gathered& g, Allocator allocator) {
  std::map<int64_t, Calls> by_step;
  for (const StepAllocations& a : g.allocations) {
    if (a.step == 0 || op_info(a.op).meaning != Meaning::Allocation) continue;
    Calls& calls = by_step[int64_t{a.step} - 1];
    const bool async = allocator == Allocator::StreamOrdered;
    calls.from_driver += async ? a.async_allocations : a.allocations;
    calls.to_driver += async ? a.async_frees : a.frees;
  }
  for (const MemoryEvent& event : g.trace.memory()) {
    if (event.step == 0 || g.trace.memory_sources[event.source] != to_string(allocator)) continue;
    by_step[int64_t{event.step} - 1].blocks += event.kind == MemoryAction::Allocate;
    by_step[int64_t{event.step} - 1].freed += event.kind == MemoryAction::Free;
  }
  return by_step;
}

class AllocatorTruth : public ::testing::TestWithParam<std::tuple<Allocator, TraceLevel>> {};

TEST_P(AllocatorTruth, CountsOfEachStepEqualTheCountingDecorator) {
  NEEDS_GPU();
  const auto [allocator, level] = GetParam();
  std::map<int64_t, Calls> counted;
  const Gathered g = gather({.level = level}, [&, kind = allocator](Collector&) {
    Trained training(small_spec(kind));
    for (const int64_t batch : {64, 512, 100}) {  // the caching pool has to grow in between
      training.bind(batch);
      for (int i = 0; i < 20; ++i) {
        const AllocatorCalls before = training.executor().allocator_calls();
        const int64_t step = training.step();
        training.run(1, true);
        counted[step] = difference(training.executor().allocator_calls(), before);
        // Behind a pool of the driver's the decorator counts blocks; how often the pool grew is another matter.
        if (kind == Allocator::StreamOrdered)
          counted[step].from_driver = counted[step].blocks, counted[step].to_driver = counted[step].freed;
      }
    }
  });
  ASSERT_EQ(g.status.losses.dropped_records, 0u);
  ASSERT_TRUE(g.status.gpu) << g.status.sentence;
  auto collected = as_collected(g, allocator);
  int64_t blocks = 0, calls = 0;
  for (const auto& [step, expected] : counted) {
    EXPECT_EQ(collected[step], expected) << "step " << step;
    blocks += expected.blocks, calls += expected.from_driver;
  }
  EXPECT_EQ(collected.size(), counted.size()) << "no call in any other step";
  EXPECT_GE(blocks, 60 * 5) << "the steps allocate";
  EXPECT_GE(calls, 1);
  if (allocator == Allocator::Caching) {
    EXPECT_LT(calls, 60) << "most blocks come from the pool";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, AllocatorTruth,
    ::testing::Combine(::testing::Values(Allocator::Direct, Allocator::Caching, Allocator::StreamOrdered),
                       ::testing::Values(TraceLevel::Steps, TraceLevel::Kernels, TraceLevel::Full)),
    [](const auto& p) {
      std::string name(to_string(std::get<0>(p.param)));
      std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
      return name + "_" + to_string(std::get<1>(p.param));
    });

const CounterTrack* counter(const Trace& trace, const std::string& name) {
  for (const CounterTrack& track : trace.counters())
    if (track.name == name && !track.points.empty()) return &track;
  return nullptr;
}

// The engine's pool is its own, not the device's; nothing may be said of another one in its place.
TEST(PoolTruth, TheEnginesPoolKeepsWhatItReports) {
  NEEDS_GPU();
  for (const TraceLevel level : {TraceLevel::Steps, TraceLevel::Full}) {
    SCOPED_TRACE(to_string(level));
    int64_t kept = 0, first = 0;
    std::unique_ptr<Trained> training;  // outlives the trace: a pool that is gone holds nothing
    const Gathered g = gather({.level = level}, [&](Collector& collector) {
      training = std::make_unique<Trained>(small_spec(Allocator::StreamOrdered));
      training->run(1, true);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      first = steady_ns() - collector.status().origin_ns;
      const auto begin = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1200)) training->run(1, true);
      std::this_thread::sleep_for(std::chrono::milliseconds(900));  // records end, and the driver is asked twice
      kept = training->executor().memory().reserved;
    });
    ASSERT_GT(kept, 0);
    const CounterTrack* reserved = counter(g.trace, "pool reserved");
    const CounterTrack* used = counter(g.trace, "pool used");
    ASSERT_TRUE(reserved && used);
    size_t points = 0;
    for (const CounterPoint& point : reserved->points) {
      if (point.time < first) continue;
      ++points;
      ASSERT_GT(point.value, 0) << "at " << point.time;
    }
    EXPECT_GE(points, 5u);
    EXPECT_EQ(reserved->points.back().value, static_cast<double>(kept));
    EXPECT_EQ(used->points.back().value, 0) << "every step gives back what it took";
  }
}

struct Stretch {
  const char* name;
  Allocator allocator;
  Launch launch;
  SyncPolicy sync;
  int64_t steps;  // a call
};
void PrintTo(const Stretch& stretch, std::ostream* out) { *out << stretch.name; }

class StepParts : public ::testing::TestWithParam<Stretch> {};

// Between two looks at a clock that the trace knows nothing of.
TEST_P(StepParts, SumToTheTimeThatAClockBesideThemMeasures) {
  NEEDS_GPU();
  const Stretch& way = GetParam();
  constexpr int kWarmUp = 100, kCalls = 1500;
  int64_t first = 0, last = 0;
  double wall_ns = 0;
  const Gathered g = gather({.level = TraceLevel::Full}, [&](Collector&) {
    RunSpec spec = small_spec(way.allocator);
    spec.exec.launch = way.launch, spec.exec.sync = way.sync, spec.exec.graph_steps = way.steps;
    Trained training(spec);
    for (int i = 0; i < kWarmUp; ++i) training.run(way.steps, true);
    first = training.step();
    const auto begin = std::chrono::high_resolution_clock::now();
    for (int i = 0; i < kCalls; ++i) training.run(way.steps, true);
    wall_ns = std::chrono::duration<double, std::nano>(std::chrono::high_resolution_clock::now() - begin).count();
    last = training.step();
    training.run(way.steps, true);
  });
  ASSERT_EQ(g.status.losses.dropped_records, 0u);
  double sum = 0, work = 0;
  int64_t steps = 0;
  for (const StepTimes& step : step_times(g.trace)) {
    if (step.step < first || step.step >= last) continue;
    for (const int64_t part : step.parts.times) {
      EXPECT_GE(part, 0);
      sum += static_cast<double>(part);
    }
    work += static_cast<double>(step.parts.kernels());
    steps += step.parts.steps;
  }
  std::printf("%s: %lld steps, parts %.3f ms, clock %.3f ms (%+.4f %%), kernels %.1f %%\n", way.name,
              static_cast<long long>(steps), sum * 1e-6, wall_ns * 1e-6, 100 * (sum / wall_ns - 1),
              100 * work / wall_ns);
  EXPECT_EQ(steps, last - first);
  EXPECT_NEAR(sum / wall_ns, 1, 1e-3);
  EXPECT_GT(work, 0.01 * wall_ns);
}

INSTANTIATE_TEST_SUITE_P(Ways, StepParts,
                         ::testing::Values(Stretch{"direct", Allocator::Direct, Launch::Eager, SyncPolicy::EveryOp, 1},
                                           Stretch{"caching", Allocator::Caching, Launch::Eager, SyncPolicy::OnRead, 1},
                                           Stretch{"pool", Allocator::StreamOrdered, Launch::Eager,
                                                   SyncPolicy::EveryStep, 1},
                                           Stretch{"graph", Allocator::Arena, Launch::Graph, SyncPolicy::OnRead, 16}),
                         [](const auto& way) { return std::string(way.param.name); });

// ---- inside a kernel that runs many steps ----

struct InsideCase {
  const char* name;
  std::vector<int64_t> hidden;
  size_t lanes_a_block;
};
class InsidePersistent : public ::testing::TestWithParam<InsideCase> {};

// The spans of one lane in one launch follow each other without a gap: their sum is the time between first and last.
void expect_seamless(const std::vector<Span>& spans, const std::vector<Span>& kernels, int64_t steps_each, int64_t& steps) {
  std::map<size_t, std::vector<Span>> by_launch;
  for (const Span& span : spans) {
    const auto inside = std::ranges::find_if(
        kernels, [&](const Span& k) { return span.start >= k.start && span.end() <= k.end(); });
    ASSERT_NE(inside, kernels.end()) << "a part lies outside of every kernel";
    by_launch[static_cast<size_t>(inside - kernels.begin())].push_back(span);
  }
  EXPECT_EQ(by_launch.size(), kernels.size());
  for (auto& [launch, parts] : by_launch) {
    std::ranges::sort(parts, {}, [](const Span& s) { return TimeNs{s.start}; });
    std::set<uint32_t> numbers;
    double sum = 0;
    for (const Span& part : parts) sum += static_cast<double>(part.duration), numbers.insert(part.step);
    const auto wall = static_cast<double>(parts.back().end() - parts.front().start);
    EXPECT_NEAR(sum / wall, 1, 0.005);
    EXPECT_EQ(static_cast<int64_t>(numbers.size()), steps_each);
    steps += static_cast<int64_t>(numbers.size());
  }
}

TEST_P(InsidePersistent, EveryLaneReportsWhatItDoesAndLeavesNothingOut) {
  NEEDS_GPU();
  constexpr int kLaunches = 4, kSteps = 20, kStamped = 16;
  RunSpec spec = small_spec(Allocator::Arena);
  spec.model.hidden = GetParam().hidden;
  spec.exec.fusion = Fusion::Epilogue, spec.exec.launch = Launch::Persistent;
  const auto train = [&](Trained& training) {
    for (int i = 0; i < kLaunches; ++i) training.run(kSteps, true);
    return training.executor().state();
  };
  Trained plain(spec);
  const TrainState want = train(plain);
  TrainState got;
  const Gathered g = gather({.level = TraceLevel::Kernels}, [&](Collector&) {
    Trained traced(spec);
    got = train(traced);
  });
  for (size_t i = 0; i < want.parameters.size(); ++i) EXPECT_EQ(got.parameters[i], want.parameters[i]) << "stamps change nothing";
  // In each launch the first steps run in a kernel with stamps, the rest in one without.
  const std::vector<Span> launched = g.named(TrackKind::Stream, "ws_train");
  ASSERT_EQ(launched.size(), size_t{2 * kLaunches});
  std::vector<Span> kernels;
  for (size_t i = 0; i < launched.size(); i += 2) kernels.push_back(launched[i]);
  size_t lanes = 0;
  double waits = 0, all = 0;
  for (const Track& track : g.trace.tracks()) {
    if (track.kind != TrackKind::Inner) continue;
    ++lanes;
    EXPECT_EQ(track.name.rfind("SM ", 0), 0u) << track.name;
    std::vector<Span> spans;
    for (const SpanBlock& block : track.blocks) spans.insert(spans.end(), block.spans.begin(), block.spans.end());
    int64_t steps = 0;
    expect_seamless(spans, kernels, kStamped, steps);
    EXPECT_EQ(steps, kLaunches * kStamped);
    for (const Span& span : spans) {
      EXPECT_NE(span.op, kNoOp);
      all += static_cast<double>(span.duration);
      if (op_info(span.op).meaning == Meaning::Sync) waits += static_cast<double>(span.duration);
    }
  }
  EXPECT_GE(lanes, GetParam().lanes_a_block);
  EXPECT_EQ(lanes % GetParam().lanes_a_block, 0u);
  std::printf("%s: %zu lanes, %.0f %% of their time is waits\n", GetParam().name, lanes, 100 * waits / all);
  const Breakdown parts = breakdown(g.trace, kernels.front().start, kernels.front().end());
  for (const Meaning meaning : {Meaning::Matrix, Meaning::Loss, Meaning::Optimizer, Meaning::Sync})
    EXPECT_GT(parts.times[static_cast<size_t>(meaning)], 0) << meaning_name(meaning);
}

INSTANTIATE_TEST_SUITE_P(Forms, InsidePersistent,
                         ::testing::Values(InsideCase{"cluster", {64}, 2}, InsideCase{"grid", {96, 96}, 1}),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace ws::prof::testing
