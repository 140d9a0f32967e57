// Networks of layers: finite differences for every op that a list can hold, at every fusion level, against one step of
// plain gradient descent in the float64 interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/cpu/cpu_executor.h"
#include "profiling/base/philox.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

constexpr int64_t kNetRows = 6, kNetOutputs = 3;

data::Dataset data_for(LayerShape input, bool classes = true) {
  data::Dataset data = test::random_data(kNetRows, input.elements(), kNetOutputs, classes);
  data.image_height = input.height, data.image_width = input.width, data.image_channels = input.channels;
  if (!input.is_text()) return data;
  data.context = input.time;
  for (data::Split* split : {&data.train, &data.test}) {
    for (float& symbol : split->x) symbol = static_cast<float>(static_cast<int>(std::abs(symbol) * 100) % kNetOutputs);
    split->labels.clear();
    for (int64_t i = 0; i < kNetRows * input.time; ++i) split->labels.push_back(static_cast<int32_t>((i * 7 + i / 5) % kNetOutputs));
  }
  return data;
}

struct Net {
  const char* layers;
  LayerShape input;
  Fusion fusion = Fusion::Off;
  AttentionForm attention = AttentionForm::Fused;
  PictureLayout layout = PictureLayout::Nhwc;
};

RunSpec spec_of_net(const Net& c) {
  RunSpec spec;
  spec.model.layers = c.layers;
  spec.model.init = Init::Xavier;
  spec.train.optimizer = Optimizer::Sgd;
  spec.train.lr = 1;
  spec.exec.fusion = c.fusion, spec.exec.attention = c.attention, spec.exec.layout = c.layout;
  return spec;
}

TrainState shaken(const Model& model, const RunSpec& spec) {
  TrainState start = test::initial_state(model, spec);
  for (auto& values : start.parameters)
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.03f * static_cast<float>(static_cast<int>(i % 7) - 3);
  return start;
}

class NetworkGradient : public testing::TestWithParam<Net> {
 protected:
  // The loss of a training step: batch norm takes the statistics of the batch there.
  double loss_at(const TrainState& state) {
    std::vector<StepResult> results;
    RunSpec still = spec_;
    still.train.lr = 0;
    test::run_steps(*oracle_, still, model_, data_, state, kNetRows, 1, &results);
    return static_cast<double>(results.back().loss);
  }

  RunSpec spec_ = spec_of_net(GetParam());
  data::Dataset data_ = data_for(GetParam().input);
  Model model_ = make_model(spec_.model, data_);
  std::unique_ptr<Executor> oracle_ = make_oracle();
};

// StepResult holds a float, so a wide difference keeps its rounding small.
TEST_P(NetworkGradient, MatchesFiniteDifferences) {
  const TrainState start = shaken(model_, spec_);
  const TrainState after = test::run_steps(*oracle_, spec_, model_, data_, start, kNetRows, 1);
  const float h = 1.0f / 4096;
  int moved = 0;
  for (size_t p = 0; p < start.parameters.size(); ++p) {
    if (!model_.parameters[p].trained) continue;
    const size_t stride = 1 + start.parameters[p].size() / 12;
    for (size_t i = 0; i < start.parameters[p].size(); i += stride) {
      TrainState up = start, down = start;
      up.parameters[p][i] += h, down.parameters[p][i] -= h;
      const double width = static_cast<double>(up.parameters[p][i]) - static_cast<double>(down.parameters[p][i]);
      const double expected = (loss_at(up) - loss_at(down)) / width;
      const double got = static_cast<double>(start.parameters[p][i]) - static_cast<double>(after.parameters[p][i]);
      EXPECT_NEAR(got, expected, 5e-4 + 0.002 * std::abs(expected)) << model_.parameters[p].name << "[" << i << "]";
      moved += std::abs(got) > 1e-3;
    }
  }
  EXPECT_GT(moved, 3) << "the loss depends on the parameters";
}

