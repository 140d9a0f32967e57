// Every kernel is seen, once, under the op and step that launched it, in each launch mode and at each level.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "tests/gpu/profiling_support.h"

namespace ws::prof::testing {
namespace {

constexpr int kOps = 5;

void eager_steps(cudaStream_t stream, OpTag first, int64_t from, int64_t steps) {
  for (int64_t step = from; step < from + steps; ++step) {
    const StepScope step_scope(step);
    for (int i = 0; i < kOps; ++i) {
      const OpScope scope(static_cast<OpTag>(first + i));
      launch_empty(stream);
      if (i == 2) launch_other(stream);  // an op of two kernels
    }
  }
}

// One graph of `steps` steps, marked while it is captured.
cudaGraphExec_t capture(cudaStream_t stream, OpTag first, int steps, const std::function<void()>& also = {}) {
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < kOps; ++i) {
      const OpScope scope(static_cast<OpTag>(first + i));
      launch_empty(stream);
      if (i == 2) launch_other(stream);
      if (also) also();
    }
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  cudaGraphDestroy(graph);
  return exec;
}

void launch(cudaGraphExec_t exec, cudaStream_t stream, int64_t first, int64_t count) {
  if (auto* l = listener()) l->steps_launched(first, count);
  const StepScope scope(first);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
}

// Each (op, step) of the range has its kernels: one, or two for the third op.
void expect_complete(const std::vector<Span>& kernels, OpTag first, int64_t from, int64_t steps) {
  std::map<std::pair<uint32_t, OpTag>, int> seen;
  for (const Span& span : kernels) ++seen[{span.step, span.op}];
  int wrong = 0;
  for (int64_t step = from; step < from + steps; ++step) {
    for (int i = 0; i < kOps; ++i) {
      const int expected = i == 2 ? 2 : 1;
      wrong += seen[{static_cast<uint32_t>(step + 1), static_cast<OpTag>(first + i)}] != expected;
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(kernels.size(), static_cast<size_t>(steps * (kOps + 1)));
}

void expect_clean(const Gathered& g) {
  EXPECT_TRUE(g.status.gpu) << g.status.sentence;
  EXPECT_EQ(g.status.losses.dropped_records, 0u);
  EXPECT_EQ(g.status.losses.invalid_records, 0u);
}

using CollectorGpuTest = GpuTest;

TEST_F(CollectorGpuTest, EagerKernelsAreAllJoined) {
  const OpTag first = ops("eager", kOps);
  for (TraceLevel level : {TraceLevel::Graph, TraceLevel::Kernels, TraceLevel::Full}) {
    const Gathered g = gather({.level = level}, [&](Collector&) {
      eager_steps(stream_, first, 0, 1000);
      cudaStreamSynchronize(stream_);
    });
    SCOPED_TRACE(to_string(level));
    expect_clean(g);
    EXPECT_EQ(g.status.losses.unjoined_kernels, 0u);
    expect_complete(g.spans(TrackKind::Stream), first, 0, 1000);
    EXPECT_EQ(g.spans(TrackKind::Steps).size(), 1000u);
    EXPECT_EQ(g.spans(TrackKind::CpuThread).size(), 1000u * kOps);
  }
}

TEST_F(CollectorGpuTest, GraphKernelsAreJoinedToOpAndStep) {
  const OpTag first = ops("graph", kOps);
  constexpr int kPerGraph = 4, kLaunches = 250;
  const Gathered g = gather({.level = TraceLevel::Kernels}, [&](Collector&) {
    cudaGraphExec_t exec = capture(stream_, first, kPerGraph);
    for (int i = 0; i < kLaunches; ++i) launch(exec, stream_, i * kPerGraph, kPerGraph);
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(exec);
  });
  expect_clean(g);
  EXPECT_EQ(g.status.losses.unjoined_kernels, 0u);
  expect_complete(g.spans(TrackKind::Stream), first, 0, kPerGraph * kLaunches);
  for (const Span& span : g.spans(TrackKind::Stream)) ASSERT_TRUE(span.flags & kInGraph);
}

TEST_F(CollectorGpuTest, GraphLevelHasOneRecordALaunch) {
  const OpTag first = ops("whole", kOps);
  const Gathered g = gather({.level = TraceLevel::Graph}, [&](Collector&) {
    cudaGraphExec_t exec = capture(stream_, first, 2);
    for (int i = 0; i < 300; ++i) launch(exec, stream_, i * 2, 2);
    eager_steps(stream_, first, 600, 10);
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(exec);
  });
  expect_clean(g);
  const auto runs = g.spans(TrackKind::GraphLaunches);
  ASSERT_EQ(runs.size(), 300u);
  for (size_t i = 0; i < runs.size(); ++i) ASSERT_EQ(runs[i].step, i * 2 + 1);
  expect_complete(g.spans(TrackKind::Stream), first, 600, 10);
}

TEST_F(CollectorGpuTest, NodeWindowShowsTheKernelsOfItsSteps) {
  const OpTag first = ops("window", kOps);
  const Gathered g = gather({.level = TraceLevel::Graph, .node_window = 10, .node_every = 100}, [&](Collector&) {
    cudaGraphExec_t exec = capture(stream_, first, 1);
    for (int i = 0; i < 1000; ++i) launch(exec, stream_, i, 1);
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(exec);
  });
  expect_clean(g);
  EXPECT_EQ(g.status.losses.unjoined_kernels, 0u);
  std::map<uint32_t, int> kernels;
  for (const Span& span : g.spans(TrackKind::Stream)) ++kernels[span.step];
  for (const auto& [step, count] : kernels) EXPECT_EQ(count, kOps + 1) << "step " << step;
  EXPECT_EQ(kernels.size(), 100u);
  EXPECT_EQ(g.spans(TrackKind::GraphLaunches).size(),
            890u);  // one launch after each window brings the graph back to speed
}

// Launches queue up: a run of the graph that is still on its way when its kernels cease to be recorded must not get the
// ends of the run after it.
TEST_F(CollectorGpuTest, KernelsOfTheLastTracedGraphHaveTheirOwnEnds) {
  const OpTag first = ops("spin", kOps);
  constexpr uint64_t kNs = 40'000;
  const auto longest = [&](const CollectorOptions& options, TraceLevel later) {
    const Gathered g = gather(options, [&](Collector& collector) {
      cudaGraphExec_t exec = capture(stream_, first, 1, [&] { launch_spin(stream_, kNs); });
      for (int i = 0; i < 300; ++i) {
        if (i == 150) collector.set_level(later);
        launch(exec, stream_, i, 1);
      }
      cudaStreamSynchronize(stream_);
      cudaGraphExecDestroy(exec);
    });
    expect_clean(g);
    const auto kernels = g.named(TrackKind::Stream, "spin_kernel");
    EXPECT_GE(kernels.size(), 20u * kOps);
    uint64_t most = 0;
    for (const Span& span : kernels) most = std::max<uint64_t>(most, span.duration);
    return most;
  };
  EXPECT_LT(longest({.level = TraceLevel::Graph, .node_window = 5, .node_every = 50}, TraceLevel::Graph), 3 * kNs);
  EXPECT_LT(longest({.level = TraceLevel::Kernels}, TraceLevel::Steps), 3 * kNs);
}

TEST_F(CollectorGpuTest, LevelChangesWhileRunning) {
  const OpTag first = ops("switch", kOps);
  const Gathered g = gather({.level = TraceLevel::Graph}, [&](Collector& collector) {
    cudaGraphExec_t exec = capture(stream_, first, 1);
    int64_t step = 0;
    for (TraceLevel level :
         {TraceLevel::Steps, TraceLevel::Kernels, TraceLevel::Graph, TraceLevel::Off, TraceLevel::Full}) {
      cudaStreamSynchronize(stream_);
      collector.set_level(level);
      for (int i = 0; i < 100; ++i) launch(exec, stream_, step++, 1);
      cudaStreamSynchronize(stream_);
    }
    cudaGraphExecDestroy(exec);
  });
  std::map<uint32_t, int> kernels;
  for (const Span& span : g.spans(TrackKind::Stream)) kernels[(span.step - 1) / 100] += span.op != kNoOp;
  EXPECT_EQ(kernels[1], 100 * (kOps + 1));
  EXPECT_EQ(kernels[4], 100 * (kOps + 1));
  EXPECT_EQ(kernels.size(), 2u);
  EXPECT_EQ(g.spans(TrackKind::GraphLaunches).size(), 99u);  // as after a node window
  EXPECT_EQ(g.named(TrackKind::Api, "cudaGraphLaunch").size(), 100u);
}

// A graph made for kernel records cannot change to records of whole launches: it goes on by kernels, and that is said.
TEST_F(CollectorGpuTest, GraphsMadeForKernelRecordsKeepThem) {
  const OpTag first = ops("kept", kOps);
  std::string sentence;
  const Gathered g = gather({.level = TraceLevel::Kernels, .flush_ms = 20}, [&](Collector& collector) {
    cudaGraphExec_t exec = capture(stream_, first, 1);
    for (int i = 0; i < 100; ++i) launch(exec, stream_, i, 1);
    cudaStreamSynchronize(stream_);
    collector.set_level(TraceLevel::Graph);
    for (int i = 100; i < 200; ++i) launch(exec, stream_, i, 1);
    cudaStreamSynchronize(stream_);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sentence = collector.status().sentence;
    cudaGraphExecDestroy(exec);
  });
  std::map<uint32_t, int> kernels;
  for (const Span& span : g.spans(TrackKind::Stream)) kernels[(span.step - 1) / 100] += span.op != kNoOp;
  EXPECT_EQ(kernels[0], 100 * (kOps + 1));
  EXPECT_GE(kernels[1], 98 * (kOps + 1));  // the launches that were to bring it back to speed have none
  EXPECT_EQ(g.spans(TrackKind::GraphLaunches).size(), 0u);
  EXPECT_NE(sentence.find("every kernel"), std::string::npos) << sentence;
}

// Each session leaves the driver and comes back: nothing is lost or joined wrongly, and no buffers are left behind.
TEST_F(CollectorGpuTest, TracesAgainAfterItIsFreed) {
  const OpTag first = ops("again", kOps);
  constexpr int kPerGraph = 2;  // the driver may number a session's graphs as in the session before
  uint64_t buffers = 0;
  for (int session = 0; session < 6; ++session) {
    const TraceLevel level = session % 2 ? TraceLevel::Graph : TraceLevel::Kernels;
    const Gathered g = gather({.level = level}, [&](Collector&) {
      cudaGraphExec_t exec = capture(stream_, first, kPerGraph);
      for (int i = 0; i < 200; ++i) launch(exec, stream_, i * kPerGraph, kPerGraph);
      eager_steps(stream_, first, 200 * kPerGraph, 200);
      cudaStreamSynchronize(stream_);
      cudaGraphExecDestroy(exec);
    });
    SCOPED_TRACE(session);
    expect_clean(g);
    EXPECT_EQ(g.status.losses.unjoined_kernels, 0u);
    if (level == TraceLevel::Kernels) expect_complete(g.spans(TrackKind::Stream), first, 0, 200 * kPerGraph + 200);
    const size_t whole = level == TraceLevel::Graph ? 200 : 0;
    EXPECT_EQ(g.spans(TrackKind::GraphLaunches).size(), whole);
    if (session == 1) buffers = g.status.buffers_peak;
    EXPECT_LE(g.status.buffers_peak, session > 1 ? buffers + 2 : 100);
  }
}

// Tracing ends while another thread of the program goes on launching.
TEST_F(CollectorGpuTest, EndsWhileAnotherThreadLaunches) {
  const OpTag first = ops("beside", kOps);
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread other([&] {
    cudaStream_t mine = nullptr;
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    for (int i = 0; !stop; ++i) {
      launch_empty(mine);
      void* p = nullptr;
      if (i % 50 == 0) failures += cudaMalloc(&p, 4096) != cudaSuccess || cudaFree(p) != cudaSuccess;
      if (i % 200 == 0) failures += cudaStreamSynchronize(mine) != cudaSuccess;
    }
    failures += cudaStreamSynchronize(mine) != cudaSuccess;
    cudaStreamDestroy(mine);
  });
  for (int session = 0; session < 8; ++session) {
    const Gathered g = gather({.level = TraceLevel::Full}, [&](Collector&) {
      eager_steps(stream_, first, 0, 100);
      cudaStreamSynchronize(stream_);
    });
    size_t ours = 0;
    for (const Span& span : g.spans(TrackKind::Stream)) ours += span.step != 0;
    EXPECT_EQ(ours, 100u * (kOps + 1));
  }
  stop = true;
  other.join();
  EXPECT_EQ(failures, 0);
}

// What a rank does, while another one changes what is traced.
TEST_F(CollectorGpuTest, AThreadThatWaitsWhileTheLevelChangesKeepsItsOps) {
  constexpr int kSteps = 50;
  const OpTag first = ops("beside", kOps);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
  const Gathered g = gather({.level = TraceLevel::Full}, [&](Collector& collector) {
    launch_other(stream_);
    cudaStreamSynchronize(stream_);
    std::jthread beside([&] {
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      launch_spin(stream, 1'200'000'000);
      cudaStreamSynchronize(stream);
      eager_steps(stream, first, 0, kSteps);
      void* block = nullptr;
      cudaMalloc(&block, 4096);
      cudaFree(block);
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    });
    pause();
    collector.set_level(TraceLevel::Steps);
    pause();
    collector.set_level(TraceLevel::Full);
  });
  expect_clean(g);
  std::vector<Span> kernels = g.spans(TrackKind::Stream);
  std::erase_if(kernels, [&](const Span& span) { return span.op < first || span.op >= first + kOps; });
  expect_complete(kernels, first, 0, kSteps);
  for (const Span& call : g.named(TrackKind::Api, "cudaFree")) EXPECT_LT(call.duration, 2'000'000'000);
}

TEST_F(CollectorGpuTest, WaitsStandWithTheirStream) {
  const OpTag first = ops("waits", kOps);
  const Gathered g = gather({.level = TraceLevel::Full}, [&](Collector&) {
    for (int i = 0; i < 50; ++i) {
      eager_steps(stream_, first, i, 1);
      cudaStreamSynchronize(stream_);
    }
    cudaDeviceSynchronize();
  });
  EXPECT_EQ(g.named(TrackKind::StreamWaits, "host waits for the stream").size(), 50u);
  EXPECT_GE(g.named(TrackKind::StreamWaits, "host waits for the device").size(), 1u);
}

TEST_F(CollectorGpuTest, GraphsMadeBeforeTheCollectorDoNotHarmIt) {
  const OpTag first = ops("before", kOps);
  cudaGraphExec_t exec = capture(stream_, first, 1);
  for (TraceLevel level : {TraceLevel::Graph, TraceLevel::Kernels, TraceLevel::Graph}) {
    const Gathered g = gather({.level = level}, [&](Collector&) {
      for (int i = 0; i < 50; ++i) launch(exec, stream_, i, 1);
      cudaStreamSynchronize(stream_);
    });
    EXPECT_GE(g.spans(TrackKind::Stream).size() + g.spans(TrackKind::GraphLaunches).size(), 49u);
  }
  cudaGraphExecDestroy(exec);
}

TEST_F(CollectorGpuTest, DurationsAgreeWithTheDevice) {
  const OpTag first = ops("spin", 1);
  constexpr uint64_t kNs = 200'000;
  const Gathered g = gather({.level = TraceLevel::Kernels}, [&](Collector&) {
    for (int i = 0; i < 50; ++i) {
      const StepScope step(i);
      const OpScope scope(first);
      launch_spin(stream_, kNs);
      cudaStreamSynchronize(stream_);
    }
  });
  auto kernels = g.named(TrackKind::Stream, "spin_kernel");
  ASSERT_EQ(kernels.size(), 50u);
  std::ranges::sort(kernels, {}, [](const Span& s) { return uint64_t{s.duration}; });
  EXPECT_NEAR(static_cast<double>(kernels[25].duration), kNs, 0.02 * kNs);
  // On the host's time line a kernel lies inside the step that launched it and waited for it.
  for (const Span& step : g.spans(TrackKind::Steps)) {
    for (const Span& kernel : g.named(TrackKind::Stream, "spin_kernel")) {
      if (kernel.step != step.step) continue;
      EXPECT_GT(kernel.start, step.start - 20'000);
      EXPECT_LT(kernel.end(), step.end() + 20'000);
    }
  }
}

TEST_F(CollectorGpuTest, ResidentKernelIsDrawnFromStamps) {
  const OpTag first = ops("resident", 4);
  const OpTag kernel_op = ops("launch", 1);
  constexpr int kBlocks = 8, kSteps = 50, kPhases = 4;
  Stamp* stamps = nullptr;
  CUDA_OK(cudaMallocHost(reinterpret_cast<void**>(&stamps), sizeof(Stamp) * kBlocks * (kSteps * kPhases + 1)));
  const Gathered g = gather({.level = TraceLevel::Kernels}, [&](Collector&) {
    StampBoard::instance().announce();
    {
      const StepScope step(7);
      const OpScope scope(kernel_op);
      launch_resident(stream_, kBlocks, kSteps, kPhases, first, 8, stamps);
    }
    cudaStreamSynchronize(stream_);
    StampedLaunch launch;
    launch.kernel_op = kernel_op, launch.first_step = 8;
    for (int i = 0; i < kBlocks * (kSteps * kPhases + 1); ++i) {
      launch.stamps.push_back({stamps[i].globaltimer, stamps[i].step, stamps[i].op, stamps[i].block});
    }
    StampBoard::instance().add(std::move(launch));
  });
  const auto inner = g.spans(TrackKind::Inner);
  ASSERT_EQ(inner.size(), size_t{kBlocks} * kSteps * kPhases);
  const auto kernels = g.named(TrackKind::Stream, "resident_kernel");
  ASSERT_EQ(kernels.size(), 1u);
  for (const Span& span : inner) {
    EXPECT_GE(span.start, kernels[0].start);
    EXPECT_LE(span.end(), kernels[0].end());
    EXPECT_NE(span.op, kNoOp);
  }
  cudaFreeHost(stamps);
}

TEST_F(CollectorGpuTest, UntracedStretchesAreMeasuredAndDrawn) {
  const OpTag first = ops("paused", kOps);
  const Gathered g = gather({.level = TraceLevel::Kernels, .untraced_share = 0.2}, [&](Collector&) {
    for (int i = 0; i < 2000; ++i) {
      eager_steps(stream_, first, i * 100, 100);
      cudaStreamSynchronize(stream_);
    }
  });
  expect_clean(g);
  const Interval cost = g.status.tracing_cost;
  EXPECT_TRUE(cost.known());
  EXPECT_GT(cost.value, -0.1);
  EXPECT_LT(cost.value, 2);
  EXPECT_GE(g.named(TrackKind::Untraced, "untraced on purpose").size(), 1u);
  std::printf("tracing 5-op eager steps costs %.3f ± %.3f of a step\n", cost.value, cost.half_width);
}

TEST_F(CollectorGpuTest, HardwareCountersAreSampledBesideKernels) {
  const OpTag first = ops("counted", 1);
  const Gathered g = gather({.level = TraceLevel::Kernels, .hardware_counters = true}, [&](Collector&) {
    for (int i = 0; i < 1000; ++i) {
      const StepScope step(i);
      const OpScope scope(first);
      launch_spin(stream_, 300'000);
    }
    cudaStreamSynchronize(stream_);
  });
  EXPECT_EQ(g.named(TrackKind::Stream, "spin_kernel").size(), 1000u);
  std::printf("%s\n", g.status.counters.c_str());
  if (g.status.counters != "Samples hardware counters.") GTEST_SKIP() << g.status.counters;
  size_t samples = 0;
  double highest = 0;
  for (const CounterTrack& counter : g.trace.counters()) {
    if (counter.name != "SM active") continue;
    samples = counter.points.size();
    for (const CounterPoint& point : counter.points) highest = std::max(highest, point.value);
  }
  EXPECT_GT(samples, 150u);
  EXPECT_GT(highest, 0.1);  // one block on one of many multiprocessors
  EXPECT_LE(highest, 100);
}

}  // namespace
}  // namespace ws::prof::testing
