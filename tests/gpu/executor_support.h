// Runs the same training on two executors and compares where they end.
#pragma once
#include <cmath>
#include <cstring>

#include "engine/cpu/cpu_executor.h"
#include "engine/cuda/executor/cuda_executor.h"
#include "engine/devices/devices.h"
#include "tests/support/gpu.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws::test {

struct Outcome {
  TrainState state;
  std::vector<StepResult> results;
  AllocatorCalls calls;
  MemoryUse memory;
};

struct Training {
  RunSpec spec;
  data::Dataset data;
  int64_t batch = 32;
  int epochs = 1;              // each over all rows, the rest of them as a smaller batch
  int64_t steps_an_epoch = 0;  // 0: as many as there are batches; more for a batch of all rows
  unsigned order_seed = 3;
};

inline std::vector<uint32_t> shuffled(int64_t rows, unsigned seed) {
  std::vector<uint32_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 rng(seed);
  if (seed) std::shuffle(order.begin(), order.end(), rng);
  return order;
}

inline Outcome train_on(Executor& executor, const Training& t) {
  const Model model = make_model(t.spec.model, t.data);
  executor.load(model, t.data, t.spec);
  executor.set_state(initial_state(model, t.spec));
  const int64_t rows = t.data.train.rows, whole = rows / t.batch, rest = rows % t.batch;
  const Plan full = compile(t.spec, model, t.batch).plan;
  const Plan tail = rest ? compile(t.spec, model, rest).plan : Plan{};
  Outcome outcome;
  int64_t step = 0;
  for (int epoch = 0; epoch < t.epochs; ++epoch) {
    executor.begin_epoch(shuffled(rows, t.order_seed ? t.order_seed + static_cast<unsigned>(epoch) : 0));
    executor.bind(full);
    const auto lr = static_cast<float>(t.spec.train.lr);
    std::vector<float> lrs;
    const int64_t steps = t.steps_an_epoch ? t.steps_an_epoch : whole;
    for (int64_t i = 0; i < steps; ++i) lrs.push_back(lr * (1.f - 0.05f * static_cast<float>((step + i) % 7)));
    executor.run(step, 0, lrs);
    step += steps;
    if (rest) {
      executor.bind(tail);
      executor.run(step++, whole * t.batch, std::vector<float>{lr});
    }
    executor.results(outcome.results, false);
  }
  executor.results(outcome.results, true);
  outcome.state = executor.state();
  outcome.calls = executor.allocator_calls();
  outcome.memory = executor.memory();
  return outcome;
}

inline Outcome train_on_gpu(const Training& t) {
  try {
    const auto executor = cuda::make_cuda_executor(device_info().name);
    return train_on(*executor, t);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Failure& problem) {
    ADD_FAILURE() << problem.what();  // the test goes on: the next choice may work
    return {};
  }
}

inline Outcome train_on_oracle(const Training& t) {
  Training plain = t;
  plain.spec.exec = ExecSpec{};
  plain.spec.exec.fusion = Fusion::Off;
  plain.spec.exec.layout = t.spec.exec.layout;  // dropout counts its elements in their order in memory
  const auto executor = make_oracle();
  return train_on(*executor, plain);
}

// How far the parameters moved apart, relative to how far they moved.
inline double distance(const Outcome& a, const Outcome& b, const Training& t) {
  const Model model = make_model(t.spec.model, t.data);
  const TrainState from = initial_state(model, t.spec);
  double apart = 0, moved = 0;
  if (a.state.parameters.empty()) return INFINITY;
  for (size_t p = 0; p < from.parameters.size(); ++p)
    for (size_t i = 0; i < from.parameters[p].size(); ++i) {
      const double d = double{a.state.parameters[p][i]} - double{b.state.parameters[p][i]};
      const double m = double{b.state.parameters[p][i]} - double{from.parameters[p][i]};
      apart += d * d, moved += m * m;
    }
  return std::sqrt(apart / std::max(moved, 1e-30));
}

inline bool same_bits(const Outcome& a, const Outcome& b) {
  if (a.state.parameters.size() != b.state.parameters.size()) return false;
  for (size_t p = 0; p < a.state.parameters.size(); ++p) {
    const auto &x = a.state.parameters[p], &y = b.state.parameters[p];
    if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) return false;
  }
  if (a.results.size() != b.results.size()) return false;
  for (size_t i = 0; i < a.results.size(); ++i)
    if (std::memcmp(&a.results[i].loss, &b.results[i].loss, sizeof(float)) != 0) return false;
  return true;
}