std::vector<Net> all_nets() {
  const LayerShape picture = LayerShape::picture(6, 6, 2), text = LayerShape::symbols(5);
  const Net kinds[] = {
      {"conv 3x3 4 | tanh | linear", picture},
      {"conv 3x3 4 bias off | linear", picture},
      {"conv 3x3 4 | linear", picture},
      {"conv 3x3 4 stride 2 | gelu | conv 1x1 3 | sigmoid | linear", picture},
      {"conv 4x2 3 padding 1 | tanh | conv 3x3 4 padding 0 | tanh | linear", picture},
      {"conv 3x3 3 | maxpool 2 | linear", picture},
      {"conv 3x3 3 | tanh | maxpool 2 | linear", picture},
      {"conv 3x3 3 | maxpool 3 stride 2 padding 1 | conv 3x3 2 | linear", picture},
      {"conv 3x3 4 | avgpool 2 | conv 3x3 5 | tanh | avgpool | linear", picture},
      {"conv 3x3 4 | avgpool 3 stride 2 padding 1 | linear", picture},
      {"conv 3x3 4 | batchnorm | tanh | linear", picture},
      {"conv 3x3 4 | batchnorm | gelu | linear", picture},
      {"conv 3x3 4 bias off | batchnorm | linear", picture},
      {"linear 7 | batchnorm | sigmoid | linear 5 | layernorm | tanh | linear", 8},
      {"conv 3x3 4 | residual(conv 3x3 4 | batchnorm | tanh | conv 3x3 4) | tanh | linear", picture},
      {"residual(conv 3x3 2 | tanh) | residual(conv 3x3 2) | linear", picture},
      {"linear 6 | dropout 0.4 | tanh | linear", 8},
      {"embed 6 | linear", text},
      {"embed 6 positions off | tanh | linear", text},
      {"embed 6 | layernorm | attention heads 2 | linear", text},
      {"embed 6 | attention heads 3 bias off | linear", text},
      {"embed 6 | 2 x block(heads 2) | layernorm | linear", text},
      {"embed 6 | dropout 0.2 | block(heads 1, dropout 0.3) | layernorm | linear", text},
  };
  std::vector<Net> cases;
  for (const Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue})
    for (Net c : kinds) {
      c.fusion = fusion;
      cases.push_back(c);
      const ModelSpec model{.layers = c.layers};
      if (has_layer(model, kAttendingLayers)) c.attention = AttentionForm::Plain, cases.push_back(c);
      if (has_layer(model, kPictureLayers)) c.layout = PictureLayout::Nchw, cases.push_back(c);
    }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryLayer, NetworkGradient, testing::ValuesIn(all_nets()));

void expect_same(const TrainState& got, const TrainState& want, const Model& model) {
  for (size_t p = 0; p < want.parameters.size(); ++p)
    for (size_t i = 0; i < want.parameters[p].size(); ++i)
      ASSERT_NEAR(got.parameters[p][i], want.parameters[p][i], 1e-6) << model.parameters[p].name << "[" << i << "]";
}

// With relu the loss has kinks, so only equality with the unfused step can be asked for.
TEST(Network, FusionAndAllocatorsChangeNoResult) {
  const Net c{"conv 3x3 4 | batchnorm | relu | residual(conv 3x3 4 | batchnorm | relu | conv 3x3 4 | relu) | maxpool 2 | linear 8 | "
               "relu | linear",
               LayerShape::picture(6, 6, 2)};
  const data::Dataset data = data_for(c.input);
  RunSpec spec = spec_of_net(c);
  spec.train.lr = 0.1;
  const Model model = make_model(spec.model, data);
  const TrainState start = shaken(model, spec);
  const auto oracle = make_oracle();
  const TrainState plain = test::run_steps(*oracle, spec, model, data, start, kNetRows, 3);
  for (const Fusion fusion : {Fusion::Pointwise, Fusion::Epilogue})
    for (const Allocator allocator : {Allocator::Direct, Allocator::Caching, Allocator::Arena}) {
      spec.exec.fusion = fusion, spec.exec.allocator = allocator;
      const TrainState got = test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 3);
      expect_same(got, plain, model);
    }
}

