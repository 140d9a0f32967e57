// Matrix products: every way of computing them, every kind of number, every epilogue, odd shapes.
#include <atomic>
#include <thread>

#include "engine/cuda/kernels/blas.h"
#include "engine/cuda/kernels/small_gemm.h"
#include "tests/gpu/kernel_support.h"

namespace ws::cuda::test {
namespace {

struct Shape {
  int64_t m, n, k;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {3, 7, 5},      {7, 3, 127},   {127, 10, 33},
                             {64, 128, 784}, {1000, 10, 3},  {33, 65, 129}, {64, 784, 784},
                             {32, 1024, 96}, {128, 512, 64}, {1, 1000, 7},  {512, 784, 40}};

double tolerance_of(Precision p, DType out) {
  if (p == Precision::Fp32) return 2e-6;
  if (p == Precision::Tf32) return 6e-4;
  return out == DType::F32 ? 2e-6 : p == Precision::Bf16 ? 4e-3 : 6e-4;
}

enum class Way { Naive, Tiled, Small, Warpgroups, Library };

void compute(Way way, Bench& bench, Blas& blas, const Product& p) {
  if (way == Way::Naive) return matmul(bench.queue, blas, bench.scratch(), Matmul::Naive, p);
  if (way == Way::Tiled) return matmul(bench.queue, blas, bench.scratch(), Matmul::Tiled, p);
  if (way == Way::Library) return blas_product(bench.queue, blas, bench.scratch(), p);
  if (way == Way::Warpgroups) return gemm_by_warpgroups(bench.queue, p);
  small_gemm(bench.queue, p);
}

// The operands of one product, and what it should make.
struct Case {
  Matrix a, b, c, bias, saved, bias_grad;
  Product p;
  std::vector<double> want_c, want_saved, want_bias_grad;
};

Case make_case(Shape s, Precision precision, bool ta, bool tb, Epilogue epilogue, Activation activation, DType out) {
  const DType type = type_of(precision);
  Case t;
  t.a = random_matrix(ta ? s.k : s.m, ta ? s.m : s.k, type, 1);
  t.b = random_matrix(tb ? s.n : s.k, tb ? s.k : s.n, type, 2);
  t.c = Matrix(s.m, s.n, out);
  t.p = Product{t.a.t, t.b.t, t.c.t, ta, tb, epilogue, activation, {}, {}, {}, precision};
  t.want_c = multiply(t.a, ta, t.b, tb);
  const auto cols = static_cast<size_t>(s.n);
  if (epilogue == Epilogue::Bias || epilogue == Epilogue::BiasActivate) {
    t.bias = random_matrix(1, s.n, out, 3);
    t.p.bias = t.bias.t;
    for (size_t i = 0; i < t.want_c.size(); ++i) t.want_c[i] += t.bias.v[i % cols];
  }
  if (epilogue == Epilogue::BiasActivate) {
    if (needs_preactivation(activation)) {
      t.saved = Matrix(s.m, s.n, out);
      t.p.saved = t.saved.t;
      t.want_saved = t.want_c;
    }
    for (double& v : t.want_c) v = bent(activation, v);
  }
  if (epilogue == Epilogue::ActivateGrad) {
    t.saved = random_matrix(s.m, s.n, type, 4);
    if (!needs_preactivation(activation))
      for (float& v : t.saved.v) v = static_cast<float>(bent(activation, v));
    t.saved.upload();
    t.p.saved = t.saved.t;
    for (size_t i = 0; i < t.want_c.size(); ++i) {
      const double h = t.saved.v[i];
      t.want_c[i] *= activation == Activation::Relu      ? (h > 0 ? 1 : 0)
                     : activation == Activation::Tanh    ? 1 - h * h
                     : activation == Activation::Sigmoid ? h * (1 - h)
                                                         : slope_at(activation, h);
    }
  }
  if (epilogue == Epilogue::BiasGrad) {
    t.bias_grad = Matrix(1, s.n, DType::F32);
    t.p.bias_grad = t.bias_grad.t;
    t.want_bias_grad = column_sums(t.b);
  }
  return t;
}

void check(Way way, Bench& bench, Blas& blas, Case& t, double tolerance, const std::string& what) {
  compute(way, bench, blas, t.p);
  CUDA_CHECK(cudaDeviceSynchronize());
  expect_near(t.c.download(), t.want_c, tolerance, what);
  if (t.p.epilogue == Epilogue::BiasActivate && t.p.saved)
    expect_near(t.saved.download(), t.want_saved, tolerance, what + " saved");
  if (t.p.bias_grad) expect_near(t.bias_grad.download(), t.want_bias_grad, 2e-6, what + " bias gradient");
}

class Products : public testing::TestWithParam<std::tuple<Way, Precision>> {
 protected:
  void SetUp() override { NEED_GPU(); }
};

TEST_P(Products, MatchPlainLoops) {
  const auto [way, precision] = GetParam();
  Bench bench;
  Blas blas;
  for (const Shape& s : kShapes)
    for (int layout = 0; layout < 3; ++layout) {
      const bool ta = layout == 1, tb = layout == 2;
      const DType out = ta ? DType::F32 : type_of(precision);
      const std::string what = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                               (ta   ? " TN"
                                : tb ? " NT"
                                     : " NN");
      Case plain = make_case(s, precision, ta, tb, Epilogue::None, Activation::None, out);
      check(way, bench, blas, plain, tolerance_of(precision, out), what);
      if (HasFatalFailure()) return;
    }
}

TEST_P(Products, EpiloguesMatchPlainLoops) {
  const auto [way, precision] = GetParam();
  Bench bench;
  Blas blas;
  const DType type = type_of(precision);
  for (const Shape& s : {Shape{3, 7, 5}, Shape{127, 10, 33}, Shape{64, 128, 784}, Shape{33, 64, 128}}) {
    const auto run = [&](bool ta, bool tb, Epilogue e, Activation act, DType out) {
      Case t = make_case(s, precision, ta, tb, e, act, out);
      check(way, bench, blas, t, 2 * tolerance_of(precision, out) + (type == DType::F32 ? 0 : 1e-3),
            "epilogue " + std::to_string(static_cast<int>(e)) + " " + std::string(to_string(act)) + " " + std::to_string(s.m));
    };
    run(false, false, Epilogue::Bias, Activation::None, DType::F32);
    for (Activation act : {Activation::Relu, Activation::Sigmoid, Activation::Tanh, Activation::Gelu}) {
      run(false, false, Epilogue::BiasActivate, act, type);
      run(false, true, Epilogue::ActivateGrad, act, type);
    }
    run(true, false, Epilogue::BiasGrad, Activation::None, DType::F32);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Products, SameBitsEachTime) {
  const auto [way, precision] = GetParam();
  Bench bench;
  Blas blas;
  Case t =
      make_case({64, 128, 784}, precision, false, false, Epilogue::BiasActivate, Activation::Relu, type_of(precision));
  compute(way, bench, blas, t.p);
  const auto first = t.c.download();
  for (int i = 0; i < 3; ++i) {
    compute(way, bench, blas, t.p);
    EXPECT_EQ(first, t.c.download());
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Way, Precision>>& info) {
  constexpr const char* ways[] = {"Naive", "Tiled", "Small", "Warpgroups", "Library"};
  return ways[static_cast<size_t>(std::get<0>(info.param))] + std::string(to_string(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(Kinds, Products,
                         testing::Combine(testing::Values(Way::Naive, Way::Tiled, Way::Small, Way::Library),
                                          testing::Values(Precision::Fp32, Precision::Tf32, Precision::Bf16,
                                                          Precision::Fp16)),
                         name_of);

// Shapes for each of the tiles, with ends that fill none.
TEST(WarpgroupProducts, MatchPlainLoops) {
  NEED_GPU();
  if (!runs_warpgroups()) GTEST_SKIP() << "needs compute capability 9.0";
  Bench bench;
  Blas blas;
  for (const Precision precision : {Precision::Bf16, Precision::Fp16})
    for (const Shape& s : {Shape{2048, 64, 64}, Shape{2100, 96, 40}, Shape{6200, 72, 136}, Shape{12300, 128, 200}, Shape{70, 8, 520}})
      for (const bool tb : {false, true}) {
        const DType type = type_of(precision);
        const auto run = [&](Epilogue e, Activation act, DType out) {
          Case t = make_case(s, precision, false, tb, e, act, out);
          check(Way::Warpgroups, bench, blas, t, 2 * tolerance_of(precision, out) + 1e-3,
                std::to_string(s.m) + " rows, " + "epilogue " + std::to_string(static_cast<int>(e)) + " " + std::string(to_string(act)));
        };
        for (const DType out : {type, DType::F32})
          run(Epilogue::None, Activation::None, out), run(Epilogue::Bias, Activation::None, out);
        run(Epilogue::BiasActivate, Activation::Gelu, type), run(Epilogue::ActivateGrad, Activation::Relu, type);
        if (HasFatalFailure()) return;
      }
}

TEST(ProductViews, ReadTheStepsRows) {
  NEED_GPU();
  Bench bench;
  Blas blas;
  Case t = make_case({7, 20, 12}, Precision::Fp32, false, false, Epilogue::None, Activation::None, DType::F32);
  Matrix rows = random_matrix(40, 12, DType::F32, 9);
  for (int64_t r = 0; r < 7; ++r)
    for (int64_t c = 0; c < 12; ++c) rows.at(5 + 14 + r, c) = t.a.at(r, c);
  rows.upload();
  set_clock(bench.queue, bench.clock.data(), {0, 5});
  t.p.a.data = rows.t.data;
  t.p.a.clock = bench.clock.data();
  t.p.a.view_offset = 2;
  check(Way::Small, bench, blas, t, 2e-6, "view");
}

// A plan of another shape can be bound while steps of the one before are still running.
TEST(LibraryProducts, ATrialLeavesAloneWhatStillRuns) {
  NEED_GPU();
  constexpr int kLaunches = 300, kApart = 64;
  constexpr int64_t kLong = int64_t{1} << 23;  // a sum of which several blocks each make a part
  const auto sum = [](int64_t k) {
    return make_case({1, 1, k}, Precision::Fp32, true, false, Epilogue::None, Activation::None, DType::F32);
  };
  Blas blas;
  Bench bench;
  const Stream stream = make_stream();
  bench.queue.stream = stream.get();
  Case running = sum(kLong), tried = sum(kLong - 1024);
  compute(Way::Library, bench, blas, running.p);
  CUDA_CHECK(cudaDeviceSynchronize());
  const float alone = running.c.download()[0];
  Matrix results(kLaunches, kApart);
  std::atomic<bool> go = false;
  const auto wait_for_it = [](void* gate) {
    while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::yield();
  };
  CUDA_CHECK(cudaLaunchHostFunc(stream, wait_for_it, &go));
  for (int i = 0; i < kLaunches; ++i) {
    running.p.c.data = static_cast<float*>(results.t.data) + i * kApart;
    compute(Way::Library, bench, blas, running.p);
  }
  go = true;
  blas_prepare(blas, tried.p);
  CUDA_CHECK(cudaDeviceSynchronize());
  const std::vector<float> made = results.download();
  for (int i = 0; i < kLaunches; ++i) EXPECT_EQ(made[static_cast<size_t>(i * kApart)], alone) << "launch " << i;
}

TEST(HalfSums, AreCoarserThanFullOnes) {
  NEED_GPU();
  Bench bench;
  Case t = make_case({32, 32, 784}, Precision::Fp16, false, false, Epilogue::None, Activation::None, DType::F16);
  t.p.accumulate = Accumulate::Fp16;
  small_gemm(bench.queue, t.p);
  expect_near(t.c.download(), t.want_c, 2e-2, "fp16 sums");
}

// A sum in fp16 rounds after every addition, and the library may split it: a part of a thousandth for each of the
// roundings that a sum of `k` sees, which add up like a walk in random directions.
double half_tolerance(int64_t k) { return 0.5 * std::sqrt(static_cast<double>(k)) * 9.8e-4; }

TEST(HalfSums, ThroughTheLibraryMatchPlainLoops) {
  NEED_GPU();
  Bench bench;
  Blas blas;
  for (const Shape& s : {Shape{64, 64, 64}, Shape{256, 512, 128}, Shape{512, 256, 1024}, Shape{130, 72, 40}})
    for (int layout = 0; layout < 3; ++layout) {
      const std::string what = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                               " layout " + std::to_string(layout);
      Case t = make_case(s, Precision::Fp16, layout == 1, layout == 2, Epilogue::None, Activation::None, DType::F16);
      t.p.accumulate = Accumulate::Fp16;
      check(Way::Library, bench, blas, t, half_tolerance(s.k), what);
      if (HasFatalFailure()) return;
    }
}

TEST(HalfSums, ThroughTheLibraryTakeTheirEpiloguesAlong) {
  NEED_GPU();
  Bench bench;
  Blas blas;
  for (const Activation act : {Activation::Relu, Activation::Gelu}) {
    Case t = make_case({256, 128, 256}, Precision::Fp16, false, false, Epilogue::BiasActivate, act, DType::F16);
    t.p.accumulate = Accumulate::Fp16;
    check(Way::Library, bench, blas, t, half_tolerance(256), std::string(to_string(act)));
  }
}

// Shows that the choice reaches the library: summed in fp16 a long sum is coarser than the same summed in fp32.
TEST(HalfSums, ThroughTheLibraryAreCoarserThanFullOnes) {
  NEED_GPU();
  Bench bench;
  Blas blas;
  double error[2];
  for (const Accumulate accumulate : {Accumulate::Fp32, Accumulate::Fp16}) {
    Case t = make_case({256, 256, 4096}, Precision::Fp16, false, false, Epilogue::None, Activation::None, DType::F16);
    t.p.accumulate = accumulate;
    compute(Way::Library, bench, blas, t.p);
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::vector<float> got = t.c.download();
    double apart = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      apart += (got[i] - t.want_c[i]) * (got[i] - t.want_c[i]);
      norm += t.want_c[i] * t.want_c[i];
    }
    error[accumulate == Accumulate::Fp16] = std::sqrt(apart / norm);
  }
  EXPECT_LT(error[0], 6e-4);
  EXPECT_GT(error[1], 1.3 * error[0]);
  EXPECT_LT(error[1], half_tolerance(4096));
}

}  // namespace
}  // namespace ws::cuda::test
