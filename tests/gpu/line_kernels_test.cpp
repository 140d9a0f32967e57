// Lines through points against plain loops in double: one step, chunks of one, and many steps in one launch.
#include "datasets/synthetic.h"
#include "tests/gpu/op_support.h"

namespace ws::cuda::test {
namespace {

struct Gradient {
  std::vector<double> dw;
  double db = 0, loss = 0;  // loss summed over the rows
};

Gradient gradient(const Matrix& x, const Matrix& y, const std::vector<double>& w, double b) {
  Gradient g;
  g.dw.resize(w.size());
  const double rows = static_cast<double>(x.t.rows);
  for (int64_t r = 0; r < x.t.rows; ++r) {
    double d = b - y.at(r, 0);
    for (size_t j = 0; j < w.size(); ++j) d += x.at(r, static_cast<int64_t>(j)) * w[j];
    for (size_t j = 0; j < w.size(); ++j) g.dw[j] += 2 * d * x.at(r, static_cast<int64_t>(j)) / rows;
    g.db += 2 * d / rows;
    g.loss += d * d;
  }
  return g;
}

LinearStep step_of(const Matrix& x, const Matrix& y, const Matrix& w, const Matrix& b) {
  return {x.t, y.t, static_cast<float*>(w.t.data), static_cast<float*>(b.t.data)};
}

TEST_F(Kernels, LineInOnePass) {
  for (int64_t rows : {1, 3, 7, 127, 1000, 100003, 200001})
    for (int64_t inputs : {1, 5})
      for (bool constant : {false, true}) {
        Bench bench;
        const Matrix x = random_matrix(rows, inputs, DType::F32, 1), y = random_matrix(rows, 1, DType::F32, 2);
        Matrix w = random_matrix(inputs, 1, DType::F32, 3), b = random_matrix(1, 1, DType::F32, 4), dw(inputs, 1),
               db(1, 1);
        const Gradient want = gradient(x, y, wide(w.v), b.v[0]);
        LinearStep step = step_of(x, y, w, b);
        step.dw = static_cast<float*>(dw.t.data);
        step.db = static_cast<float*>(db.t.data);
        step.data_is_constant = constant;
        step.at = bench.at(0);
        linear_step(bench.queue, bench.scratch(), step);
        expect_near(dw.download(), want.dw, 1e-5, "dw of " + std::to_string(rows));
        expect_near(db.download(), {want.db}, 1e-5, "db of " + std::to_string(rows));
        EXPECT_NEAR(bench.metrics_row(0)[0], want.loss, 1e-5 * want.loss);
        const OptimizerRef sgd{Optimizer::Sgd, 0, 0, 0, 0, 0, bench.at(0), nullptr};
        step.optimizer = &sgd;
        linear_step(bench.queue, bench.scratch(), step);
        expect_near(b.download(), {b.v[0] - 0.1 * want.db}, 1e-5, "b");
        expect_near({w.download()[0]}, {w.v[0] - 0.1 * want.dw[0]}, 1e-5, "w");
      }
}

// From step 13 on, so that the tables' 16 rows wrap round; rates that differ from step to step.
TEST_F(Kernels, ManyStepsOfALineInOneLaunch) {
  constexpr int64_t first = 13, steps = 7;
  for (int64_t rows : {1, 3, 1000, 16387, 50001, 150000, 200003, 5000000})
    for (Optimizer kind : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam}) {
      if (rows > 1000000 && kind != Optimizer::Momentum) continue;  // the loops in double take their time
      SCOPED_TRACE(std::to_string(rows) + " points, " + std::string(to_string(kind)));
      Bench bench;
      bench.set_rates([](int64_t row) { return 0.02f + 0.001f * static_cast<float>(row); });
      set_clock(bench.queue, bench.clock.data(), {first, 0});
      const Matrix x = random_matrix(rows, 1, DType::F32, 1), y = random_matrix(rows, 1, DType::F32, 2);
      Parameter w(1, 1, 3), b(1, 1, 4);
      OptimizerRef how = optimizer(kind, bench);
      LinearStep step = step_of(x, y, w.w, b.w);
      step.optimizer = &how;
      step.w_param = without_shadow(w.ref(true)), step.b_param = without_shadow(b.ref(false));
      step.data_is_constant = true;
      step.at = bench.at(0);
      step.held = true;
      ASSERT_TRUE(keeps_points(x.t));
      step.steps = 4;
      linear_step(bench.queue, bench.scratch(), step);
      step.steps = steps - 4;  // a second launch goes on where the first one ended
      step.at = how.at = bench.at(4);
      linear_step(bench.queue, bench.scratch(), step);
      for (int64_t i = 0; i < steps; ++i) {
        const Gradient g = gradient(x, y, w.want.w, b.want.w[0]);
        const int64_t row = (first + i) % 16;
        EXPECT_NEAR(bench.metrics_row(row)[0], g.loss, 2e-5 * g.loss) << "step " << i;
        EXPECT_EQ(bench.metrics_row(row)[2], static_cast<float>(rows));
        const double lr = 0.02f + 0.001f * static_cast<float>(row);
        test::step(w.want, how, g.dw, static_cast<int>(first + i + 1), true, lr);
        test::step(b.want, how, {g.db}, static_cast<int>(first + i + 1), false, lr);
      }
      expect_near(w.w.download(), w.want.w, 1e-4, "w");
      expect_near(b.w.download(), b.want.w, 1e-4, "b");
      if (kind != Optimizer::Sgd) expect_near(w.m.download(), w.want.m, 1e-4, "first moment");
      if (kind == Optimizer::Adam) expect_near(w.v.download(), w.want.v, 1e-4, "second moment");
    }
}

TEST_F(Kernels, ManyStepsOfPointsThatAreNotHeldAreRefused) {
  Bench bench;
  const Matrix x(200000, 1), y(200000, 1), w(1, 1), b(1, 1);
  LinearStep step = step_of(x, y, w, b);
  step.at = bench.at(0);
  step.steps = 2;
  EXPECT_THROW(linear_step(bench.queue, bench.scratch(), step), Failure);
}

TEST_F(Kernels, PointsMadeOnTheGpuEqualTheDataSet) {
  data::DataSpec spec;
  spec.points = 10007, spec.seed = 7, spec.slope = -1.5, spec.intercept = 0.3, spec.noise = 0.2;
  Bench bench;
  Matrix x(5000, 1), y(5000, 1);
  fill_line(bench.queue, static_cast<float*>(x.t.data), static_cast<float*>(y.t.data), 5000, 5007, spec);
  const std::vector<float> got_x = x.download(), got_y = y.download();
  for (size_t i = 0; i < 5000; ++i) {
    const data::LinePoint want = data::line_point(7, 5007 + i, -1.5f, 0.3f, 0.2f);
    ASSERT_EQ(got_x[i], want.x) << i;
    ASSERT_EQ(got_y[i], want.y) << i;
  }
}

}  // namespace
}  // namespace ws::cuda::test