// Both forms of a choice end at the same weights. The plan of the second one holds what the choice costs.
TEST(Network, PlainAttentionAndPlanesEndWhereTheOtherFormEnds) {
  const Net attends{"embed 6 | 2 x block(heads 2) | layernorm | linear", LayerShape::symbols(5)};
  const Net convolves{"conv 3x3 4 | batchnorm | relu | residual(conv 3x3 4 | relu) | maxpool 2 | conv 3x3 6 | avgpool | linear 8 | relu | linear",
                      LayerShape::picture(6, 6, 2)};
  for (const Net& c : {attends, convolves})
    for (const Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue}) {
      const data::Dataset data = data_for(c.input);
      RunSpec spec = spec_of_net(c);
      spec.train.lr = 0.1, spec.exec.fusion = fusion;
      const Model model = make_model(spec.model, data);
      const TrainState start = shaken(model, spec);
      const TrainState want = test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 3);
      const int64_t bytes = compile(spec, model, kNetRows).plan.arena_bytes;
      (c.input.is_text() ? set_field(spec, "exec.attention", "plain") : set_field(spec, "exec.layout", "nchw"));
      const Plan plan = compile(spec, model, kNetRows).plan;
      const auto count = [&](OpKind kind) { return std::ranges::count(plan.ops, kind, &Op::kind); };
      if (c.input.is_text()) {
        EXPECT_EQ(count(OpKind::HeadProduct), 2 * (2 + 4));
        EXPECT_EQ(count(OpKind::CausalSoftmax) + count(OpKind::CausalSoftmaxGrad), 2 * 2);
        EXPECT_EQ(count(OpKind::Attention) + count(OpKind::AttentionGrad), 0);
      } else {
        EXPECT_GE(count(OpKind::Transpose), 3 + 2 * 3) << "each convolution and the norm turn what they read and write";
      }
      EXPECT_GT(plan.arena_bytes, bytes) << to_string(fusion);
      for (const Allocator allocator : {Allocator::Direct, Allocator::Arena}) {
        spec.exec.allocator = allocator;
        const TrainState got = test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 3);
        expect_same(got, want, model);
      }
    }
}

// A picture of one channel has no layout, and the first convolution reads the rows as they are.
TEST(Network, PicturesOfOneChannelAreNotTurned) {
  const Net c{"conv 3x3 1 | relu | maxpool 2 | linear", LayerShape::picture(6, 6, 1), Fusion::Off, AttentionForm::Fused, PictureLayout::Nchw};
  const RunSpec spec = spec_of_net(c);
  const Plan plan = compile(spec, make_model(spec.model, data_for(c.input)), kNetRows).plan;
  EXPECT_EQ(std::ranges::count(plan.ops, OpKind::Transpose, &Op::kind), 0);
}

TEST(Network, WeightGradientsTogetherChangeNoResult) {
  const Net c{"embed 192 | block(heads 2) | layernorm | linear", LayerShape::symbols(5)};
  const data::Dataset data = data_for(c.input);
  RunSpec spec = spec_of_net(c);
  spec.train.lr = 0.1;
  const Model model = make_model(spec.model, data);
  const TrainState start = shaken(model, spec);
  const TrainState plain = test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 2);
  spec.exec.fusion = Fusion::Epilogue;
  const Plan plan = compile(spec, model, kNetRows).plan;
  ASSERT_TRUE(std::ranges::count(plan.ops, OpKind::WeightGradients, &Op::kind) > 0);
  const TrainState got = test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 2);
  expect_same(got, plain, model);
}

// The gradients of norms and attention sum the columns of so many rows for the biases before them.
TEST(Network, BiasGradientsOfManyRowsChangeNoResult) {
  const LayerShape input = LayerShape::symbols(6);
  constexpr int64_t rows = 1400;
  data::Dataset data = test::random_text(rows, input.time, kNetOutputs);
  RunSpec spec = spec_of_net({"embed 4 | block(heads 2) | layernorm | linear", input});
  spec.train.lr = 0.1;
  const Model model = make_model(spec.model, data);
  const TrainState start = shaken(model, spec);
  const TrainState plain = test::run_steps(*make_oracle(), spec, model, data, start, rows, 2);
  spec.exec.fusion = Fusion::Epilogue;
  const Plan plan = compile(spec, model, rows).plan;
  for (const auto& [kind, outputs] : {std::pair(OpKind::LayerNormGrad, 4u), std::pair(OpKind::AttentionGrad, 2u)})
    ASSERT_TRUE(std::ranges::any_of(plan.ops, [&](const Op& op) { return op.kind == kind && op.out.size() == outputs; }));
  const TrainState got = test::run_steps(*make_oracle(), spec, model, data, start, rows, 2);
  expect_same(got, plain, model);
}

