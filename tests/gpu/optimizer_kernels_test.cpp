// Optimizer steps against the same in double: alone, over many parameters, and inside of the weight gradient.
#include "tests/gpu/op_support.h"

namespace ws::cuda::test {
namespace {

void expect_updates(Optimizer kind, bool nesterov) {
  Bench bench;
  std::vector<Parameter> parameters;
  std::vector<Matrix> gradients;
  for (int64_t n : {1, 3, 127, 1000, 5000}) {
    parameters.emplace_back(1, n, static_cast<uint32_t>(n));
    gradients.push_back(random_matrix(1, n, DType::F32, 77));
  }
  const OptimizerRef o = optimizer(kind, bench, nesterov);
  for (int t = 1; t <= 3; ++t) {
    std::vector<ParamRef> refs;
    for (size_t i = 0; i < parameters.size(); ++i) {
      refs.push_back(parameters[i].ref(i % 2 == 0));
      refs.back().grad = gradients[i].t;
      step(parameters[i].want, o, wide(gradients[i].v), t, i % 2 == 0);
    }
    update_all(bench.queue, o, refs);
    advance(bench.queue, bench.clock.data(), 1, 0);
  }
  for (Parameter& p : parameters) p.expect(1e-5, std::string(to_string(kind)));
}

TEST_F(Kernels, OptimizersOverManyParameters) {
  for (Optimizer kind : kOptimizers) expect_updates(kind, false);
  expect_updates(Optimizer::Momentum, true);
}

// More gradients than one launch takes.
struct ManyGradients {
  std::vector<Matrix> all;
  std::vector<Tensor> tensors;
  double norm = 0;
  explicit ManyGradients(int count) {
    for (int i = 0; i < count; ++i) {
      all.push_back(random_matrix(1, i % 7 == 0 ? 40'000 : 13 + i, DType::F32, static_cast<uint32_t>(i)));
      tensors.push_back(all.back().t);
      for (const float v : all.back().v) norm += static_cast<double>(v) * v;
    }
    norm = std::sqrt(norm);
  }
  void expect_scaled(double factor, double tolerance) const {
    for (const Matrix& m : all) {
      std::vector<double> want = wide(m.v);
      for (double& v : want) v *= factor;
      expect_near(m.download(), want, tolerance, "clipped");
    }
  }
};

TEST_F(Kernels, ClippingScalesToTheLimit) {
  for (const int count : {1, 5, kMaxParameters + 20}) {
    Bench bench;
    const ManyGradients g(count);
    clip_gradients(bench.queue, bench.scratch(), g.tensors, static_cast<float>(2 * g.norm), nullptr);
    g.expect_scaled(1, 0);
    clip_gradients(bench.queue, bench.scratch(), g.tensors, static_cast<float>(0.25 * g.norm), nullptr);
    g.expect_scaled(0.25, 1e-5);
  }
}

TEST_F(Kernels, ClippingKnowsTheLossScale) {
  Bench bench;
  auto scale = DeviceBlock<LossScale>::device(1);
  LossScale host;
  host.inverse = 1.f / 1024;
  CUDA_CHECK(cudaMemcpy(scale.data(), &host, sizeof host, cudaMemcpyHostToDevice));
  const ManyGradients g(9);
  clip_gradients(bench.queue, bench.scratch(), g.tensors, static_cast<float>(g.norm / 2048), scale.data());
  g.expect_scaled(0.5, 1e-5);
}

TEST_F(Kernels, LossScaleSkipsAndHalves) {
  Bench bench;
  auto scale = DeviceBlock<LossScale>::device(1);
  LossScale start, got;
  start.good_steps = kScaleGrowEvery - 1;
  CUDA_CHECK(cudaMemcpy(scale.data(), &start, sizeof start, cudaMemcpyHostToDevice));
  Matrix good = random_matrix(100, 100, DType::F16, 1), bad = random_matrix(33, 77, DType::F16, 2);
  const Tensor both[] = {good.t, bad.t};
  const auto look = [&] {
    check_finite(bench.queue, bench.scratch(), both, scale.data());
    CUDA_CHECK(cudaMemcpy(&got, scale.data(), sizeof got, cudaMemcpyDeviceToHost));
  };
  look();
  EXPECT_EQ(got.found_inf, 0);
  EXPECT_EQ(got.scale, 131072.f);
  EXPECT_EQ(got.inverse, 1.f / 65536);
  bad.v.back() = std::numeric_limits<float>::infinity();
  bad.upload();
  look();
  EXPECT_EQ(got.found_inf, 1);
  EXPECT_EQ(got.scale, 65536.f);
  EXPECT_EQ(got.skipped, 1);
  Parameter p(3, 5, 1);
  Matrix gradient = random_matrix(3, 5, DType::F32, 2);
  ParamRef ref = p.ref(true);
  ref.grad = gradient.t;
  OptimizerRef sgd = optimizer(Optimizer::Sgd, bench);
  sgd.scale = scale.data();
  update(bench.queue, sgd, ref);
  expect_near(p.w.download(), p.want.w, 0, "a skipped step moves nothing");
}

Precision precision_of(DType type) {
  return type == DType::Bf16 ? Precision::Bf16 : type == DType::F16 ? Precision::Fp16 : Precision::Fp32;
}

TEST_F(Kernels, GradientWithUpdate) {
  for (DType type : kTypes)
    for (Optimizer kind : kOptimizers)
      for (int64_t rows : kRows) {
        Bench bench;
        const std::pair<int64_t, int64_t> shapes[] = {{784, 128}, {128, 10}, {7, 3}, {1, 1}, {33, 66}};
        std::vector<Parameter> w, b;
        std::vector<Matrix> a, dz;
        std::vector<LayerUpdate> layers;
        for (auto [in, out] : shapes) {
          w.emplace_back(in, out, 3);
          b.emplace_back(1, out, 4);
          a.push_back(random_matrix(rows, in, type, 5));
          dz.push_back(random_matrix(rows, out, type, 6));
        }
        for (size_t i = 0; i < w.size(); ++i) {
          const bool biased = i != 1;
          layers.push_back({a[i].t, dz[i].t, w[i].ref(true), biased ? b[i].ref(false) : ParamRef{}});
          step(w[i].want, optimizer(kind, bench), multiply(a[i], true, dz[i], false), 1, true);
          if (biased) step(b[i].want, optimizer(kind, bench), column_sums(dz[i]), 1, false);
        }
        grad_update(bench.queue, optimizer(kind, bench), precision_of(type), layers);
        for (size_t i = 0; i < w.size(); ++i) {
          w[i].expect(2e-5, "weights " + std::to_string(rows));
          if (i != 1) b[i].expect(2e-5, "bias " + std::to_string(rows));
        }
      }
}

TEST_F(Kernels, GradientWithUpdateOverLargeTiles) {
  for (DType type : kTypes)
    for (Optimizer kind : kOptimizers)
      for (int64_t cols : {1027, 1032}) {  // rows that allow no 16-byte access, and rows that do
        Bench bench;
        Parameter w(1040, cols, 1), b(1, cols, 2);
        for (Parameter* p : {&w, &b})
          if (type == DType::F16) p->shadow = Matrix(p->w.t.rows, cols, DType::F16);
        const Matrix a = random_matrix(40, 1040, type, 3), dz = random_matrix(40, cols, type, 4);
        const LayerUpdate layer{a.t, dz.t, type == DType::F32 ? without_shadow(w.ref(true)) : w.ref(true),
                                type == DType::F32 ? without_shadow(b.ref(false)) : b.ref(false)};
        const OptimizerRef o = optimizer(kind, bench);
        step(w.want, o, multiply(a, true, dz, false), 1, true);
        step(b.want, o, column_sums(dz), 1, false);
        grad_update(bench.queue, o, precision_of(type), std::span(&layer, 1));
        for (Parameter* p : {&w, &b}) {
          expect_near(p->w.download(), p->want.w, 2e-5, "master");
          if (type != DType::F32) expect_near(p->shadow.download(), p->want.w, 5e-3, "shadow");
        }
      }
}

}  // namespace
}  // namespace ws::cuda::test
