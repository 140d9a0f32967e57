// Convolutions, pools, batch norm and dropout against plain loops in double.
#include "engine/cuda/kernels/patches.h"
#include "profiling/base/philox.h"
#include "tests/gpu/picture_support.h"

namespace ws::cuda::test {
namespace {

constexpr Precision kPicturePrecisions[] = {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16};

// Sums in fp32 of rounded operands; tf32 also rounds the operands.
double picture_tolerance(Precision p) { return p == Precision::Tf32 ? 1e-3 : 3e-6 + rounding(type_of(p)); }
// Results in fp32, so only tf32 rounds.
double tolerance_of_sums(Precision p) { return p == Precision::Tf32 ? 1e-3 : 1e-5; }

// First layers, odd channels, strides, windows that are not square, windows of one pixel, and wide layers.
const std::vector<Window> kWindows = {
    window(3, 28, 28, 1, 16, 3, 3, 1, 1), window(5, 14, 14, 16, 32, 3, 3, 1, 1), window(2, 9, 7, 3, 64, 3, 3, 1, 1),
    window(2, 8, 8, 64, 64, 3, 3, 1, 1),  window(3, 8, 8, 64, 128, 3, 3, 1, 1),  window(2, 12, 12, 128, 192, 3, 3, 1, 1),
    window(3, 11, 9, 8, 24, 5, 5, 2, 2),  window(2, 10, 10, 20, 12, 3, 3, 2, 0), window(2, 7, 7, 32, 48, 1, 1, 1, 0),
    window(2, 9, 9, 16, 32, 1, 1, 2, 0),  window(5, 6, 6, 5, 7, 2, 2, 1, 0),     window(2, 9, 8, 16, 16, 3, 5, 1, 2),
    window(1, 1, 1, 8, 8, 1, 1, 1, 0),    window(2, 9, 9, 64, 64, 3, 3, 2, 1),   window(1, 5, 5, 256, 256, 3, 3, 1, 1)};

std::string window_name(const Window& v, Precision p) {
  return std::to_string(v.n) + "·" + std::to_string(v.h) + "·" + std::to_string(v.w) + "·" + std::to_string(v.c) + " → " +
         std::to_string(v.k) + ", " + std::to_string(v.kh) + "×" + std::to_string(v.kw) + "/" + std::to_string(v.stride) +
         " in " + std::string(to_string(p));
}

void add_bias(std::vector<double>& z, const Matrix& bias) {
  for (size_t i = 0; i < z.size(); ++i) z[i] += bias.v[i % bias.v.size()];
}

TEST(Patches, DividesEveryNumberOfAPicture) {
  for (int64_t by : {1, 2, 3, 5, 7, 9, 10, 14, 28, 64, 100, 196, 784, 1000, 65535, 1 << 20, 2147483647})
    for (int64_t n : {int64_t{0}, int64_t{1}, by - 1, by, by + 1, 7 * by + 3, int64_t{123456789}, int64_t{2147483647}})
      if (n <= 2147483647) {
        EXPECT_EQ(Divisor(by).divide(static_cast<int>(n)), n / by) << n << " / " << by;
      }
}

// What a weight gradient's threads keep of a pixel moves as the pixel's own row says.
TEST(Patches, StepsFollowThePixels) {
  for (const Window& v : {window(3, 28, 28, 1, 16, 3, 3, 1, 1), window(40, 4, 4, 8, 8, 3, 3, 1, 1),
                          window(5, 9, 7, 8, 8, 3, 3, 2, 1), window(30, 2, 3, 8, 8, 2, 2, 1, 0)}) {
    Patches p;
    p.pixels = static_cast<int>(v.oh * v.ow), p.result_width = static_cast<int>(v.ow);
    p.height = static_cast<int>(v.h), p.width = static_cast<int>(v.w), p.channels = static_cast<int>(v.c);
    p.scale = static_cast<int>(v.stride), p.shift = -static_cast<int>(v.pad);
    p.by_result = Divisor(p.pixels), p.by_result_width = Divisor(p.result_width);
    const auto element = [&](const PatchRow& r) { return ((r.picture * p.height + r.y) * p.width + r.x) * p.channels; };
    for (int by : {1, 5, 16, 64, 128}) {
      const PixelSteps steps(p, by);
      PatchRow at = p.row(3);
      int y = at.y, x = at.x, here = element(at);
      for (int pixel = 3 + by; pixel < v.n * p.pixels; pixel += by) {
        here += steps.move(y, x, steps.rows + p.shift, steps.columns + p.shift);
        at = p.row(pixel);
        ASSERT_EQ(here, element(at)) << "pixel " << pixel << " by " << by;
        ASSERT_EQ(y, at.y);
        ASSERT_EQ(x, at.x);
      }
    }
  }
}

TEST_F(Kernels, ConvolutionsWithTheirEpilogues) {
  Bench bench;
  for (const Window& v : kWindows)
    for (Precision p : kPicturePrecisions) {
      SCOPED_TRACE(window_name(v, p));
      Picture at(v, p);
      const std::vector<double> plain = convolved(v, at.x, at.w);
      convolve(bench.queue, at.workspace(), at.forward());
      expect_near(at.z.download(), plain, picture_tolerance(p), "z");
      std::vector<double> with_bias = plain;
      add_bias(with_bias, at.bias);
      convolve(bench.queue, at.workspace(), at.forward(Epilogue::Bias));
      expect_near(at.z.download(), with_bias, picture_tolerance(p), "z + bias");
      for (Activation act : {Activation::Relu, Activation::Gelu}) {
        Matrix saved(v.n * v.oh * v.ow, v.k, type_of(p));
        Convolution c = at.forward(Epilogue::BiasActivate);
        c.activation = act;
        if (needs_preactivation(act)) c.saved = saved.t;
        convolve(bench.queue, at.workspace(), c);
        std::vector<double> h = with_bias;
        for (double& value : h) value = bent(act, value);
        expect_near(at.z.download(), h, 2 * picture_tolerance(p), "h");
        if (c.saved) expect_near(saved.download(), with_bias, picture_tolerance(p), "pre-activation");
      }
    }
}

TEST_F(Kernels, ConvolutionDataGradients) {
  Bench bench;
  for (const Window& v : kWindows)
    for (Precision p : kPicturePrecisions) {
      SCOPED_TRACE(window_name(v, p));
      Picture at(v, p);
      std::vector<double> want = data_gradient(v, at.dz, at.w);
      convolve(bench.queue, at.workspace(), at.data_grad());
      expect_near(at.dx.download(), want, picture_tolerance(p), "dx");
      Convolution c = at.data_grad();
      c.epilogue = Epilogue::ActivateGrad, c.activation = Activation::Relu, c.saved = at.x.t;
      convolve(bench.queue, at.workspace(), c);
      for (size_t i = 0; i < want.size(); ++i) want[i] *= at.x.v[i] > 0 ? 1 : 0;
      expect_near(at.dx.download(), want, picture_tolerance(p), "dx · slope");
    }
}

TEST_F(Kernels, ConvolutionWeightGradients) {
  Bench bench;
  for (const Window& v : kWindows)
    for (Precision p : kPicturePrecisions) {
      SCOPED_TRACE(window_name(v, p));
      Picture at(v, p);
      convolve(bench.queue, at.workspace(), at.weight_grad());
      const std::vector<float> first = at.dw.download();
      expect_near(first, weight_gradient(v, at.x, at.dz), tolerance_of_sums(p), "dw");
      expect_near(at.db.download(), column_sums(at.dz), 1e-5, "db");
      for (int i = 0; i < 3; ++i) {
        convolve(bench.queue, at.workspace(), at.weight_grad());
        EXPECT_EQ(at.dw.download(), first) << "the same bits again";
      }
      at.dw = Matrix(at.dw.t.rows, at.dw.t.cols);
      Convolution without = at.weight_grad();
      without.epilogue = Epilogue::None, without.bias_grad = {};
      convolve(bench.queue, at.workspace(), without);
      EXPECT_EQ(at.dw.download(), first) << "without a bias gradient";
    }
}

// A batch of many pictures: sums of many splits, more tiles than multiprocessors, and on Hopper the kernels of warpgroups
// in turn with the kernels of warps.
TEST_F(Kernels, ConvolutionsOfManyPictures) {
  Bench bench;
  for (const Window& v : {window(64, 28, 28, 1, 16, 3, 3, 1, 1), window(64, 14, 14, 16, 32, 3, 3, 1, 1),
                          window(30, 16, 16, 64, 128, 3, 3, 1, 1), window(60, 9, 9, 128, 64, 3, 3, 1, 1),
                          window(25, 15, 13, 72, 136, 3, 3, 1, 1), window(40, 21, 21, 64, 96, 3, 3, 2, 1)})
    for (Precision p : {Precision::Fp32, Precision::Bf16, Precision::Fp16}) {
      Picture at(v, p);
      const std::vector<double> z = convolved(v, at.x, at.w), dx = data_gradient(v, at.dz, at.w);
      const std::vector<double> dw = weight_gradient(v, at.x, at.dz), db = column_sums(at.dz);
      for (bool by_warps : {false, true}) {
        SCOPED_TRACE(window_name(v, p) + (by_warps ? " by warps" : ""));
        const auto run = [&](Convolution c) { c.by_warps = by_warps; convolve(bench.queue, at.workspace(), c); };
        at.forget_results();
        run(at.forward()), run(at.data_grad()), run(at.weight_grad());
        expect_near(at.z.download(), z, picture_tolerance(p), "z");
        expect_near(at.dx.download(), dx, picture_tolerance(p), "dx");
        const std::vector<float> first = at.dw.download();
        expect_near(first, dw, tolerance_of_sums(p), "dw");
        expect_near(at.db.download(), db, 1e-5, "db");
        run(at.weight_grad());
        EXPECT_EQ(at.dw.download(), first) << "the same bits again";
      }
    }
}

// Pictures of whole tiles of 8 × 8, which Hopper has kernels for: few and many channels, an odd number of tiles, pictures
// that are not square.
TEST_F(Kernels, ConvolutionsOfPictureTiles) {
  Bench bench;
  const Window few = window(17, 16, 16, 64, 128, 3, 3, 1, 1), odd = window(65, 8, 8, 128, 64, 3, 3, 1, 1),
               wide = window(11, 24, 16, 128, 128, 3, 3, 1, 1), many = window(64, 8, 8, 256, 256, 3, 3, 1, 1);
  for (const auto& [v, p] : {std::pair{few, Precision::Bf16}, {few, Precision::Fp16}, {odd, Precision::Bf16},
                             {wide, Precision::Bf16}, {many, Precision::Bf16}}) {
    SCOPED_TRACE(window_name(v, p));
    Picture at(v, p);
    std::vector<double> z = convolved(v, at.x, at.w);
    convolve(bench.queue, at.workspace(), at.forward());
    expect_near(at.z.download(), z, picture_tolerance(p), "z");
    Convolution forward = at.forward(Epilogue::BiasActivate);
    forward.activation = Activation::Relu;
    convolve(bench.queue, at.workspace(), forward);
    add_bias(z, at.bias);
    for (double& value : z) value = std::max(value, 0.);
    expect_near(at.z.download(), z, 2 * picture_tolerance(p), "h");
    convolve(bench.queue, at.workspace(), at.data_grad());
    expect_near(at.dx.download(), data_gradient(v, at.dz, at.w), picture_tolerance(p), "dx");
    Convolution weights = at.weight_grad();
    weights.epilogue = Epilogue::None, weights.bias_grad = {};
    convolve(bench.queue, at.workspace(), weights);
    const std::vector<float> first = at.dw.download();
    expect_near(first, weight_gradient(v, at.x, at.dz), tolerance_of_sums(p), "dw");
    convolve(bench.queue, at.workspace(), weights);
    EXPECT_EQ(at.dw.download(), first) << "the same bits again";
  }
}

TEST_F(Kernels, PicturesOfAnEpoch) {
  Bench bench;
  const Window v = window(4, 6, 6, 1, 8, 3, 3, 1, 1);
  Picture all(window(20, 6, 6, 1, 8, 3, 3, 1, 1), Precision::Bf16), some(v, Precision::Bf16);
  set_clock(bench.queue, bench.clock.data(), {0, 8});
  Convolution c = some.forward();
  c.x = Tensor{all.x.t.data, DType::Bf16, 4, 36, bench.clock.data(), 1};  // pictures 12 to 15
  c.w = all.w.t;
  convolve(bench.queue, some.workspace(), c);
  const std::vector<double> everything = convolved(all.v, all.x, all.w);
  const auto from = everything.begin() + 12 * 36 * 8;
  expect_near(some.z.download(), {from, from + 4 * 36 * 8}, picture_tolerance(Precision::Bf16), "pictures 12 to 15");
}

const std::vector<Window> kPools = {
    window(3, 28, 28, 16, 16, 2, 2, 2, 0), window(2, 7, 9, 32, 32, 2, 2, 2, 0), window(2, 8, 8, 5, 5, 3, 3, 2, 1),
    window(2, 6, 6, 64, 64, 3, 3, 1, 1),   window(3, 4, 4, 24, 24, 4, 4, 4, 0), window(1, 5, 3, 8, 8, 2, 2, 1, 0),
    window(2, 9, 9, 16, 16, 3, 3, 3, 0),   window(6, 8, 8, 1, 1, 2, 2, 2, 0),   window(2, 9, 9, 16, 16, 2, 2, 3, 0)};

TEST_F(Kernels, MaxPoolsAndTheirGradients) {
  Bench bench;
  for (const Window& v : kPools)
    for (DType type : kTypes) {
      SCOPED_TRACE(window_name(v, Precision::Fp32));
      Matrix x = coarse_matrix(v.n * v.h * v.w, v.c, type, 1);  // has many equal elements
      const Matrix dy = random_matrix(v.n * v.oh * v.ow, v.c, type, 2);
      Matrix y(dy.t.rows, v.c, type), dx(x.t.rows, v.c, type);
      max_pool(bench.queue, v, x.t, y.t);
      const Pooled want = max_pooled(v, x, dy);
      expect_near(y.download(), want.y, 0, "y");
      max_pool_grad(bench.queue, v, Activation::None, dy.t, x.t, dx.t);
      expect_near(dx.download(), want.dx, rounding(type), "dx");
      max_pool_grad(bench.queue, v, Activation::Relu, dy.t, x.t, dx.t);
      std::vector<double> through = want.dx;
      for (size_t i = 0; i < through.size(); ++i) through[i] *= x.v[i] > 0 ? 1 : 0;
      expect_near(dx.download(), through, rounding(type), "dx through relu");
    }
}

TEST_F(Kernels, MatricesAreTurned) {
  Bench bench;
  for (const Window& w : {Window{3, 784, 16}, Window{2, 16, 784}, Window{5, 33, 31}, Window{1, 1, 70}, Window{4, 64, 3}})
    for (const DType type : kTypes) {
      const Matrix x = random_matrix(w.n * w.h, w.w, type, 1);
      Matrix y(w.n * w.w, w.h, type);
      turn(bench.queue, w, x.t, y.t);
      std::vector<double> want(x.v.size());
      for (int64_t n = 0; n < w.n; ++n)
        for (int64_t i = 0; i < w.h; ++i)
          for (int64_t j = 0; j < w.w; ++j)
            want[static_cast<size_t>((n * w.w + j) * w.h + i)] = x.v[static_cast<size_t>((n * w.h + i) * w.w + j)];
      expect_near(y.download(), want, 0, std::to_string(w.h) + " × " + std::to_string(w.w));
    }
}

TEST_F(Kernels, AveragePoolsAndTheirGradients) {
  Bench bench;
  for (const Window& v : kPools)
    for (DType type : kTypes) {
      SCOPED_TRACE(window_name(v, Precision::Fp32));
      const Matrix x = random_matrix(v.n * v.h * v.w, v.c, type, 1);
      const Matrix dy = random_matrix(v.n * v.oh * v.ow, v.c, type, 2);
      Matrix y(dy.t.rows, v.c, type), dx(x.t.rows, v.c, type);
      avg_pool(bench.queue, v, x.t, y.t);
      avg_pool_grad(bench.queue, v, dy.t, dx.t);
      const Pooled want = avg_pooled(v, x, dy);
      expect_near(y.download(), want.y, rounding(type), "y");
      expect_near(dx.download(), want.dx, rounding(type), "dx");
    }
}

TEST_F(Kernels, BatchNormsAndTheirGradients) {
  Bench bench;
  for (DType type : kTypes)
    for (int64_t rows : {2, 7, 300, 20000})
      for (int64_t c : {1, 5, 8, 16, 24, 64, 200})
        for (Activation act : {Activation::None, Activation::Relu}) {
          SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(c));
          NormOperands at(rows, c, type, act);
          batch_norm(bench.queue, bench.scratch(), at.forward());
          const Normed want = normed(at, act);
          expect_near(at.y.download(), want.y, rounding(type) + 1e-5, "y");
          expect_near(at.mean.download(), want.mean, 1e-5, "mean");
          expect_near(at.inverse.download(), want.inverse, 1e-5, "inverse deviation");
          expect_near(at.running_mean.download(), want.running_mean, 1e-5, "running mean");
          expect_near(at.running_var.download(), want.running_var, 1e-5, "running variance");
          batch_norm_grad(bench.queue, bench.scratch(), at.backward());
          expect_near(at.dshift.download(), want.dshift, 2e-5, "dshift");
          expect_near(at.dgain.download(), want.dgain, 2e-5, "dgain");
          // With two rows the gradient is a small difference of large numbers.
          if (rows > 2) expect_near(at.dx.download(), want.dx, rounding(type) + 2e-5, "dx");
          const std::vector<float> before = at.running_mean.download();
          batch_norm_apply(bench.queue, at.forward());
          expect_near(at.y.download(), applied(at, act), rounding(type) + 1e-5, "y with running statistics");
          EXPECT_EQ(at.running_mean.download(), before);
        }
}

// Tiles of the kernels that leave moments, with fewer columns and rows than a tile, and half a block of pictures' tiles.
TEST_F(Kernels, BatchNormsTakeTheMomentsThatAConvolutionLeaves) {
  Bench bench;
  const Window windows[] = {window(9, 12, 12, 3, 64, 3, 3, 1, 1),    window(3, 28, 28, 1, 16, 3, 3, 1, 1),
                            window(5, 14, 14, 1, 72, 5, 5, 1, 2),    window(1, 5, 5, 1, 8, 3, 3, 1, 1),
                            window(10, 24, 24, 64, 128, 3, 3, 1, 1), window(41, 10, 10, 128, 72, 1, 1, 1, 0),
                            window(65, 8, 8, 128, 192, 3, 3, 1, 1),  window(17, 16, 16, 128, 128, 3, 3, 1, 1),
                            window(65, 8, 8, 256, 256, 3, 3, 1, 1)};
  for (const Window& v : windows)
    for (Precision p : {Precision::Bf16, Precision::Fp16}) {
      SCOPED_TRACE(window_name(v, p));
      Picture at(v, p);
      for (float& x : at.x.v) x += 3;
      at.x.upload();
      Convolution c = at.forward();
      const Moments moments = moments_of(c, at.workspace());
      ASSERT_EQ(static_cast<bool>(moments), v.c <= 3 || runs_warpgroups());
      if (!moments) continue;
      convolve(bench.queue, at.workspace(), c);
      const std::vector<float> z = at.z.download();
      c.moments = moments;
      convolve(bench.queue, at.workspace(), c);
      EXPECT_EQ(at.z.download(), z);
      NormOperands norm(at.z.t.rows, v.k, at.z.t.type, Activation::Relu);
      norm.x.v = z;
      norm.x.upload();
      BatchNormalization n = norm.forward();
      n.moments = moments;
      batch_norm(bench.queue, bench.scratch(), n);
      const Normed want = normed(norm, Activation::Relu);
      expect_near(norm.y.download(), want.y, rounding(at.z.t.type) + 1e-5, "y");
      expect_near(norm.mean.download(), want.mean, 1e-5, "mean");
      expect_near(norm.inverse.download(), want.inverse, 1e-5, "inverse deviation");
      expect_near(norm.running_mean.download(), want.running_mean, 1e-5, "running mean");
      expect_near(norm.running_var.download(), want.running_var, 1e-5, "running variance");
    }
}

// What the separate kernels of norm and pool make.
TEST_F(Kernels, BatchNormsWithAPoolEqualTwoKernels) {
  Bench bench;
  for (DType type : kTypes)
    for (const auto& [n, side] : {std::pair{1, 1}, {3, 7}, {40, 8}})
      for (int64_t c : {5, 8, 24, 200})
        for (Activation act : {Activation::None, Activation::Relu, Activation::Tanh}) {
          SCOPED_TRACE(std::to_string(n) + " pictures of " + std::to_string(side) + " x " + std::to_string(c));
          const Window pool = window(n, 2 * side, 2 * side, c, c, 2, 2, 2, 0);
          NormOperands at(4 * n * side * side, c, type, act);
          BatchNormalization forward = at.forward();
          batch_norm(bench.queue, bench.scratch(), forward);
          const Matrix dy = random_matrix(n * side * side, c, type, 9);
          Matrix y(n * side * side, c, type), pooled(n * side * side, c, type);
          max_pool(bench.queue, pool, at.y.t, y.t);
          forward.y = pooled.t, forward.pool = pool;
          batch_norm(bench.queue, bench.scratch(), forward);
          EXPECT_EQ(pooled.download(), y.download());
          max_pool_grad(bench.queue, pool, act, dy.t, at.y.t, at.dy.t);
          BatchNormGradient backward = at.backward();
          backward.activation = Activation::None;
          batch_norm_grad(bench.queue, bench.scratch(), backward);
          const std::vector<float> dx = at.dx.download(), dgain = at.dgain.download(), dshift = at.dshift.download();
          const auto doubles = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
          backward.dy = dy.t, backward.pool = pool, backward.activation = act;
          batch_norm_grad(bench.queue, bench.scratch(), backward);
          // Between two kernels the gradient of a bent activation is rounded.
          const double loose = (act == Activation::Tanh ? 4 : 1) * rounding(type) + 2e-5;
          expect_near(at.dgain.download(), doubles(dgain), act == Activation::Tanh ? loose : 2e-5, "dgain");
          expect_near(at.dshift.download(), doubles(dshift), act == Activation::Tanh ? loose : 2e-5, "dshift");
          expect_near(at.dx.download(), doubles(dx), loose, "dx");
        }
}

TEST_F(Kernels, DropoutHasTheMaskOfTheGenerator) {
  Bench bench;
  set_clock(bench.queue, bench.clock.data(), {40, 0});
  const DropoutMask mask{0.3f, 7};
  for (DType type : kTypes)
    for (int64_t rows : {1, 3, 127}) {
      const Matrix x = random_matrix(rows, 33, type, 1);
      Matrix y(rows, 33, type);
      dropout(bench.queue, mask, 5, bench.at(2), x.t, y.t);
      std::vector<double> want = wide(x.v);
      for (size_t i = 0; i < want.size(); ++i)
        want[i] = data::uniform_at(5, dropout_stream(mask, 42), i) >= mask.rate ? want[i] / (1 - 0.3) : 0;
      expect_near(y.download(), want, rounding(type), "dropout");
    }
}

TEST_F(Kernels, PicturesArePreparedAsByTheHeader) {
  Bench bench;
  set_clock(bench.queue, bench.clock.data(), {40, 0});
  Preparation how;
  how.crop = 3, how.flip = how.normalise = true;
  how.scale = {{0.5f, 0.25f, 0.75f}, {2, 3, 0.5f}};
  how.first_row = 11;
  for (DType type : kTypes)
    for (const Window& pictures : {Window{5, 8, 8, 3}, Window{3, 7, 5, 1}, Window{33, 5, 9, 2}}) {
      const int64_t size = pictures.h * pictures.w * pictures.c;
      const Matrix x = random_matrix(pictures.n, size, type, 1);
      Matrix y(pictures.n, size, type);
      prepare_pictures(bench.queue, how, pictures, 5, bench.at(2), x.t, y.t);
      const std::vector<double> from = wide(x.v);
      std::vector<double> want;
      for (int64_t row = 0; row < pictures.n; ++row) {
        const PicturePlace place = place_of(how, 5, 42, row);
        const auto picture = [&](int64_t i) { return from[static_cast<size_t>(row * size + i)]; };
        for (int64_t i = 0; i < size; ++i)
          want.push_back(prepared_value<double>(how, place, pictures.h, pictures.w, pictures.c, i / pictures.c / pictures.w,
                                                i / pictures.c % pictures.w, i % pictures.c, picture));
      }
      expect_near(y.download(), want, rounding(type), "prepared pictures");
    }
}

}  // namespace
}  // namespace ws::cuda::test