TEST(Network, AListOfLinearLayersIsTheSameAsHiddenLayers) {
  const data::Dataset data = test::random_data(kNetRows, 8, kNetOutputs, true);
  RunSpec hidden = spec_of_net({"", 8}), list = spec_of_net({"linear 7 | tanh | linear 5 | tanh | linear", 8});
  hidden.model.hidden = {7, 5}, hidden.model.activation = Activation::Tanh;
  const Model a = make_model(hidden.model, data), b = make_model(list.model, data);
  EXPECT_EQ(print(compile(hidden, a, kNetRows).plan), print(compile(list, b, kNetRows).plan));
  const auto run = [&](const RunSpec& spec, const Model& model) {
    return test::run_steps(*make_cpu_executor(), spec, model, data, test::initial_state(model, spec), kNetRows, 3);
  };
  EXPECT_EQ(run(hidden, a).parameters, run(list, b).parameters);
}

// Losses of 200 steps in float against the float64 interpreter. AdamW divides small gradients by small means, which
// amplifies rounding.
TEST(Network, StaysWithTheOracleForTwoHundredSteps) {
  for (const Net& c : {Net{"conv 3x3 4 | batchnorm | tanh | maxpool 2 | conv 3x3 6 | gelu | avgpool | linear",
                           LayerShape::picture(6, 6, 2)},
                       Net{"embed 8 | 2 x block(heads 2, dropout 0.1) | layernorm | linear", LayerShape::symbols(6)}})
    for (const Optimizer optimizer : {Optimizer::Momentum, Optimizer::AdamW}) {
      const data::Dataset data = data_for(c.input);
      RunSpec spec = spec_of_net(c);
      spec.exec.fusion = Fusion::Epilogue;
      spec.train.optimizer = optimizer;
      spec.train.lr = optimizer == Optimizer::AdamW ? 0.001 : 0.01;
      spec.train.weight_decay = 0.01;
      spec.train.label_smoothing = 0.1;
      spec.train.clip = 1;
      const Model model = make_model(spec.model, data);
      const TrainState start = shaken(model, spec);
      std::vector<StepResult> single, exact;
      test::run_steps(*make_cpu_executor(), spec, model, data, start, kNetRows, 200, &single);
      test::run_steps(*make_oracle(), spec, model, data, start, kNetRows, 200, &exact);
      ASSERT_EQ(single.size(), 200u);
      const double most = optimizer == Optimizer::AdamW ? 5e-3 : 1e-5;
      for (size_t i = 0; i < single.size(); ++i)
        ASSERT_NEAR(single[i].loss, exact[i].loss, most) << c.layers << " " << to_string(optimizer) << " step " << i;
      EXPECT_LT(exact.back().loss, 0.95 * exact.front().loss) << c.layers << " " << to_string(optimizer);
    }
}

TEST(Network, TwoRunsAreBitIdentical) {
  const Net c{"embed 8 | block(heads 2, dropout 0.2) | layernorm | linear", LayerShape::symbols(6)};
  const data::Dataset data = data_for(c.input);
  const RunSpec spec = spec_of_net(c);
  const Model model = make_model(spec.model, data);
  const TrainState start = test::initial_state(model, spec);
  const auto once = [&] { return test::run_steps(*make_cpu_executor(), spec, model, data, start, kNetRows, 5).parameters; };
  EXPECT_EQ(once(), once());
}

// Weights, moments and running statistics of another executor continue the run, and so do the masks of dropout.
TEST(Network, ContinuesBitIdenticalFromItsState) {
  for (const Net& c : {Net{"conv 3x3 4 | batchnorm | relu | dropout 0.2 | linear", LayerShape::picture(6, 6, 2)},
                       Net{"embed 8 | block(heads 2, dropout 0.2) | layernorm | linear", LayerShape::symbols(6)}}) {
    const data::Dataset data = data_for(c.input);
    RunSpec spec = spec_of_net(c);
    spec.train.optimizer = Optimizer::AdamW;
    const Model model = make_model(spec.model, data);
    const std::vector<float> rates(4, 0.01F), half(2, 0.01F);
    const auto begin = [&](const TrainState& state) {
      auto executor = make_cpu_executor();
      executor->load(model, data, spec);
      executor->set_state(state);
      executor->bind(compile(spec, model, kNetRows).plan);
      return executor;
    };
    const auto whole = begin(test::initial_state(model, spec)), first = begin(test::initial_state(model, spec));
    whole->run(0, 0, rates);
    first->run(0, 0, half);
    const auto second = begin(first->state());
    second->run(2, 0, half);
    EXPECT_EQ(second->state().parameters, whole->state().parameters) << c.layers;
    EXPECT_EQ(second->state().moments[1], whole->state().moments[1]) << c.layers;
    EXPECT_EQ(second->evaluate(Part::Test).loss, whole->evaluate(Part::Test).loss) << c.layers;
  }
}

