// What the kernel tests share: the shapes and types they go through, and an optimizer in double.
#pragma once
#include "tests/gpu/kernel_support.h"

namespace ws::cuda::test {

constexpr int64_t kRows[] = {1, 3, 7, 127, 1000};
constexpr DType kTypes[] = {DType::F32, DType::Bf16, DType::F16};
constexpr Activation kActivations[] = {Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu};

inline double rounding(DType type) { return type == DType::F32 ? 1e-6 : type == DType::F16 ? 6e-4 : 4e-3; }

class Kernels : public testing::Test {
 protected:
  void SetUp() override { NEED_GPU(); }
};

// One parameter stepped in double.
struct Stepped {
  std::vector<double> w, m, v;
};

inline void step(Stepped& s, const OptimizerRef& o, const std::vector<double>& grad, int t, bool decays,
                 double lr = 0.1f) {
  for (size_t i = 0; i < grad.size(); ++i) {
    const double decay = decays ? static_cast<double>(o.weight_decay) * s.w[i] : 0.0;
    const double g = grad[i] + (o.kind == Optimizer::AdamW ? 0 : decay);
    if (o.kind == Optimizer::Sgd) s.w[i] -= lr * g;
    if (o.kind == Optimizer::Momentum) {
      s.m[i] = o.momentum * s.m[i] + g;
      s.w[i] -= lr * (o.nesterov ? g + o.momentum * s.m[i] : s.m[i]);
    }
    if (!is_adam(o.kind)) continue;
    if (o.kind == Optimizer::AdamW) s.w[i] -= lr * decay;
    s.m[i] = o.beta1 * s.m[i] + (1.0 - o.beta1) * g;
    s.v[i] = o.beta2 * s.v[i] + (1.0 - o.beta2) * g * g;
    const double root = std::sqrt(s.v[i] / (1 - std::pow(static_cast<double>(o.beta2), t)));
    s.w[i] -= lr / (1 - std::pow(static_cast<double>(o.beta1), t)) * s.m[i] / (root + o.epsilon);
  }
}

struct Parameter {
  Matrix w, shadow, m, v;
  Stepped want;
  explicit Parameter(int64_t rows, int64_t cols, uint32_t seed)
      : w(random_matrix(rows, cols, DType::F32, seed)), shadow(rows, cols, DType::Bf16), m(rows, cols), v(rows, cols) {
    m.upload();
    v.upload();
    want = {wide(w.v), wide(m.v), wide(v.v)};
  }
  ParamRef ref(bool decays) {
    ParamRef r;
    r.w = static_cast<float*>(w.t.data);
    r.shadow = shadow.t;
    r.m = static_cast<float*>(m.t.data);
    r.v = static_cast<float*>(v.t.data);
    r.n = w.t.elements();
    r.decays = decays;
    return r;
  }
  void expect(double tolerance, const std::string& what) {
    expect_near(w.download(), want.w, tolerance, what + " w");
    expect_near(shadow.download(), want.w, 5e-3, what + " shadow");
  }
};

constexpr Optimizer kOptimizers[] = {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam, Optimizer::AdamW};

inline OptimizerRef optimizer(Optimizer kind, const Bench& bench, bool nesterov = false) {
  return {kind, 0.9f, 0.9f, 0.999f, 1e-8f, 0.01f, bench.at(0), nullptr, nesterov};
}

inline ParamRef without_shadow(ParamRef ref) {
  ref.shadow = {};
  return ref;
}

}  // namespace ws::cuda::test
