// The last layer in one kernel against plain loops in double: small batches and large ones.
#include "tests/gpu/op_support.h"

namespace ws::cuda::test {
namespace {

struct Layer {
  int64_t rows, in, out;
  DType type;
  LossKind loss;
};

// The layer's operands, and what it should make of them.
struct Prepared {
  Matrix h, w, bias, y, dz, before;
  LossRows want;
  std::vector<double> want_before;

  explicit Prepared(const Layer& l)
      : h(random_matrix(l.rows, l.in, l.type, 1)),
        w(random_matrix(l.in, l.out, l.type, 2, 0.2f)),
        bias(random_matrix(1, l.out, DType::F32, 3)),
        y(l.loss == LossKind::CrossEntropy ? random_labels(l.rows, l.out, 4)
                                           : random_matrix(l.rows, l.out, DType::F32, 4)),
        dz(l.rows, l.out, l.type),
        before(l.rows, l.in, l.type) {
    std::vector<double> z = multiply(h, false, w, false);
    for (size_t i = 0; i < z.size(); ++i) z[i] += bias.v[i % static_cast<size_t>(l.out)];
    want = l.loss == LossKind::CrossEntropy ? cross_entropy_rows(z, y, l.out) : squared_error_rows(z, y);
    want_before.resize(h.v.size());
    for (int64_t r = 0; r < l.rows; ++r)
      for (int64_t i = 0; i < l.in; ++i)
        for (int64_t o = 0; o < l.out; ++o)
          want_before[static_cast<size_t>(r * l.in + i)] +=
              h.at(r, i) > 0 ? want.dz[static_cast<size_t>(r * l.out + o)] * w.at(i, o) : 0;
  }
};

void expect_right(const Layer& l) {
  SCOPED_TRACE(std::to_string(l.rows) + " rows, " + std::to_string(l.in) + " to " + std::to_string(l.out));
  const Bench bench;
  const Prepared p(l);
  output_layer(
      bench.queue, bench.scratch(),
      {p.h.t, p.w.t, p.bias.t, p.y.t, l.loss, p.dz.t, p.before.t, p.h.t, Activation::Relu, nullptr, bench.at(3)});
  expect_near(p.dz.download(), p.want.dz, rounding(l.type) + 1e-5, "dz");
  expect_near(p.before.download(), p.want_before, rounding(l.type) + 1e-5, "dz before");
  EXPECT_NEAR(bench.metrics_row(3)[0], p.want.loss, 1e-4 * std::abs(p.want.loss) + 1e-5);
  EXPECT_EQ(bench.metrics_row(3)[1], p.want.correct);
  EXPECT_EQ(bench.metrics_row(3)[2], static_cast<float>(l.rows));
}

TEST_F(Kernels, OutputLayer) {
  for (DType type : kTypes)
    for (int64_t rows : kRows)
      for (auto [in, out] : {std::pair<int64_t, int64_t>{5, 3}, {128, 10}, {1000, 32}, {1, 1}})
        for (LossKind loss : {LossKind::CrossEntropy, LossKind::MeanSquared}) expect_right({rows, in, out, type, loss});
}

TEST_F(Kernels, OutputLayerOverManyRows) {
  for (DType type : kTypes)
    for (int64_t rows : {1025, 5003})
      for (auto [in, out] : {std::pair<int64_t, int64_t>{5, 3}, {128, 10}, {127, 10}, {250, 7}, {256, 10}, {100, 32}})
        for (LossKind loss : {LossKind::CrossEntropy, LossKind::MeanSquared}) expect_right({rows, in, out, type, loss});
}

TEST_F(Kernels, OutputLayerOverManyRowsOfOtherActivations) {
  for (Activation act : kActivations) {
    const Bench bench;
    Prepared p({2001, 40, 10, DType::F32, LossKind::CrossEntropy});
    const Matrix saved = random_matrix(2001, 40, DType::F32, 9, 0.5f);
    output_layer(bench.queue, bench.scratch(),
                 {p.h.t, p.w.t, p.bias.t, p.y.t, LossKind::CrossEntropy, p.dz.t, p.before.t, saved.t, act, nullptr,
                  bench.at(0)});
    std::vector<double> want = multiply_rows(p.want.dz, p.w);
    for (size_t i = 0; i < want.size(); ++i) want[i] *= slope_from_saved(act, saved.v[i]);
    expect_near(p.before.download(), want, 1e-5, std::string(to_string(act)));
  }
}

TEST_F(Kernels, OutputLayerOverManyRowsMakesItsGradients) {
  for (DType type : kTypes)
    for (int64_t rows : {1025, 5003})
      for (auto [in, out] : {std::pair<int64_t, int64_t>{128, 10}, {5, 3}, {127, 9}}) {
        SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(in) + " to " + std::to_string(out));
        const Bench bench;
        const Prepared p({rows, in, out, type, LossKind::CrossEntropy});
        Matrix dw(in, out), db(1, out), db_before(1, in);
        OutputLayer layer{
            p.h.t,   p.w.t,      p.bias.t, p.y.t, LossKind::CrossEntropy, p.dz.t, p.before.t, p.h.t, Activation::Relu,
            nullptr, bench.at(0)};
        layer.dw = dw.t, layer.db = db.t, layer.db_before = db_before.t;
        output_layer(bench.queue, bench.scratch(), layer);
        std::vector<double> want_dw(dw.v.size()), want_db(db.v.size()), want_before(db_before.v.size());
        for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
          const double* dz = p.want.dz.data() + r * static_cast<size_t>(out);
          for (size_t o = 0; o < want_db.size(); ++o) want_db[o] += dz[o];
          for (size_t i = 0; i < want_before.size(); ++i) {
            want_before[i] += p.want_before[r * want_before.size() + i];
            for (size_t o = 0; o < want_db.size(); ++o)
              want_dw[i * want_db.size() + o] += p.h.v[r * want_before.size() + i] * dz[o];
          }
        }
        expect_near(dw.download(), want_dw, 2e-5, "dW");
        expect_near(db.download(), want_db, 2e-5, "db");
        expect_near(db_before.download(), want_before, 2e-5, "db before");
        expect_near(p.before.download(), p.want_before, rounding(type) + 1e-5, "dz before");
      }
}

TEST_F(Kernels, LossesJoinedLater) {
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

}  // namespace
}  // namespace ws::cuda::test
