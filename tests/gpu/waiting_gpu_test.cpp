// Who waits for the GPU, and for how much of it.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/cuda/executor/step_tables.h"
#include "engine/devices/devices.h"
#include "engine/train/trainer.h"
#include "tests/gpu/executor_support.h"
#include "tests/gpu/held_gpu.h"

namespace ws::test {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kSteps = 4;

struct Warm {
  Training t;
  std::unique_ptr<Executor> executor;
  std::vector<StepResult> results;
  std::vector<float> rates;
  int64_t next = 0;

  explicit Warm(const ExecSpec& exec) {
    t.spec.model.hidden = {40, 24};
    t.spec.exec = exec;
    t.spec.exec.device = Device::Cuda;
    t.data = random_data(64 * kSteps, 28, 10, true);
    rates.assign(kSteps, 0.01f);
    const Model model = make_model(t.spec.model, 28, 10);
    executor = cuda::make_cuda_executor(device_info().name);
    executor->load(model, t.data, t.spec);
    executor->set_state(initial_state(model, t.spec));
    executor->bind(compile(t.spec, model, 64).plan);
    executor->begin_epoch(shuffled(64 * kSteps, 3));
    for (int i = 0; i < 3; ++i) run();  // kernels are loaded and graphs captured
    executor->results(results, true);
    EXPECT_EQ(results.size(), static_cast<size_t>(3 * kSteps));
  }
  void run() {
    executor->run(next, 0, rates);
    next += kSteps;
  }
};

std::vector<ExecSpec> ways(SyncPolicy sync) {
  std::vector<ExecSpec> all;
  for (const Fusion fusion : kFusions)
    for (const Launch launch : kLaunches)
      for (const Allocator allocator : {Allocator::StreamOrdered, Allocator::Caching, Allocator::Arena}) {
        ExecSpec exec;
        exec.sync = sync, exec.fusion = fusion, exec.launch = launch, exec.allocator = allocator;
        exec.graph_steps = 2;
        all.push_back(exec);
      }
  return all;
}

TEST(WaitingGpu, OnReadNeverStopsTheHost) {
  NEEDS_GPU();
  for (const ExecSpec& exec : ways(SyncPolicy::OnRead)) {
    SCOPED_TRACE(label(exec));
    Warm w(exec);
    const size_t known = w.results.size();
    HeldGpu held(10s);
    w.run();
    w.executor->results(w.results, false);
    w.executor->results(w.results, false);
    EXPECT_FALSE(held.released_by_itself()) << "run() waited for the GPU";
    EXPECT_EQ(w.results.size(), known) << "the GPU was not held";
    held.release();
    w.executor->results(w.results, true);
    EXPECT_EQ(w.results.size(), known + kSteps);
  }
}

// The same of a policy that does wait: what held the GPU above would have been seen.
TEST(WaitingGpu, TheOtherPoliciesDoStopTheHost) {
  NEEDS_GPU();
  for (const SyncPolicy sync : {SyncPolicy::EveryStep, SyncPolicy::EveryOp})
    for (const Launch launch : kLaunches) {
      RunSpec spec;
      spec.exec.sync = sync, spec.exec.launch = launch;
      if (why_invalid(spec, true)) continue;
      const ExecSpec& exec = spec.exec;
      Warm w(exec);
      SCOPED_TRACE(label(exec));
      HeldGpu held(200ms);
      w.run();
      EXPECT_TRUE(held.released_by_itself()) << "run() came back before the GPU could have done anything";
    }
}

// The trainer asks for the steps of the chunk before the newest, which goes on meanwhile.
TEST(WaitingGpu, CatchingUpWaitsForTheOlderStepsOnly) {
  NEEDS_GPU();
  cuda::StepTables tables;
  tables.create(true);
  const cuda::Stream stream = cuda::make_stream();
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<StepResult> results;
  const std::vector<float> rates(20, 0.1f);
  tables.announce(stream, 0, rates);
  tables.steps_enqueued(10);
  tables.catch_up(stream, results, 0);  // begins to copy the first ten
  std::atomic<bool> go = false, late = false;
  const auto wait_for_it = [](void* gate) {
    while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::sleep_for(1ms);
  };
  CUDA_CHECK(cudaLaunchHostFunc(stream, wait_for_it, &go));
  tables.steps_enqueued(20);
  std::thread watch([&] {
    for (int i = 0; i < 10000 && !go; ++i) std::this_thread::sleep_for(1ms);
    late = !go.exchange(true);
  });
  tables.catch_up(stream, results, 10);
  EXPECT_FALSE(late) << "waited for steps that nobody asked for";
  EXPECT_EQ(results.size(), 10u);
  tables.catch_up(stream, results, 10);
  EXPECT_EQ(results.size(), 10u) << "the newer steps are still running";
  go = true;
  tables.catch_up(stream, results, 20);
  EXPECT_EQ(results.size(), 20u);
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].step, static_cast<int64_t>(i));
  watch.join();
}

// So a GPU that is the slower one never runs out of work: when the results of a chunk arrive, the next is under way.
TEST(WaitingGpu, ARunThatTheGpuHoldsUpKeepsAChunkAhead) {
  NEEDS_GPU();
  Training t;
  t.spec.exec.device = Device::Cuda;
  t.spec.exec.launch = Launch::Graph;
  t.spec.exec.graph_steps = 8;
  t.spec.model.hidden = {2048, 2048};
  t.spec.train.batch = 512;
  t.spec.train.epochs = 60;
  t.spec.train.eval_every = 0;
  t.data = random_data(512 * 40, 64, 10, true);
  t.data.test = {};
  struct Sink : TrainSink {
    int64_t looks = 0, idle = 0;
    void progress(const Progress& p) override {
      if (p.started < 400 || p.started == p.steps) return;  // the first chunks are short ones
      ++looks;
      if (p.started == p.step) ++idle;
    }
  } sink;
  TrainControl control;
  TrainOptions options;
  options.progress_every_s = 0;
  const Summary summary = train(t.spec, t.data, control, sink, options);
  EXPECT_EQ(summary.status, RunStatus::Finished) << summary.message;
  EXPECT_EQ(summary.steps, 60 * 40);
  EXPECT_GT(sink.looks, 20);
  EXPECT_LT(sink.idle, sink.looks / 8) << "so often there was nothing left to do, of " << sink.looks;
}

}  // namespace
}  // namespace ws::test
