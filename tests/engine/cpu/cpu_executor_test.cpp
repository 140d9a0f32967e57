#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/cpu_executor.h"
#include "engine/cpu/cpu_ops.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

RunSpec small_spec() {
  RunSpec spec;
  spec.model.hidden = {16, 8};
  spec.exec.device = Device::Cpu;
  return spec;
}

TrainState trained(const RunSpec& spec, bool oracle = false, int64_t steps = 4,
                   std::vector<StepResult>* results = nullptr) {
  static const data::Dataset data = test::random_data(40, 6, 3, true);
  const Model model = make_model(spec.model, 6, 3);
  const auto executor = oracle ? make_oracle() : make_cpu_executor();
  return test::run_steps(*executor, spec, model, data, test::initial_state(model, spec), 10, steps, results);
}

double largest_difference(const TrainState& a, const TrainState& b) {
  double most = 0;
  for (size_t p = 0; p < a.parameters.size(); ++p)
    for (size_t i = 0; i < a.parameters[p].size(); ++i)
      most = std::max(most, static_cast<double>(std::abs(a.parameters[p][i] - b.parameters[p][i])));
  return most;
}

TEST(CpuExecutor, SameSeedSameBits) { EXPECT_EQ(trained(small_spec()).parameters, trained(small_spec()).parameters); }

