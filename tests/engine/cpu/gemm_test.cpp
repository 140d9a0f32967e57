// Matrix products of all shapes against sums in float64, with each vector set of this processor and on several threads.
#include "engine/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "engine/cpu/cores.h"

namespace ws::cpu {
namespace {

struct Shape {
  int64_t rows = 0, cols = 0, terms = 0;
};
struct Factors {
  double factor = 1, kept = 0;
};

// Each operand has a buffer that ends where its last value ends: a sanitizer finds reads behind it.
template <class Real>
struct Case {
  Case(Shape size, bool a_is_transposed, bool b_is_transposed, Factors factors, int64_t gap) : shape(size) {
    const int64_t a_rows = a_is_transposed ? shape.terms : shape.rows, a_cols = a_is_transposed ? shape.rows : shape.terms;
    const int64_t b_rows = b_is_transposed ? shape.cols : shape.terms, b_cols = b_is_transposed ? shape.terms : shape.cols;
    fill(a, a_rows, a_cols, gap), fill(b, b_rows, b_cols, 2 * gap), fill(c, shape.rows, shape.cols, 3 * gap);
    if (factors.kept == 0)
      for (int64_t i = 0; i < shape.rows; ++i)
        for (int64_t j = 0; j < shape.cols; ++j) c[static_cast<size_t>(i * (shape.cols + 3 * gap) + j)] = NAN;
    product.rows = shape.rows, product.cols = shape.cols, product.terms = shape.terms;
    product.factor = static_cast<Real>(factors.factor), product.kept = static_cast<Real>(factors.kept);
    const int64_t a_stride = a_cols + gap, b_stride = b_cols + 2 * gap;
    product.a_row = a_is_transposed ? 1 : a_stride, product.a_term = a_is_transposed ? a_stride : 1;
    product.b_term = b_is_transposed ? 1 : b_stride, product.b_col = b_is_transposed ? b_stride : 1;
    product.c_row = shape.cols + 3 * gap;
  }

  void fill(std::vector<Real>& to, int64_t rows, int64_t cols, int64_t gap) {
    to.resize(static_cast<size_t>(rows > 0 && cols > 0 ? rows * (cols + gap) - gap : 0));
    for (Real& v : to) v = static_cast<Real>(values(random));
  }

  std::vector<Real> run(const Kernels<Real>& kernels, int64_t threads = cores()) const {
    std::vector<Real> result = c;
    Product<Real> p = product;
    p.a = a.data(), p.b = b.data(), p.c = result.data();
    gemm(p, kernels, threads);
    return result;
  }

  void check(const std::vector<Real>& result) const {
    std::vector<bool> is_part(result.size());
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t j = 0; j < shape.cols; ++j) {
        const auto at = static_cast<size_t>(i * product.c_row + j);
        is_part[at] = true;
        double sum = 0, sizes = 1;
        for (int64_t t = 0; t < shape.terms; ++t) {
          const double term = static_cast<double>(a[static_cast<size_t>(i * product.a_row + t * product.a_term)]) *
                              static_cast<double>(b[static_cast<size_t>(t * product.b_term + j * product.b_col)]);
          sum += term, sizes += std::abs(term);
        }
        double expected = static_cast<double>(product.factor) * sum;
        if (product.kept != 0) expected += static_cast<double>(product.kept) * static_cast<double>(c[at]);
        const double error = 8 * static_cast<double>(std::numeric_limits<Real>::epsilon()) * sizes;
        ASSERT_NEAR(static_cast<double>(result[at]), expected, error) << "row " << i << ", column " << j;
      }
    for (size_t i = 0; i < result.size(); ++i)
      ASSERT_TRUE(is_part[i] || result[i] == c[i]) << "between the rows";
  }

