// The optimizers against their formulas, written out here once more in float64.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/cpu/cpu_executor.h"
#include "tests/support/one_step.h"

namespace ws {
namespace {

constexpr int kRows = 6, kSteps = 5;
constexpr double kX[kRows] = {-1.5, -0.5, 0.25, 0.75, 1.25, 2.0}, kY[kRows] = {-2.0, 0.5, 0.1, 1.7, 2.2, 3.9};

// A single layer from one number to one number: z = w·x + b, loss mean (z − y)².
struct Line {
  double w, b;
  std::array<double, 2> gradient() const {
    double dw = 0, db = 0;
    for (int i = 0; i < kRows; ++i) {
      const double e = w * kX[i] + b - kY[i];
      dw += 2 * e * kX[i] / kRows, db += 2 * e / kRows;
    }
    return {dw, db};
  }
};

RunSpec spec_with(Optimizer optimizer, double weight_decay) {
  RunSpec spec;
  spec.exec.device = Device::Cpu;
  spec.model.hidden = {};
  spec.model.loss = LossKind::MeanSquared;
  spec.train.optimizer = optimizer;
  spec.train.weight_decay = weight_decay;
  spec.train.lr = 0.05;
  spec.train.momentum = 0.8;
  spec.train.beta1 = 0.7;
  spec.train.beta2 = 0.95;
  spec.train.epsilon = 1e-3;
  return spec;
}

// Where kSteps steps lead by hand. Weights decay, offsets do not.
Line by_hand(const TrainSpec& t, Line at) {
  double* values[2] = {&at.w, &at.b};
  double m[2] = {}, v[2] = {};
  for (int step = 1; step <= kSteps; ++step) {
    auto g = at.gradient();
    if (t.optimizer == Optimizer::AdamW)
      at.w *= 1 - t.lr * t.weight_decay;
    else
      g[0] += t.weight_decay * at.w;
    for (size_t i = 0; i < 2; ++i) {
      double move = g[i];
      if (t.optimizer == Optimizer::Momentum) {
        m[i] = t.momentum * m[i] + g[i];
        move = t.nesterov ? g[i] + t.momentum * m[i] : m[i];
      }
      if (is_adam(t.optimizer)) {
        m[i] = t.beta1 * m[i] + (1 - t.beta1) * g[i];
        v[i] = t.beta2 * v[i] + (1 - t.beta2) * g[i] * g[i];
        const double mean = m[i] / (1 - std::pow(t.beta1, step)), square = v[i] / (1 - std::pow(t.beta2, step));
        move = mean / (std::sqrt(square) + t.epsilon);
      }
      *values[i] -= t.lr * move;
    }
  }
  return at;
}

data::Dataset points() {
  data::Dataset data;
  data.name = "points";
  data.task = data::Task::Regression;
  data.features = data.outputs = 1;
  data.train.rows = kRows;
  for (int i = 0; i < kRows; ++i)
    data.train.x.push_back(static_cast<float>(kX[i])), data.train.targets.push_back(static_cast<float>(kY[i]));
  return data;
}

TEST(Optimizers, FollowTheirFormulas) {
  const data::Dataset data = points();
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam, Optimizer::AdamW})
    for (const double decay : {0.0, 0.3})
      for (const Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue}) {
        SCOPED_TRACE(std::string(to_string(optimizer)) + " " + std::to_string(decay) + " " +
                     std::string(to_string(fusion)));
        RunSpec spec = spec_with(optimizer, decay);
        spec.exec.fusion = fusion;
        const Model model = make_model(spec.model, 1, 1);
        ASSERT_EQ(model.parameters.size(), 2u);
        TrainState start = test::initial_state(model, spec);
        start.parameters = {{0.5f}, {-0.25f}};
        const auto executor = make_cpu_executor();
        const TrainState got = test::run_steps(*executor, spec, model, data, start, kRows, kSteps);
        const Line want = by_hand(spec.train, {0.5, -0.25});
        EXPECT_NEAR(got.parameters[0][0], want.w, 2e-6);
        EXPECT_NEAR(got.parameters[1][0], want.b, 2e-6);
        EXPECT_GT(std::abs(want.w - 0.5), 0.05) << "it moved";
      }
}

TEST(Optimizers, NesterovTakesTheGradientAhead) {
  const data::Dataset data = points();
  RunSpec spec = spec_with(Optimizer::Momentum, 0.1);
  spec.train.nesterov = true;
  const Model model = make_model(spec.model, 1, 1);
  TrainState start = test::initial_state(model, spec);
  start.parameters = {{0.5f}, {-0.25f}};
  const TrainState got = test::run_steps(*make_cpu_executor(), spec, model, data, start, kRows, kSteps);
  const Line want = by_hand(spec.train, {0.5, -0.25});
  EXPECT_NEAR(got.parameters[0][0], want.w, 2e-6);
  EXPECT_NEAR(got.parameters[1][0], want.b, 2e-6);
}

// Plain SGD moves by rate · gradient, so the limit of the norm is the limit of the move.
TEST(Optimizers, ClipLimitsTheNormOfAllGradientsTogether) {
  const data::Dataset data = points();
  for (const Precision precision : {Precision::Fp32, Precision::Fp16}) {
    RunSpec spec = spec_with(Optimizer::Sgd, 0);
    spec.exec.precision = precision;
    spec.train.clip = 0.5;
    const Model model = make_model(spec.model, 1, 1);
    TrainState start = test::initial_state(model, spec);
    start.parameters = {{0.5f}, {-0.25f}};
    start.loss_scale = 256;
    const TrainState got = test::run_steps(*make_cpu_executor(), spec, model, data, start, kRows, 1);
    const auto g = Line{0.5, -0.25}.gradient();
    const double norm = std::hypot(g[0], g[1]);
    ASSERT_GT(norm, 0.5);
    EXPECT_NEAR(got.parameters[0][0], 0.5 - spec.train.lr * 0.5 * g[0] / norm, precision == Precision::Fp32 ? 1e-6 : 1e-3);
    EXPECT_NEAR(got.parameters[1][0], -0.25 - spec.train.lr * 0.5 * g[1] / norm, precision == Precision::Fp32 ? 1e-6 : 1e-3);
  }
}

}  // namespace
}  // namespace ws