// Norm-wise over what the parameters moved in a few steps. Weights are stored in 24 bits and move by about a
// thousandth, which leaves 1e-4 for fp32. 16-bit products carry 8 or 11 bits of each factor, tf32 11, and a relu at the
// edge flips.
inline double tolerance(Precision precision) {
  switch (precision) {
    case Precision::Fp32:
      return 1e-3;
    case Precision::Tf32:
      return 2e-2;
    case Precision::Bf16:
      return 6e-2;
    case Precision::Fp16:
      return 2e-2;
  }
  return 0;
}

// The largest difference of two curves of losses, relative to the second one.
inline double losses_apart(const Outcome& got, const Outcome& want) {
  if (got.results.size() != want.results.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < want.results.size(); ++i)
    most = std::max(most, std::abs(double{got.results[i].loss} - double{want.results[i].loss}) / double{want.results[i].loss});
  return most;
}

// 200 steps in every precision: fp32 stays within 1e-5 of float64, and two runs have the same bits.
inline void expect_losses_like_the_oracle(Training t) {
  const Outcome want = train_on_oracle(t);
  ASSERT_EQ(want.results.size(), 200u);
  t.spec.exec.fusion = Fusion::Epilogue, t.spec.exec.launch = Launch::Graph;
  for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16}) {
    t.spec.exec.precision = precision;
    const Outcome got = train_on_gpu(t);
    const double apart = losses_apart(got, want);
    ::testing::Test::RecordProperty("apart_" + std::string(to_string(precision)), std::to_string(apart));
    EXPECT_LT(apart, precision == Precision::Fp32 ? 1e-5 : 2 * tolerance(precision)) << t.spec.model.layers << ", " << to_string(precision);
    EXPECT_TRUE(same_bits(train_on_gpu(t), got)) << t.spec.model.layers << ", " << to_string(precision);
  }
}

inline void expect_same_losses(const Outcome& got, const Outcome& want, double tolerance) {
  ASSERT_EQ(got.results.size(), want.results.size());
  for (size_t i = 0; i < want.results.size(); ++i) {
    EXPECT_EQ(got.results[i].step, want.results[i].step);
    EXPECT_NEAR(got.results[i].loss, want.results[i].loss, tolerance * (std::abs(want.results[i].loss) + 0.1))
        << "step " << i;
  }
}

// Evaluations use the running statistics, and drop nothing. `predicted`: so many rows are also predicted, and compared.
inline void expect_evaluates_like_the_oracle(const Training& t, int64_t predicted = 0) {
  const Model model = make_model(t.spec.model, t.data);
  const TrainState state = train_on_oracle(t).state;
  const auto gpu = cuda::make_cuda_executor(device_info().name), oracle = make_oracle();
  std::vector<Evaluation> found;
  std::vector<std::vector<float>> rows;
  for (Executor* executor : {gpu.get(), oracle.get()}) {
    executor->load(model, t.data, t.spec);
    executor->set_state(state);
    executor->bind(compile(t.spec, model, t.batch).plan);
    found.push_back(executor->evaluate(Part::Test));
    if (predicted > 0)
      rows.push_back(executor->predict(std::span(t.data.test.x).first(static_cast<size_t>(predicted * t.data.features)), predicted));
  }
  EXPECT_NEAR(found[0].loss, found[1].loss, 1e-3 * found[1].loss) << t.spec.model.layers;
  EXPECT_NEAR(found[0].accuracy, found[1].accuracy, 0.02) << t.spec.model.layers;
  if (predicted == 0) return;
  ASSERT_EQ(rows[0].size(), rows[1].size());
  for (size_t i = 0; i < rows[1].size(); ++i) EXPECT_NEAR(rows[0][i], rows[1][i], 1e-3);
}

constexpr Allocator kAllocators[] = {Allocator::Direct, Allocator::StreamOrdered, Allocator::Caching, Allocator::Arena};
constexpr SyncPolicy kSyncs[] = {SyncPolicy::EveryOp, SyncPolicy::EveryStep, SyncPolicy::OnRead};
constexpr Fusion kFusions[] = {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue};
constexpr Launch kLaunches[] = {Launch::Eager, Launch::Graph};
constexpr Precision kPrecisions[] = {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16};

inline std::string label(const ExecSpec& e) {
  return std::string(to_string(e.fusion)) + " " + std::string(to_string(e.launch)) + " " +
         std::string(to_string(e.precision)) + " " + std::string(to_string(e.allocator)) + " " +
         std::string(to_string(e.sync));
}

// Sets each fusion level, launch mode and precision in turn, and trains.
template <class Check>
void train_each_way(Training& t, const std::string& name, const Check& check) {
  for (const Fusion fusion : kFusions)
    for (const Launch launch : kLaunches)
      for (const Precision precision : kPrecisions) {
        t.spec.exec.fusion = fusion, t.spec.exec.launch = launch, t.spec.exec.precision = precision;
        SCOPED_TRACE(name + ", " + label(t.spec.exec));
        check(train_on_gpu(t));
      }
}

}  // namespace ws::test
