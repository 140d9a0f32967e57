// Single ops against plain loops in double, on row counts that fit nothing.
#include "tests/gpu/op_support.h"

namespace ws::cuda::test {
namespace {

TEST_F(Kernels, BiasAddAndActivations) {
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

TEST_F(Kernels, ActivationGradients) {
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

void expect_softmax_loss(int64_t rows, int64_t cols, double smoothing) {
  Bench bench;
  const Matrix z = random_matrix(rows, cols, DType::F32, 1, 3), labels = random_labels(rows, cols, 2);
  const LossRows want = cross_entropy_rows(wide(z.v), labels, cols, 1, smoothing);
  Matrix p(rows, cols), dz(rows, cols), fused(rows, cols);
  softmax(bench.queue, z.t, p.t);
  expect_near(p.download(), want.p, 2e-6, "softmax");
  cross_entropy(bench.queue, bench.scratch(), z.t, {labels.t, smoothing}, bench.at(0));
  softmax_grad(bench.queue, p.t, {labels.t, smoothing}, nullptr, dz.t);
  expect_near(dz.download(), want.dz, 3e-6, "softmax grad");
  softmax_cross_entropy(bench.queue, bench.scratch(), z.t, {labels.t, smoothing}, nullptr, fused.t, bench.at(1));
  expect_near(fused.download(), want.dz, 3e-6, "fused loss gradient");
  for (int64_t row : {0, 1}) {
    const auto m = bench.metrics_row(row);
    EXPECT_NEAR(m[0], want.loss, 1e-5 * std::abs(want.loss) + 1e-5);
    EXPECT_EQ(m[1], want.correct);
    EXPECT_EQ(m[2], static_cast<float>(rows));
  }
}

TEST_F(Kernels, SoftmaxAndItsLoss) {
  for (double smoothing : {0.0, 0.1})
    for (int64_t rows : kRows)
      for (int64_t cols : {2, 10, 47, 96, 128, 1000}) expect_softmax_loss(rows, cols, smoothing);
}

// A class whose share of the softmax is below the smallest float still has its loss.
TEST_F(Kernels, LossHasNoLimit) {
  for (int64_t cols : {10, 300}) {
    Bench bench;
    const Matrix z = random_matrix(127, cols, DType::F32, 1, 200), labels = random_labels(127, cols, 2);
    const LossRows want = cross_entropy_rows(wide(z.v), labels, cols);
    Matrix dz(127, cols);
    cross_entropy(bench.queue, bench.scratch(), z.t, labels.t, bench.at(0));
    softmax_cross_entropy(bench.queue, bench.scratch(), z.t, labels.t, nullptr, dz.t, bench.at(1));
    EXPECT_GT(want.loss, 127 * 100);
    for (int64_t row : {0, 1}) EXPECT_NEAR(bench.metrics_row(row)[0], want.loss, 1e-5 * want.loss);
  }
}

TEST_F(Kernels, LossOf16BitScores) {
  for (DType type : {DType::Bf16, DType::F16})
    for (int64_t cols : {96, 300}) {
      Bench bench;
      const Matrix z = random_matrix(1000, cols, type, 1, 3), labels = random_labels(1000, cols, 2);
      const LossRows want = cross_entropy_rows(wide(z.v), labels, cols);
      Matrix dz(1000, cols, type);
      softmax_cross_entropy(bench.queue, bench.scratch(), z.t, labels.t, nullptr, dz.t, bench.at(0));
      expect_near(dz.download(), want.dz, rounding(type), "loss gradient");
      EXPECT_NEAR(bench.metrics_row(0)[0], want.loss, 1e-5 * want.loss);
    }
}

TEST_F(Kernels, SquaredErrorAndItsGradient) {
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

TEST_F(Kernels, ColumnSums) {
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

TEST_F(Kernels, Evaluation) {
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

TEST_F(Kernels, GatheredRows) {
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

TEST_F(Kernels, TheClockAdvances) {
  Bench bench;
  set_clock(bench.queue, bench.clock.data(), {5, 100});
  advance(bench.queue, bench.clock.data(), 3, 192);
  StepClock got;
  CUDA_CHECK(cudaMemcpy(&got, bench.clock.data(), sizeof got, cudaMemcpyDeviceToHost));
  EXPECT_EQ(got.step, 8);
  EXPECT_EQ(got.row, 292);
}

}  // namespace
}  // namespace ws::cuda::test
