// Single and fused ops against plain loops in double, on row counts that fit nothing.
#include "tests/gpu/kernel_support.h"

namespace ws::cuda::test {
namespace {

constexpr int64_t kRows[] = {1, 3, 7, 127, 1000};
constexpr DType kTypes[] = {DType::F32, DType::Bf16, DType::F16};
constexpr Activation kActivations[] = {Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu};

double rounding(DType type) { return type == DType::F32 ? 1e-6 : type == DType::F16 ? 6e-4 : 4e-3; }

class Ops : public testing::Test {
 protected:
  void SetUp() override { NEED_GPU(); }
};

TEST_F(Ops, BiasAddAndActivations) {
  Bench bench;
  for (DType type : kTypes)
    for (int64_t rows : kRows)
      for (int64_t cols : {1, 10, 64}) {
        const Matrix z = random_matrix(rows, cols, type, 1), bias = random_matrix(1, cols, type, 2);
        Matrix spread(rows, cols, type), sum(rows, cols, type), h(rows, cols, type), pre(rows, cols, type);
        broadcast_bias(bench.queue, bias.t, spread.t);
        add(bench.queue, z.t, spread.t, sum.t);
        std::vector<double> want = wide(z.v);
        for (size_t i = 0; i < want.size(); ++i) want[i] += bias.v[i % static_cast<size_t>(cols)];
        expect_near(sum.download(), want, rounding(type), "bias");
        for (Activation act : kActivations) {
          bias_activate(bench.queue, act, z.t, bias.t, h.t, pre.t);
          std::vector<double> bends = want;
          for (double& v : bends) v = bent(act, v);
          expect_near(h.download(), bends, 2 * rounding(type), "bias activate");
          expect_near(pre.download(), want, rounding(type), "pre-activation");
          activate(bench.queue, act, z.t, h.t);
          bends = wide(z.v);
          for (double& v : bends) v = bent(act, v);
          expect_near(h.download(), bends, 2 * rounding(type), "activate");
        }
      }
}

TEST_F(Ops, ActivationGradients) {
  Bench bench;
  for (DType type : kTypes)
    for (int64_t rows : kRows)
      for (Activation act : kActivations) {
        const Matrix z = random_matrix(rows, 33, DType::F32, 1), dh = random_matrix(rows, 33, type, 2);
        Matrix saved(rows, 33, DType::F32), dz(rows, 33, type);
        for (size_t i = 0; i < z.v.size(); ++i)
          saved.v[i] = needs_preactivation(act) ? z.v[i] : static_cast<float>(bent(act, z.v[i]));
        saved.upload();
        activate_grad(bench.queue, act, dh.t, saved.t, dz.t);
        std::vector<double> want = wide(dh.v);
        for (size_t i = 0; i < want.size(); ++i) want[i] *= slope_at(act, z.v[i]);
        expect_near(dz.download(), want, rounding(type) + 2e-6, "activate grad");
      }
}

TEST_F(Ops, SoftmaxAndItsLoss) {
  Bench bench;
  for (int64_t rows : kRows)
    for (int64_t cols : {2, 10, 47, 1000}) {
      const Matrix z = random_matrix(rows, cols, DType::F32, 1, 3), labels = random_labels(rows, cols, 2);
      const LossRows want = cross_entropy_rows(wide(z.v), labels, cols);
      Matrix p(rows, cols), dz(rows, cols), fused(rows, cols);
      softmax(bench.queue, z.t, p.t);
      expect_near(p.download(), want.p, 2e-6, "softmax");
      cross_entropy(bench.queue, bench.scratch(), p.t, labels.t, bench.at(0));
      softmax_grad(bench.queue, p.t, labels.t, nullptr, dz.t);
      expect_near(dz.download(), want.dz, 3e-6, "softmax grad");
      softmax_cross_entropy(bench.queue, bench.scratch(), z.t, labels.t, nullptr, fused.t, bench.at(1));
      expect_near(fused.download(), want.dz, 3e-6, "fused loss gradient");
      for (int64_t row : {0, 1}) {
        const auto m = bench.metrics_row(row);
        EXPECT_NEAR(m[0], want.loss, 1e-5 * std::abs(want.loss) + 1e-5);
        EXPECT_EQ(m[1], want.correct);
        EXPECT_EQ(m[2], static_cast<float>(rows));
      }
    }
}

TEST_F(Ops, SquaredErrorAndItsGradient) {
  Bench bench;
  for (int64_t rows : kRows)
    for (int64_t cols : {1, 3}) {
      const Matrix z = random_matrix(rows, cols, DType::F32, 1), y = random_matrix(rows, cols, DType::F32, 2);
      Matrix dz(rows, cols), fused(rows, cols);
      squared_error(bench.queue, bench.scratch(), z.t, y.t, bench.at(0));
      squared_error_grad(bench.queue, z.t, y.t, nullptr, dz.t);
      squared_error_fused(bench.queue, bench.scratch(), z.t, y.t, nullptr, fused.t, bench.at(1));
      std::vector<double> want(z.v.size());
      double loss = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const double d = static_cast<double>(z.v[i]) - y.v[i];
        loss += d * d / static_cast<double>(cols);
        want[i] = 2 * d / static_cast<double>(rows * cols);
      }
      expect_near(dz.download(), want, 1e-6, "gradient");
      expect_near(fused.download(), want, 1e-6, "fused gradient");
      for (int64_t row : {0, 1}) EXPECT_NEAR(bench.metrics_row(row)[0], loss, 1e-5 * loss);
    }
}

TEST_F(Ops, ColumnSums) {
  Bench bench;
  for (DType type : kTypes)
    for (int64_t rows : {1, 3, 127, 1000, 20000})
      for (int64_t cols : {1, 10, 127}) {
        const Matrix dz = random_matrix(rows, cols, type, 1);
        Matrix db(1, cols);
        column_sum(bench.queue, bench.scratch(), dz.t, db.t);
        expect_near(db.download(), column_sums(dz), 1e-5, "column sum of " + std::to_string(rows));
      }
}

TEST_F(Ops, Evaluation) {
  Bench bench;
  const Matrix z = random_matrix(127, 10, DType::F32, 1), labels = random_labels(127, 10, 2);
  const LossRows want = cross_entropy_rows(wide(z.v), labels, 10);
  auto sums = DeviceBlock<double>::device(3);
  CUDA_CHECK(cudaMemset(sums.data(), 0, sums.bytes()));
  for (int i = 0; i < 2; ++i)
    evaluate_loss(bench.queue, bench.scratch(), LossKind::CrossEntropy, z.t, labels.t, sums.data());
  double got[3];
  CUDA_CHECK(cudaMemcpy(got, sums.data(), sizeof got, cudaMemcpyDeviceToHost));
  EXPECT_NEAR(got[0], 2 * want.loss, 1e-5 * got[0]);
  EXPECT_EQ(got[1], 2 * want.correct);
  EXPECT_EQ(got[2], 254);
}

TEST_F(Ops, GatheredRows) {
  Bench bench;
  for (int64_t cols : {1, 7, 784})
    for (DType to : kTypes) {
      const Matrix in = random_matrix(50, cols, DType::F32, 1);
      std::vector<uint32_t> order(50);
      for (uint32_t i = 0; i < 50; ++i) order[i] = (i * 7 + 3) % 50;
      auto on_device = DeviceBlock<uint32_t>::device(50);
      CUDA_CHECK(cudaMemcpy(on_device.data(), order.data(), 200, cudaMemcpyHostToDevice));
      set_clock(bench.queue, bench.clock.data(), {0, 4});
      Matrix out(11, cols, to);
      gather_rows(bench.queue, in.t, on_device.data(), 0, bench.at(2), out.t);
      std::vector<double> want;
      for (int64_t r = 0; r < 11; ++r)
        for (int64_t c = 0; c < cols; ++c)
          want.push_back(round_to(to, static_cast<float>(in.at(order[static_cast<size_t>(4 + 22 + r)], c))));
      expect_near(out.download(), want, 0, "gather");
    }
}

TEST_F(Ops, TheClockAdvances) {
  Bench bench;
  set_clock(bench.queue, bench.clock.data(), {5, 100});
  advance(bench.queue, bench.clock.data(), 3, 192);
  StepClock got;
  CUDA_CHECK(cudaMemcpy(&got, bench.clock.data(), sizeof got, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got.step, 8);
  EXPECT_EQ(got.row, 292);
}

// ---- optimizers
// ------------------------------------------------------------------------------------------------------------- One
// parameter stepped in double.
struct Stepped {
  std::vector<double> w, m, v;
};

void step(Stepped& s, const OptimizerRef& o, const std::vector<double>& grad, int t, bool decays) {
  for (size_t i = 0; i < grad.size(); ++i) {
    const double g = grad[i] + (decays ? static_cast<double>(o.weight_decay) * s.w[i] : 0.0), lr = 0.1f;
    if (o.kind == Optimizer::Sgd) s.w[i] -= lr * g;
    if (o.kind == Optimizer::Momentum) s.w[i] -= lr * (s.m[i] = o.momentum * s.m[i] + g);
    if (o.kind != Optimizer::Adam) continue;
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

OptimizerRef optimizer(Optimizer kind, const Bench& bench) {
  return {kind, 0.9f, 0.9f, 0.999f, 1e-8f, 0.01f, bench.at(0), nullptr};
}

TEST_F(Ops, OptimizersOverManyParameters) {
  for (Optimizer kind : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
    Bench bench;
    std::vector<Parameter> parameters;
    std::vector<Matrix> gradients;
    for (int64_t n : {1, 3, 127, 1000, 5000}) {
      parameters.emplace_back(1, n, static_cast<uint32_t>(n));
      gradients.push_back(random_matrix(1, n, DType::F32, 77));
    }
    for (int t = 1; t <= 3; ++t) {
      std::vector<ParamRef> refs;
      for (size_t i = 0; i < parameters.size(); ++i) {
        refs.push_back(parameters[i].ref(i % 2 == 0));
        refs.back().grad = gradients[i].t;
        step(parameters[i].want, optimizer(kind, bench), wide(gradients[i].v), t, i % 2 == 0);
      }
      update_all(bench.queue, optimizer(kind, bench), refs);
      advance(bench.queue, bench.clock.data(), 1, 0);
    }
    for (Parameter& p : parameters) p.expect(1e-5, std::string(to_string(kind)));
  }
}

TEST_F(Ops, LossScaleSkipsAndHalves) {
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

// ---- fused layers
// -----------------------------------------------------------------------------------------------------------
Precision precision_of(DType type) {
  return type == DType::Bf16 ? Precision::Bf16 : type == DType::F16 ? Precision::Fp16 : Precision::Fp32;
}

TEST_F(Ops, GradientWithUpdate) {
  for (DType type : kTypes)
    for (Optimizer kind : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
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

ParamRef without_shadow(ParamRef ref) {
  ref.shadow = {};
  return ref;
}

TEST_F(Ops, GradientWithUpdateOverLargeTiles) {
  for (DType type : kTypes)
    for (Optimizer kind : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam})
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

TEST_F(Ops, OutputLayerWithCrossEntropy) {
  for (DType type : kTypes)
    for (int64_t rows : kRows)
      for (auto [in, out] : {std::pair<int64_t, int64_t>{5, 3}, {128, 10}, {1000, 32}, {1, 1}}) {
        Bench bench;
        const Matrix h = random_matrix(rows, in, type, 1), w = random_matrix(in, out, type, 2, 0.2f),
                     bias = random_matrix(1, out, DType::F32, 3);
        const Matrix labels = random_labels(rows, out, 4);
        Matrix dz(rows, out, type), before(rows, in, type);
        std::vector<double> z = multiply(h, false, w, false);
        for (size_t i = 0; i < z.size(); ++i) z[i] += bias.v[i % static_cast<size_t>(out)];
        const LossRows want = cross_entropy_rows(z, labels, out);
        std::vector<double> want_before(h.v.size());
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < in; ++i)
            for (int64_t o = 0; o < out; ++o)
              want_before[static_cast<size_t>(r * in + i)] +=
                  h.at(r, i) > 0 ? want.dz[static_cast<size_t>(r * out + o)] * w.at(i, o) : 0;
        output_layer(bench.queue, bench.scratch(),
                     {h.t, w.t, bias.t, labels.t, LossKind::CrossEntropy, dz.t, before.t, h.t, Activation::Relu,
                      nullptr, bench.at(3)});
        expect_near(dz.download(), want.dz, rounding(type) + 1e-5, "dz");
        expect_near(before.download(), want_before, rounding(type) + 1e-5, "dz before");
        EXPECT_NEAR(bench.metrics_row(3)[0], want.loss, 1e-4 * std::abs(want.loss) + 1e-5);
        EXPECT_EQ(bench.metrics_row(3)[1], want.correct);
      }
}

TEST_F(Ops, LossesJoinedLater) {
  for (int64_t rows : {1, 7, 127, 1000}) {
    Bench bench;
    const Matrix h = random_matrix(rows, 20, DType::F32, 1), w = random_matrix(20, 10, DType::F32, 2),
                 labels = random_labels(rows, 10, 4);
    Matrix dz(rows, 10), later(rows, 10);
    OutputLayer layer{h.t, w.t, {}, labels.t, LossKind::CrossEntropy, dz.t};
    layer.at = bench.at(0);
    output_layer(bench.queue, bench.scratch(), layer);
    layer.dz = later.t;
    layer.at = bench.at(1);
    layer.join_later = true;
    output_layer(bench.queue, bench.scratch(), layer);
    Parameter p(20, 10, 3);
    const LayerUpdate update{h.t, later.t, p.ref(true), {}};
    OptimizerRef sgd = optimizer(Optimizer::Sgd, bench);
    sgd.at = bench.at(1);
    grad_update(bench.queue, sgd, Precision::Fp32, std::span(&update, 1), {bench.scratch(), static_cast<int>(rows)});
    EXPECT_EQ(dz.download(), later.download());
    EXPECT_NEAR(bench.metrics_row(1)[0], bench.metrics_row(0)[0], 1e-5 * bench.metrics_row(0)[0]);
    EXPECT_EQ(bench.metrics_row(1)[1], bench.metrics_row(0)[1]);
    EXPECT_EQ(bench.metrics_row(1)[2], static_cast<float>(rows));
  }
}

TEST_F(Ops, LineInOnePass) {
  for (int64_t rows : {1, 3, 7, 127, 1000, 100003})
    for (int64_t inputs : {1, 5})
      for (bool constant : {false, true}) {
        Bench bench;
        const Matrix x = random_matrix(rows, inputs, DType::F32, 1), y = random_matrix(rows, 1, DType::F32, 2);
        Matrix w = random_matrix(inputs, 1, DType::F32, 3), b = random_matrix(1, 1, DType::F32, 4), dw(inputs, 1),
               db(1, 1);
        std::vector<double> want_dw(static_cast<size_t>(inputs));
        double want_db = 0, loss = 0;
        for (int64_t r = 0; r < rows; ++r) {
          double d = b.v[0] - y.at(r, 0);
          for (int64_t j = 0; j < inputs; ++j) d += x.at(r, j) * w.v[static_cast<size_t>(j)];
          for (int64_t j = 0; j < inputs; ++j)
            want_dw[static_cast<size_t>(j)] += 2 * d * x.at(r, j) / static_cast<double>(rows);
          want_db += 2 * d / static_cast<double>(rows);
          loss += d * d;
        }
        LinearStep step{x.t, y.t, static_cast<float*>(w.t.data), static_cast<float*>(b.t.data)};
        step.dw = static_cast<float*>(dw.t.data);
        step.db = static_cast<float*>(db.t.data);
        step.data_is_constant = constant;
        step.at = bench.at(0);
        linear_step(bench.queue, bench.scratch(), step);
        expect_near(dw.download(), want_dw, 1e-5, "dw of " + std::to_string(rows));
        expect_near(db.download(), {want_db}, 1e-5, "db of " + std::to_string(rows));
        EXPECT_NEAR(bench.metrics_row(0)[0], loss, 1e-5 * loss);
        const OptimizerRef sgd{Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0), nullptr};
        step.optimizer = &sgd;
        linear_step(bench.queue, bench.scratch(), step);
        expect_near(b.download(), {b.v[0] - 0.1 * want_db}, 1e-5, "b");
        expect_near({w.download()[0]}, {w.v[0] - 0.1 * want_dw[0]}, 1e-5, "w");
      }
}

TEST_F(Ops, LineInChunks) {
  Bench bench;
  const Matrix x = random_matrix(5000, 1, DType::F32, 1), y = random_matrix(5000, 1, DType::F32, 2);
  Matrix w = random_matrix(1, 1, DType::F32, 3), b = random_matrix(1, 1, DType::F32, 4), dw(1, 1), db(1, 1), dw2(1, 1),
         db2(1, 1);
  LinearStep step{x.t, y.t, static_cast<float*>(w.t.data), static_cast<float*>(b.t.data)};
  step.dw = static_cast<float*>(dw.t.data);
  step.db = static_cast<float*>(db.t.data);
  step.at = bench.at(0);
  linear_step(bench.queue, bench.scratch(), step);
  auto slots = DeviceBlock<float>::device(12);
  for (int chunk = 0; chunk < 4; ++chunk) {
    LinearStep part = step;
    for (Tensor* t : {&part.x, &part.y})
      t->data = static_cast<float*>(t->data) + chunk * 1248, t->rows = chunk == 3 ? 5000 - 3 * 1248 : 1248;
    linear_chunk(bench.queue, bench.scratch(), part, chunk, slots.data());
  }
  step.dw = static_cast<float*>(dw2.t.data);
  step.db = static_cast<float*>(db2.t.data);
  linear_join(bench.queue, step, 4, slots.data());
  expect_near(dw2.download(), wide(dw.download()), 1e-5, "dw");
  expect_near(db2.download(), wide(db.download()), 1e-5, "db");
}

}  // namespace
}  // namespace ws::cuda::test