TEST(CpuExecutor, AgreesWithTheOracle) {
  for (Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
    for (Activation activation : {Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu}) {
      RunSpec spec = small_spec();
      spec.train.optimizer = optimizer;
      spec.train.weight_decay = 0.01;
      spec.model.activation = activation;
      EXPECT_LT(largest_difference(trained(spec), trained(spec, true)), 2e-5)
          << to_string(optimizer) << " " << to_string(activation);
    }
}

// Large weights make rows very wrong; a row then loses the distance from its best score to the score of its class.
TEST(CpuExecutor, VeryWrongRowsHaveTheLossOfTheirScores) {
  const data::Dataset data = test::random_data(40, 6, 3, true);
  const Model model = make_model(small_spec().model, 6, 3);
  for (const Fusion fusion : {Fusion::Off, Fusion::Epilogue}) {
    RunSpec spec = small_spec();
    spec.exec.fusion = fusion;
    TrainState state = test::initial_state(model, spec);
    for (auto& values : state.parameters)
      for (float& v : values) v *= 30;
    const auto executor = make_cpu_executor();
    std::vector<StepResult> results;
    spec.train.lr = 0;
    test::run_steps(*executor, spec, model, data, state, data.train.rows, 1, &results);
    const std::vector<float> scores = executor->predict(data.train.x, data.train.rows);
    double want = 0;
    for (int64_t r = 0; r < data.train.rows; ++r) {
      const float* row = scores.data() + 3 * r;
      want += static_cast<double>(*std::max_element(row, row + 3) - row[data.train.labels[static_cast<size_t>(r)]]) / 40;
    }
    EXPECT_GT(want, 1000);
    EXPECT_NEAR(static_cast<double>(results.back().loss), want, 1e-5 * want);
    EXPECT_NEAR(executor->evaluate(Part::Train).loss, want, 1e-5 * want);
  }
}

TEST(CpuExecutor, FusionDoesNotChangeTheNumbers) {
  RunSpec off = small_spec(), pointwise = small_spec(), epilogue = small_spec();
  off.exec.fusion = Fusion::Off;
  pointwise.exec.fusion = Fusion::Pointwise;
  epilogue.exec.fusion = Fusion::Epilogue;
  const TrainState expected = trained(off);
  EXPECT_LT(largest_difference(expected, trained(pointwise)), 1e-6);
  EXPECT_LT(largest_difference(expected, trained(epilogue)), 1e-6);
}

// Large batches take other rules: the gradients of the output layer, updates inside products.
TEST(CpuExecutor, FusionDoesNotChangeTheNumbersOfALargeBatch) {
  const data::Dataset data = test::random_data(3100, 20, 5, true);
  RunSpec spec = small_spec();
  spec.model.hidden = {48, 33};
  spec.train.optimizer = Optimizer::Momentum;
  const Model model = make_model(spec.model, 20, 5);
  const auto after = [&](Fusion fusion, int64_t batch) {
    RunSpec fused = spec;
    fused.exec.fusion = fusion;
    const auto executor = make_cpu_executor();
    return test::run_steps(*executor, fused, model, data, test::initial_state(model, fused), batch, 2);
  };
  for (const int64_t batch : {1500, 3100}) {
    const TrainState expected = after(Fusion::Off, batch);
    EXPECT_GT(largest_difference(expected, test::initial_state(model, spec)), 1e-3) << "it moved at all";
    EXPECT_LT(largest_difference(expected, after(Fusion::Pointwise, batch)), 2e-6) << batch;
    EXPECT_LT(largest_difference(expected, after(Fusion::Epilogue, batch)), 2e-6) << batch;
  }
}

TEST(CpuExecutor, AllocatorsAndSyncAreBitIdentical) {
  const TrainState expected = trained(small_spec());
  for (Allocator allocator : {Allocator::Direct, Allocator::Caching, Allocator::Arena})
    for (SyncPolicy sync : {SyncPolicy::EveryOp, SyncPolicy::EveryStep, SyncPolicy::OnRead}) {
      RunSpec spec = small_spec();
      spec.exec.allocator = allocator;
      spec.exec.sync = sync;
      EXPECT_EQ(trained(spec).parameters, expected.parameters);
    }
}

TEST(CpuExecutor, AllocatorsCallAsOftenAsTheySay) {
  const data::Dataset data = test::random_data(40, 6, 3, true);
  for (Allocator allocator : {Allocator::Direct, Allocator::Caching, Allocator::Arena}) {
    RunSpec spec = small_spec();
    spec.exec.allocator = allocator;
    const Model model = make_model(spec.model, 6, 3);
    const auto executor = make_cpu_executor();
    test::run_steps(*executor, spec, model, data, test::initial_state(model, spec), 10, 4);
    const Plan plan = compile(spec, model, 10).plan;
    const auto pairs = std::ranges::count(plan.ops, OpKind::Alloc, &Op::kind);
    const AllocatorCalls calls = executor->allocator_calls();
    EXPECT_EQ(calls.allocate, 4 * pairs);
    EXPECT_EQ(calls.free, 4 * pairs);
    if (allocator == Allocator::Direct) {
      EXPECT_EQ(calls.device_allocate, 4 * pairs);
    }
    if (allocator == Allocator::Caching) {
      EXPECT_LE(calls.device_allocate, pairs);
    }
    if (allocator == Allocator::Arena) {
      EXPECT_EQ(calls.allocate, 0);
      EXPECT_EQ(executor->memory().peak, plan.arena_bytes) << "as the plan says, and as on a GPU";
    }
    EXPECT_GT(executor->memory().peak, 0);
  }
}

TEST(CpuExecutor, SixteenBitsStayNear) {
  std::vector<StepResult> full, bf16, fp16;
  RunSpec spec = small_spec();
  trained(spec, false, 4, &full);
  spec.exec.precision = Precision::Bf16;
  trained(spec, false, 4, &bf16);
  spec.exec.precision = Precision::Fp16;
  trained(spec, false, 4, &fp16);
  for (size_t i = 0; i < full.size(); ++i) {
    EXPECT_NEAR(bf16[i].loss, full[i].loss, 0.05f * full[i].loss);
    EXPECT_NEAR(fp16[i].loss, full[i].loss, 0.01f * full[i].loss);
    EXPECT_NE(bf16[i].loss, full[i].loss);
  }
}

TEST(CpuExecutor, OverflowSkipsTheStepAndHalvesTheScale) {
  data::Dataset data = test::random_data(40, 6, 3, true);
  for (float& v : data.train.x) v *= 2000;
  RunSpec spec = small_spec();
  spec.exec.precision = Precision::Fp16;
  const Model model = make_model(spec.model, 6, 3);
  TrainState start = test::initial_state(model, spec);
  start.loss_scale = 1e30;
  const auto executor = make_cpu_executor();
  const TrainState after = test::run_steps(*executor, spec, model, data, start, 10, 1);
  EXPECT_EQ(after.parameters, start.parameters);
  EXPECT_EQ(after.loss_scale, 5e29);
}

TEST(CpuExecutor, PredictsWhatEvaluationSees) {
  const data::Dataset data = test::random_data(40, 6, 3, true);
  const RunSpec spec = small_spec();
  const Model model = make_model(spec.model, 6, 3);
  const auto executor = make_cpu_executor();
  executor->load(model, data, spec);
  executor->set_state(test::initial_state(model, spec));
  const auto scores = executor->predict(data.test.x, data.test.rows);
  ASSERT_EQ(scores.size(), 120u);
  int right = 0;
  for (size_t r = 0; r < 40; ++r)
    right += std::max_element(&scores[r * 3], &scores[r * 3] + 3) - &scores[r * 3] == data.test.labels[r];
  EXPECT_NEAR(executor->evaluate(Part::Test).accuracy, right / 40.0, 1e-9);
}

TEST(Rounding, HalfAndBfloatAreNearestEven) {
  EXPECT_EQ(cpu::round_to(DType::F16, 1.0f + 0x1p-11f), 1.0f);
  EXPECT_EQ(cpu::round_to(DType::F16, 1.0f + 3 * 0x1p-11f), 1.0f + 0x1p-9f);
  EXPECT_EQ(cpu::round_to(DType::F16, 65504.0f), 65504.0f);
  EXPECT_TRUE(std::isinf(cpu::round_to(DType::F16, 65520.0f)));
  EXPECT_EQ(cpu::round_to(DType::F16, 0x1p-24f), 0x1p-24f);
  EXPECT_EQ(cpu::round_to(DType::F16, 0x1p-26f), 0.0f);
  EXPECT_EQ(cpu::round_to(DType::Bf16, 1.0f + 0x1p-8f), 1.0f);
  EXPECT_EQ(cpu::round_to(DType::Bf16, 1.0f + 3 * 0x1p-8f), 1.0f + 0x1p-6f);
}

TEST(Init, FollowsItsFormula) {
  ModelSpec spec;
  spec.hidden = {400};
  const Model model = make_model(spec, 784, 10);
  const auto spread = [&](Init init) {
    spec.init = init;
    double sum = 0;
    const auto values = initial_values(model, spec, ParamId{0}, 42);
    for (float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(spread(Init::Normal), 1.0, 0.01);
  EXPECT_NEAR(spread(Init::Kaiming), std::sqrt(2.0 / 784), 0.001);
  EXPECT_NEAR(spread(Init::Xavier), std::sqrt(2.0 / (784 + 400)), 0.001);
  EXPECT_EQ(spread(Init::Zeros), 0.0);
}

}  // namespace
}  // namespace ws