  Shape shape;
  Product<Real> product;
  std::vector<Real> a, b, c;
  std::mt19937 random{7};
  std::uniform_real_distribution<double> values{-1, 1};
};

std::vector<VectorSet> sets() {
  std::vector<VectorSet> here;
  for (const VectorSet set : {VectorSet::Baseline, VectorSet::Avx2, VectorSet::Avx512})
    if (processor_has(set)) here.push_back(set);
  return here;
}

template <class Real>
void check_shapes(const std::vector<Shape>& shapes, const std::vector<Factors>& all_factors) {
  for (const VectorSet set : sets())
    for (const Shape& shape : shapes)
      for (const Factors& factors : all_factors)
        for (int way = 0; way < 8; ++way) {
          SCOPED_TRACE(testing::Message() << "vectors " << static_cast<int>(set) << ", " << shape.rows << "x" << shape.cols << "x"
                                          << shape.terms << ", way " << way << ", factor " << factors.factor << ", kept " << factors.kept);
          const Case<Real> one(shape, way & 1, way & 2, factors, way & 4 ? 5 : 0);
          one.check(one.run(kernels_of<Real>(set)));
          if (testing::Test::HasFatalFailure()) return;
        }
}

const std::vector<Factors> kFactors{{1, 0}, {1, 1}, {0, 0}, {0, 1}, {-0.75, 0}, {0.375, 1}, {1.5, -0.25}};

TEST(Gemm, SmallShapesInAllWays) {
  std::vector<Shape> shapes;
  for (const int64_t rows : {0, 1, 2, 3, 5, 8, 9})
    for (const int64_t cols : {0, 1, 3, 7, 8, 16, 17, 33, 50})
      for (const int64_t terms : {0, 1, 4, 9}) shapes.push_back({rows, cols, terms});
  check_shapes<float>(shapes, kFactors);
  check_shapes<double>(shapes, kFactors);
}

// More rows, columns and terms than one panel, tile or part of the sum has.
TEST(Gemm, LargeShapesInAllWays) {
  const std::vector<Shape> shapes{{1, 300, 40}, {300, 1, 40}, {31, 47, 225}, {64, 64, 64}, {100, 10, 500}, {17, 200, 449}, {460, 100, 30}, {130, 145, 90}};
  check_shapes<float>(shapes, {{1, 0}, {0.375, 1}});
  check_shapes<double>(shapes, {{1, 0}, {1.5, -0.25}});
}

// A factor that is not a power of two, so that a different order of the last roundings would show.
TEST(Gemm, BitsDoNotDependOnTheNumberOfThreads) {
  for (const VectorSet set : sets())
    for (const Shape& shape : {Shape{128, 130, 500}, {64, 300, 250}, {500, 33, 300}, {3, 2000, 300}, {2000, 3, 300}})
      for (int way = 0; way < 4; ++way) {
        const Case<float> one(shape, way & 1, way & 2, {0.3, 0.7}, 0);
        const auto alone = one.run(kernels_of<float>(set), 1);
        for (const int64_t threads : {2, 3, 4}) EXPECT_EQ(one.run(kernels_of<float>(set), threads), alone) << threads << " threads, way " << way;
      }
}

// The same values as the baseline's, also behind the last whole vector. Equal values: the first one has the gradient.
template <class Real>
void check_pools(VectorSet set) {
  const Kernels<Real> &own = kernels_of<Real>(set), &base = kernels_of<Real>(VectorSet::Baseline);
  for (const int64_t channels : {1, 3, 8, 16, 21, 40}) {
    const Pool pool{5 * channels, 3, 2, channels};
    std::vector<Real> in(static_cast<size_t>(15 * channels)), gradient(static_cast<size_t>(channels));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<Real>(i * 37 % 5);
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<Real>(i + 1);
    const auto run = [&](const Kernels<Real>& kernels) {
      std::vector<Real> most(gradient.size()), sum(in.size());
      kernels.pool(pool, in.data(), most.data());
      kernels.pool_grad(pool, in.data(), most.data(), gradient.data(), sum.data());
      EXPECT_EQ(std::accumulate(sum.begin(), sum.end(), Real(0)), static_cast<Real>(channels * (channels + 1) / 2));
      sum.insert(sum.end(), most.begin(), most.end());
      return sum;
    };
    EXPECT_EQ(run(own), run(base)) << channels << " channels, vectors " << static_cast<int>(set);
  }
}

TEST(VectorKernels, PoolsAgree) {
  for (const VectorSet set : sets()) {
    check_pools<float>(set);
    check_pools<double>(set);
  }
}

// The same block on several threads at once: each has a space of its own.
TEST(Gemm, CallersAtOnceEachGetTheirProduct) {
  const Case<float> one({60, 70, 300}, true, true, {1, 0}, 0);
  const auto expected = one.run(best_kernels<float>());
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> callers;
  for (auto& result : results)
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) result = one.run(best_kernels<float>());
    });
  for (std::thread& caller : callers) caller.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace ws::cpu
