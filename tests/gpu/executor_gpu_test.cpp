// Every way of running a step on the GPU ends where the CPU interpreter ends.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "engine/cpu/cpu_executor.h"
#include "engine/devices/devices.h"
#include "profiling/base/clock.h"
#include "tests/gpu/executor_support.h"

namespace ws::test {
namespace {

Training small_training(int64_t batch) {
  Training t;
  t.spec.model.hidden = {40, 24};
  t.spec.train.lr = 0.05;
  t.spec.exec.device = Device::Cuda;
  t.batch = batch;
  t.data = random_data(3 * batch + std::min<int64_t>(batch - 1, 5), 28, 10, true);
  return t;
}

void expect_equal_to_oracle(const Training& t, const Outcome& want) {
  if (why_invalid(t.spec, true)) return;
  SCOPED_TRACE(label(t.spec.exec) + ", batch " + std::to_string(t.batch));
  const Outcome got = train_on_gpu(t);
  const double allowed = tolerance(t.spec.exec.precision);
  EXPECT_LT(distance(got, want, t), allowed);
  expect_same_losses(got, want, allowed);
}

void expect_equal_however_launched(Training& t, const Outcome& want, Combinations& combinations) {
  for (const Launch launch : kLaunches)
    for (const Precision precision : kPrecisions) {
      if (combinations.leave_out()) continue;
      t.spec.exec.launch = launch;
      t.spec.exec.precision = precision;
      expect_equal_to_oracle(t, want);
    }
}

TEST(ExecutorGpu, EveryLevelAndLaunchAndPrecisionOnOddRows) {
  NEEDS_GPU();
  Combinations combinations;
  for (const int64_t batch : {1, 3, 7, 127, 1000}) {
    Training t = small_training(batch);
    const Outcome want = train_on_oracle(t);
    for (const Fusion fusion : kFusions)
      for (const Launch launch : kLaunches)
        for (const Precision precision : kPrecisions) {
          if (combinations.leave_out()) continue;
          t.spec.exec.fusion = fusion;
          t.spec.exec.launch = launch;
          t.spec.exec.precision = precision;
          t.spec.exec.graph_steps = batch % 2 ? 1 : 2;
          expect_equal_to_oracle(t, want);
        }
  }
}

// Beyond some thousand rows the output layer takes over what separate products made.
TEST(ExecutorGpu, LargeBatches) {
  NEEDS_GPU();
  Combinations combinations;
  for (const bool bias : {true, false})
    for (const int64_t hidden : {100, 200}) {
      Training t = small_training(1500);
      t.data = random_data(3003, 28, 10, true);
      t.spec.model.hidden = {hidden};
      t.spec.model.bias = bias;
      const Outcome want = train_on_oracle(t);
      expect_equal_however_launched(t, want, combinations);
    }
}

TEST(ExecutorGpu, EveryActivationOptimizerAndLoss) {
  NEEDS_GPU();
  Combinations combinations;
  for (const Activation activation :
       {Activation::None, Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu})
    for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
      for (const LossKind loss : {LossKind::CrossEntropy, LossKind::MeanSquared}) {
        if (combinations.leave_out()) continue;
        Training t = small_training(33);
        t.data = random_data(120, 28, 10, loss == LossKind::CrossEntropy);
        t.spec.model.activation = activation;
        t.spec.model.loss = loss;
        t.spec.train.optimizer = optimizer;
        t.spec.train.weight_decay = 0.01;
        if (optimizer == Optimizer::Adam) t.spec.train.lr = 1e-3;
        SCOPED_TRACE(std::string(to_string(activation)) + " " + std::string(to_string(optimizer)) + " " +
                     std::string(to_string(loss)));
        const Outcome want = train_on_oracle(t);
        for (const Fusion fusion : kFusions) {
          t.spec.exec.fusion = fusion;
          expect_equal_to_oracle(t, want);
        }
      }
}

TEST(ExecutorGpu, WithoutBiasesAndWithTheLearnersProducts) {
  NEEDS_GPU();
  Training t = small_training(50);
  t.spec.model.bias = false;
  const Outcome want = train_on_oracle(t);
  for (const Matmul matmul : {Matmul::Library, Matmul::Tiled, Matmul::Naive})
    for (const Fusion fusion : kFusions) {
      t.spec.exec.matmul = matmul;
      t.spec.exec.fusion = fusion;
      expect_equal_to_oracle(t, want);
    }
}

TEST(ExecutorGpu, WideLayersThatGoThroughTheLibrary) {
  NEEDS_GPU();
  Training t = small_training(256);
  t.spec.model.hidden = {1536, 1536};
  t.data = random_data(600, 784, 10, true);
  const Outcome want = train_on_oracle(t);
  Combinations combinations;
  expect_equal_however_launched(t, want, combinations);
}

// Which kernels a product takes is known only when the library was asked; a plan that is shown says it.
TEST(ExecutorGpu, ReportsWhichKernelsProductsTake) {
  NEEDS_GPU();
  Training t = small_training(256);
  t.spec.model.hidden = {1536, 1536};
  t.data = random_data(600, 784, 10, true);
  const auto executor = cuda::make_cuda_executor(device_info().name);
  train_on(*executor, t);
  const Model model = make_model(t.spec.model, 784, 10);
  const Plan plan = compile(t.spec, model, 256).plan;
  executor->bind(plan);
  const std::vector<std::string> notes = executor->notes();
  ASSERT_EQ(notes.size(), plan.ops.size());
  int products = 0;
  for (size_t i = 0; i < notes.size(); ++i) {
    EXPECT_EQ(notes[i].empty(), plan.ops[i].kind != OpKind::MatMul) << plan.ops[i].name;
    if (!notes[i].empty()) ++products;
  }
  EXPECT_GT(products, 0);
}

TEST(ExecutorGpu, AllocatorsAndSyncPoliciesGiveTheSameBits) {
  NEEDS_GPU();
  Training t = small_training(127);
  Combinations combinations;
  for (const Fusion fusion : kFusions)
    for (const Launch launch : kLaunches)
      for (const Precision precision : kPrecisions) {
        if (combinations.leave_out()) continue;
        t.spec.exec = ExecSpec{};
        t.spec.exec.fusion = fusion, t.spec.exec.launch = launch, t.spec.exec.precision = precision;
        const Outcome want = train_on_gpu(t);
        for (const Allocator allocator : kAllocators)
          for (const SyncPolicy sync : kSyncs) {
            t.spec.exec.allocator = allocator, t.spec.exec.sync = sync;
            if (why_invalid(t.spec, true)) continue;
            EXPECT_TRUE(same_bits(train_on_gpu(t), want)) << label(t.spec.exec);
          }
      }
}

Training line_training(int64_t points, int64_t batch) {
  Training t;
  t.spec.model.kind = ModelKind::Linear;
  t.spec.model.loss = LossKind::MeanSquared;
  t.spec.train.optimizer = Optimizer::Sgd;
  t.spec.train.lr = 0.1;
  t.batch = batch;
  t.epochs = 3;
  t.order_seed = batch == points ? 0 : 3;
  t.data = random_data(points, 1, 1, false);
  return t;
}

TEST(ExecutorGpu, TheLineInEveryForm) {
  NEEDS_GPU();
  Combinations combinations;
  for (const int64_t points : {1, 3, 1000, 100003, 200003})
    for (const int64_t batch : {points, (points + 2) / 3}) {
      Training t = line_training(points, batch);
      const Outcome want = train_on_oracle(t);
      for (const Fusion fusion : kFusions)
        for (const Launch launch : kLaunches) {
          if (combinations.leave_out()) continue;
          t.spec.exec.fusion = fusion, t.spec.exec.launch = launch;
          SCOPED_TRACE(std::to_string(points) + " points");
          expect_equal_to_oracle(t, want);
        }
    }
}

// A batch of all points: one launch of a graph runs many steps, and yet each has its loss and its rate.
TEST(ExecutorGpu, TheLineForManyStepsAtOnce) {
  NEEDS_GPU();
  Combinations combinations;
  for (const int64_t points : {7, 50000, 150001, 1000000})
    for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
      Training t = line_training(points, points);
      t.spec.train.optimizer = optimizer;
      t.spec.exec.launch = Launch::Graph;
      t.epochs = 1;
      t.steps_an_epoch = 37;
      const Outcome want = train_on_oracle(t);
      for (const int64_t graph_steps : {1, 16}) {
        if (combinations.leave_out()) continue;
        t.spec.exec.graph_steps = graph_steps;
        SCOPED_TRACE(std::to_string(points) + " points, " + std::to_string(graph_steps) + " steps a graph");
        expect_equal_to_oracle(t, want);
      }
    }
}

TEST(ExecutorGpu, APlaneThroughPoints) {
  NEEDS_GPU();
  Training t = line_training(500, 500);
  t.data = random_data(500, 3, 1, false);
  const Outcome want = train_on_oracle(t);
  for (const Fusion fusion : kFusions) {
    t.spec.exec.fusion = fusion;
    expect_equal_to_oracle(t, want);
  }
}

TEST(ExecutorGpu, AllocatorCallsEqualThePlan) {
  NEEDS_GPU();
  Training t = small_training(64);
  const int64_t steps = slow_gpu() ? 8 : 40;  // an epoch
  t.data = random_data(64 * steps, 28, 10, true);
  const Model model = make_model(t.spec.model, 28, 10);
  for (const Allocator allocator : kAllocators) {
    t.spec.exec.allocator = allocator;
    const Plan plan = compile(t.spec, model, 64).plan;
    const auto pairs = std::ranges::count(plan.ops, OpKind::Alloc, &Op::kind);
    t.epochs = 1;
    const Outcome one = train_on_gpu(t);
    t.epochs = 3;
    const Outcome three = train_on_gpu(t);
    SCOPED_TRACE(std::string(to_string(allocator)));
    EXPECT_EQ(three.calls.allocate, 3 * steps * pairs);
    EXPECT_EQ(three.calls.free, 3 * steps * pairs);
    if (allocator == Allocator::Direct) {
      EXPECT_EQ(three.calls.device_allocate, 3 * steps * pairs);
      EXPECT_EQ(three.calls.device_free, 3 * steps * pairs);
    } else {
      EXPECT_EQ(three.calls.device_allocate, one.calls.device_allocate) << "asked the device after the first epoch";
      EXPECT_EQ(three.calls.device_free, 0);
    }
    if (allocator == Allocator::Arena) {
      EXPECT_EQ(pairs, 0);
      EXPECT_EQ(three.calls.device_allocate, 1);
    }
    EXPECT_GT(three.memory.peak, 0);
    EXPECT_GE(three.memory.peak_reserved, three.memory.peak);
  }
}

// A graph asks its allocator while it is captured, once for each step that it holds, and never again.
TEST(ExecutorGpu, AllocatorCallsOfGraphsComeFromTheirCapture) {
  NEEDS_GPU();
  Training t = small_training(64);
  t.data = random_data(64 * (slow_gpu() ? 8 : 40), 28, 10, true);
  t.spec.exec.launch = Launch::Graph;
  const Model model = make_model(t.spec.model, 28, 10);
  for (const Allocator allocator : {Allocator::StreamOrdered, Allocator::Caching, Allocator::Arena})
    for (const int64_t graph_steps : {1, 8}) {
      t.spec.exec.allocator = allocator;
      t.spec.exec.graph_steps = graph_steps;
      if (why_invalid(t.spec, true)) continue;
      SCOPED_TRACE(label(t.spec.exec) + ", " + std::to_string(graph_steps) + " steps a graph");
      const Plan plan = compile(t.spec, model, 64).plan;
      const auto pairs = std::ranges::count(plan.ops, OpKind::Alloc, &Op::kind);
      t.epochs = 1;  // of a multiple of eight steps: every graph holds as many
      const Outcome one = train_on_gpu(t);
      t.epochs = 4;
      const Outcome four = train_on_gpu(t);
      EXPECT_EQ(one.calls.allocate, graph_steps * pairs) << "one graph was captured";
      EXPECT_EQ(one.calls.free, one.calls.allocate);
      EXPECT_EQ(four.calls.allocate, one.calls.allocate) << "no step of a later epoch asks";
      EXPECT_GT(one.calls.device_allocate, 0) << "the memory came from somewhere";
      EXPECT_EQ(four.calls.device_allocate, one.calls.device_allocate) << "asked the device after the first epoch";
      EXPECT_EQ(four.calls.device_free, 0);
      EXPECT_GT(four.memory.reserved, 0);
      EXPECT_GE(four.memory.peak_reserved, four.memory.peak);
      if (allocator == Allocator::Arena) {
        EXPECT_EQ(pairs, 0);
        EXPECT_EQ(four.calls.device_allocate, 1);
      } else {
        EXPECT_GT(pairs, 0);
      }
    }
}

TEST(ExecutorGpu, PlansChangeBetweenSteps) {
  NEEDS_GPU();
  Training t = small_training(32);
  const Outcome want = train_on_oracle(t);
  const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
  const auto executor = cuda::make_cuda_executor(device_info().name);
  executor->load(model, t.data, t.spec);
  executor->set_state(initial_state(model, t.spec));
  executor->begin_epoch(shuffled(t.data.train.rows, t.order_seed));
  const auto lr = static_cast<float>(t.spec.train.lr);
  const Allocator order[] = {Allocator::Direct, Allocator::Arena, Allocator::Caching};
  for (int64_t step = 0; step < 3; ++step) {
    t.spec.exec.allocator = order[step];
    t.spec.exec.fusion = kFusions[step];
    executor->bind(compile(t.spec, model, 32).plan);
    executor->run(step, step * 32, std::vector<float>{lr * (1.f - 0.05f * static_cast<float>(step))});
  }
  std::vector<StepResult> results;
  executor->results(results, true);
  ASSERT_EQ(results.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(results[i].loss, want.results[i].loss, 1e-4);
}

TEST(ExecutorGpu, EvaluatesAndPredictsLikeTheOracle) {
  NEEDS_GPU();
  for (const Precision precision : kPrecisions)
    for (const bool classes : {true, false}) {
      Training t = small_training(64);
      t.data = random_data(20011, 28, 10, classes);
      t.spec.model.loss = classes ? LossKind::CrossEntropy : LossKind::MeanSquared;
      t.spec.exec.precision = precision;
      const Model model = make_model(t.spec.model, 28, 10);
      const auto gpu = cuda::make_cuda_executor(device_info().name), cpu = make_oracle();
      for (Executor* executor : {gpu.get(), cpu.get()}) {
        executor->load(model, t.data, t.spec);
        executor->set_state(initial_state(model, t.spec));
        executor->bind(compile(t.spec, model, 64).plan);
      }
      const double allowed = tolerance(precision);
      for (const Part part : {Part::Train, Part::Test}) {
        const Evaluation got = gpu->evaluate(part), want = cpu->evaluate(part);
        EXPECT_EQ(got.rows, want.rows);
        EXPECT_NEAR(got.loss, want.loss, allowed * want.loss);
        if (classes) {
          EXPECT_NEAR(got.accuracy, want.accuracy, 2 * allowed);
        }
      }
      const auto got = gpu->predict({t.data.test.x.data(), 28 * 129}, 129),
                 want = cpu->predict({t.data.test.x.data(), 28 * 129}, 129);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 4 * allowed * (1 + std::abs(want[i])));
    }
}

TEST(ExecutorGpu, WhatGraphsAllocatedGoesBackWithTheRun) {
  NEEDS_GPU();
  Training t = small_training(32);
  t.spec.exec.allocator = Allocator::StreamOrdered;
  t.spec.exec.launch = Launch::Graph;
  train_on_gpu(t);
  uint64_t reserved = 1;
  ASSERT_EQ(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &reserved), cudaSuccess);
  EXPECT_EQ(reserved, 0u);
}