TEST(Network, BatchNormEvaluatesWithRunningStatistics) {
  const Net c{"batchnorm | linear", 4};
  const data::Dataset data = data_for(4);
  RunSpec spec = spec_of_net(c);
  spec.train.lr = 1e-9;
  const Model model = make_model(spec.model, data);
  const auto oracle = make_oracle();
  const TrainState start = test::initial_state(model, spec);
  const TrainState after = test::run_steps(*oracle, spec, model, data, start, kNetRows, 1);
  double mean = 0, squares = 0;
  for (int64_t r = 0; r < kNetRows; ++r) mean += static_cast<double>(data.train.x[static_cast<size_t>(4 * r)]) / kNetRows;
  for (int64_t r = 0; r < kNetRows; ++r) squares += std::pow(static_cast<double>(data.train.x[static_cast<size_t>(4 * r)]) - mean, 2);
  EXPECT_NEAR(after.parameters[2][0], 0.1 * mean, 1e-6);
  EXPECT_NEAR(after.parameters[3][0], 0.9 + 0.1 * squares / (kNetRows - 1), 1e-6);
  // Enough steps for the running values to reach the values of the only batch: both modes then differ by n/(n − 1).
  TrainState settled = after;
  settled.parameters[2] = {0, 0, 0, 0}, settled.parameters[3] = {1, 1, 1, 1};
  oracle->set_state(settled);
  const auto raw = oracle->predict(data.train.x, kNetRows);
  for (int64_t o = 0; o < kNetOutputs; ++o) {
    double z = 0;
    for (int64_t j = 0; j < 4; ++j)
      z += static_cast<double>(data.train.x[static_cast<size_t>(j)]) / std::sqrt(1 + 1e-5) *
           static_cast<double>(settled.parameters[4][static_cast<size_t>(j * kNetOutputs + o)]);
    EXPECT_NEAR(raw[static_cast<size_t>(o)], z, 1e-5);
  }
}

TEST(Network, DropoutKeepsItsShareAndEvaluationsKeepAll) {
  const data::Dataset data = data_for(8);
  RunSpec spec = spec_of_net({"linear 64 | dropout 0.5 | linear", 8});
  const Model model = make_model(spec.model, data);
  const Plan plan = compile(spec, model, kNetRows).plan;
  EXPECT_EQ(std::ranges::count(plan.ops, OpKind::Dropout, &Op::kind), 2);
  EXPECT_EQ(std::ranges::count(compile_evaluation(spec, model, kNetRows).plan.ops, OpKind::Dropout, &Op::kind), 0);
  const auto mask = std::ranges::find(plan.ops, OpKind::Dropout, &Op::kind)->dropout;
  int kept = 0;
  for (uint64_t i = 0; i < 10000; ++i) kept += data::uniform_at(1, dropout_stream(mask, 7), i) >= mask.rate;
  EXPECT_NEAR(kept, 5000, 200);
}

TEST(Network, SixteenBitTypesStayNearSinglePrecision) {
  for (const Net& c : {Net{"conv 3x3 4 | batchnorm | relu | maxpool 2 | linear", LayerShape::picture(6, 6, 2)},
                        Net{"embed 8 | block(heads 2) | layernorm | linear", LayerShape::symbols(6)}}) {
    const data::Dataset data = data_for(c.input);
    RunSpec spec = spec_of_net(c);
    spec.train.lr = 0.002;
    const Model model = make_model(spec.model, data);
    const auto losses = [&](Precision precision) {
      spec.exec.precision = precision;
      std::vector<StepResult> results;
      TrainState start = test::initial_state(model, spec);
      start.loss_scale = 256;
      test::run_steps(*make_cpu_executor(), spec, model, data, start, kNetRows, 20, &results);
      return results;
    };
    const auto single = losses(Precision::Fp32);
    for (const Precision precision : {Precision::Bf16, Precision::Fp16}) {
      const auto half = losses(precision);
      for (size_t i = 0; i < half.size(); ++i) ASSERT_NEAR(half[i].loss, single[i].loss, 0.05) << c.layers << " step " << i << " " << to_string(precision);
    }
  }
}

}  // namespace
}  // namespace ws
