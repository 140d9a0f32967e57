// Finite differences against one step of plain gradient descent in the float64 interpreter: for every activation, loss,
// depth and fusion level, so that every op that the plan can hold is covered.
#include <gtest/gtest.h>

#include "engine/cpu/cpu_executor.h"
#include "tests/support/one_step.h"
#include "tests/support/small_data.h"

namespace ws {
namespace {

struct Case {
  Activation activation;
  LossKind loss;
  Fusion fusion;
  bool bias;
  std::vector<int64_t> hidden;
};

class Gradient : public testing::TestWithParam<Case> {};

RunSpec spec_of(const Case& c) {
  RunSpec spec;
  spec.model.activation = c.activation;
  spec.model.loss = c.loss;
  spec.model.bias = c.bias;
  spec.model.hidden = c.hidden;
  spec.model.init = Init::Xavier;
  spec.train.optimizer = Optimizer::Sgd;
  spec.train.lr = 1;
  spec.exec.fusion = c.fusion;
  return spec;
}

double loss_at(Executor& oracle, const TrainState& state) {
  oracle.set_state(state);
  return oracle.evaluate(Part::Train).loss;
}

TEST_P(Gradient, MatchesFiniteDifferences) {
  const RunSpec spec = spec_of(GetParam());
  const bool classes = spec.model.loss == LossKind::CrossEntropy;
  const int64_t rows = 7, outputs = 3;
  const data::Dataset data = test::random_data(rows, 5, outputs, classes);
  const Model model = make_model(spec.model, 5, outputs);
  TrainState start = test::initial_state(model, spec);
  for (auto& values : start.parameters)
    for (size_t i = 0; i < values.size(); ++i) values[i] += 0.01f * static_cast<float>(i % 5);  // biases off zero too

  const auto oracle = make_oracle();
  const TrainState after = test::run_steps(*oracle, spec, model, data, start, rows, 1);
  const float h = 1.0f / 1024;
  for (size_t p = 0; p < start.parameters.size(); ++p)
    for (size_t i = 0; i < start.parameters[p].size(); ++i) {
      TrainState up = start, down = start;
      up.parameters[p][i] += h;
      down.parameters[p][i] -= h;
      const double width = static_cast<double>(up.parameters[p][i]) - static_cast<double>(down.parameters[p][i]);
      const double expected = (loss_at(*oracle, up) - loss_at(*oracle, down)) / width;
      const double got = static_cast<double>(start.parameters[p][i]) - static_cast<double>(after.parameters[p][i]);
      EXPECT_NEAR(got, expected, 2e-4) << model.parameters[p].name << "[" << i << "]";
    }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (Activation activation :
       {Activation::None, Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu})
    for (LossKind loss : {LossKind::CrossEntropy, LossKind::MeanSquared})
      for (Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue})
        for (bool bias : {true, false}) {
          cases.push_back({activation, loss, fusion, bias, {4}});
          cases.push_back({activation, loss, fusion, bias, {6, 4}});
        }
  cases.push_back({Activation::Relu, LossKind::CrossEntropy, Fusion::Off, true, {}});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(EveryChoice, Gradient, testing::ValuesIn(all_cases()));

TEST(GradientOfALine, MatchesFiniteDifferences) {
  for (Fusion fusion : {Fusion::Off, Fusion::Pointwise}) {
    for (int64_t features : {1, 3}) {
      RunSpec spec = spec_of({Activation::None, LossKind::MeanSquared, fusion, true, {}});
      spec.model.kind = ModelKind::Linear;
      spec.model.start_w = 0.5;
      const data::Dataset data = test::random_data(50, features, 1, false);
      const Model model = make_model(spec.model, features, 1);
      const TrainState start = test::initial_state(model, spec);
      const auto oracle = make_oracle();
      const TrainState after = test::run_steps(*oracle, spec, model, data, start, 50, 1);
      TrainState up = start, down = start;
      up.parameters[0][0] += 0.25f;
      down.parameters[0][0] -= 0.25f;  // the loss is a parabola: any width is exact
      const double expected = (loss_at(*oracle, up) - loss_at(*oracle, down)) / 0.5;
      EXPECT_NEAR(static_cast<double>(start.parameters[0][0] - after.parameters[0][0]), expected, 1e-5);
    }
  }
}

}  // namespace
}  // namespace ws