TEST(ExecutorGpu, MoreStepsThanTheRingOfResultsHolds) {
  NEEDS_GPU();
  Training t = small_training(1);
  t.spec.model.hidden = {4};
  t.data = random_data(20000, 4, 3, true);
  t.spec.exec.launch = Launch::Graph;
  t.spec.exec.graph_steps = 100;
  t.epochs = 2;
  const Outcome got = train_on_gpu(t);
  ASSERT_EQ(got.results.size(), 40000u);
  for (size_t i = 0; i < got.results.size(); ++i) ASSERT_EQ(got.results[i].step, static_cast<int64_t>(i));
}

// A host that looks late sees several stretches of steps at once. They still ended one after the other.
TEST(ExecutorGpu, StepsEndWhenTheGpuEndsThem) {
  NEEDS_GPU();
  constexpr int64_t kChunk = 500, kChunks = 12;
  Training t = small_training(32);
  t.spec.exec.launch = Launch::Graph;
  t.spec.exec.graph_steps = 50;
  t.data = random_data(32 * kChunk, 100, 10, true);
  const auto executor = cuda::make_cuda_executor(device_info().name);
  const Model model = make_model(t.spec.model, t.data.features, t.data.outputs);
  executor->load(model, t.data, t.spec);
  executor->set_state(initial_state(model, t.spec));
  executor->begin_epoch(shuffled(t.data.train.rows, 0));
  executor->bind(compile(t.spec, model, 32).plan);
  const std::vector<float> rates(kChunk, 1e-3f);
  std::vector<StepResult> results;
  double begin = 0;
  for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
    executor->run(chunk * kChunk, 0, rates);
    executor->catch_up(results, chunk * kChunk);
    std::this_thread::sleep_for(std::chrono::milliseconds(chunk == 8 ? 200 : 0));
    if (chunk == 0) executor->results(results, true), begin = prof::steady_seconds();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  executor->results(results, true);
  ASSERT_EQ(results.size(), size_t{kChunk * kChunks});
  std::set<double> ends;
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_GE(results[i].finished_s, results[i - 1].finished_s);
    ends.insert(results[i].finished_s);
  }
  // From chunk 1 to chunk 8 the GPU was never without work; neither was it from 9 to 11.
  const auto end_of = [&](int64_t chunk) { return results[static_cast<size_t>((chunk + 1) * kChunk - 1)].finished_s; };
  const double busy = end_of(8) - begin, last = end_of(11) - end_of(9);
  std::printf("a chunk takes %.3f ms, at the end %.3f ms\n", 1e3 * busy / 8, 1e3 * last / 2);
  EXPECT_NEAR(last / 2, busy / 8, 0.25 * busy / 8);
  EXPECT_GE(ends.size(), 6u);
}

}  // namespace
}  // namespace ws::test
