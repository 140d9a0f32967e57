// The CPU's ops on pictures, norms, attention and embeddings, each against finite differences in double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engine/cpu/attention.h"
#include "engine/cpu/convolution.h"
#include "engine/cpu/cpu_ops.h"
#include "engine/cpu/norm.h"

namespace ws::cpu {
namespace {

// A matrix with its own values.
struct Values {
  std::vector<double> data;
  int64_t rows, cols;
  Values(int64_t r, int64_t c, unsigned seed = 0) : data(static_cast<size_t>(r * c)), rows(r), cols(c) {
    std::mt19937 rng(seed);
    std::normal_distribution<double> normal;
    for (double& v : data) v = seed ? normal(rng) : 0;
  }
  Matrix<double> m() { return {data.data(), rows, cols}; }
};

// Compares `grad` with differences of Σ weight · result() for small moves of `of`.
void expect_gradient(Values& of, const Values& grad, const Values& weight, Values& result, const std::function<void()>& forward) {
  const auto value = [&] {
    forward();
    double sum = 0;
    for (size_t i = 0; i < result.data.size(); ++i) sum += weight.data[i] * result.data[i];
    return sum;
  };
  for (size_t i = 0; i < of.data.size(); ++i) {
    const double at = of.data[i], h = 1e-6;
    of.data[i] = at + h;
    const double up = value();
    of.data[i] = at - h;
    const double down = value();
    of.data[i] = at;
    EXPECT_NEAR(grad.data[i], (up - down) / (2 * h), 1e-6) << "element " << i;
  }
  forward();
}

Window made(int64_t size, int64_t channels, int64_t kernel, int64_t stride, int64_t pad, int64_t outputs) {
  Window w{2, size, size + 1, channels, kernel, kernel, stride, pad};
  w.oh = (w.h + 2 * pad - kernel) / stride + 1;
  w.ow = (w.w + 2 * pad - kernel) / stride + 1;
  w.k = outputs;
  return w;
}
Values input(const Window& w, unsigned seed = 0) { return {w.n * w.h * w.w, w.c, seed}; }
Values output(const Window& w, unsigned seed = 0) { return {w.n * w.oh * w.ow, w.k, seed}; }

TEST(LayerOps, ConvolutionHasItsThreeProducts) {
  for (const Window& w : {made(5, 3, 3, 1, 1, 4), made(6, 2, 3, 2, 1, 3), made(4, 5, 1, 1, 0, 2), made(7, 1, 4, 3, 2, 2),
                          made(5, 2, 1, 2, 0, 3)}) {
    Values x = input(w, 1), weights(w.k, w.kh * w.kw * w.c, 2), z = output(w), dz = output(w, 3);
    Values dx = input(w), dw(w.k, w.kh * w.kw * w.c);
    const auto forward = [&] { convolve(w, x.m(), weights.m(), z.m()); };
    convolve_data_grad(w, dz.m(), weights.m(), dx.m());
    convolve_weight_grad(w, x.m(), dz.m(), dw.m());
    expect_gradient(x, dx, dz, z, forward);
    expect_gradient(weights, dw, dz, z, forward);
  }
}

TEST(LayerOps, ConvolutionSumsItsWindow) {
  const Window w = made(2, 1, 3, 1, 1, 1);  // 2 rows, 3 columns
  Values x(6, 1), weights(1, 9), z = output(w);
  x.data = {1, 2, 3, 4, 5, 6};
  weights.data = {1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};
  Window one = w;
  one.n = 1;
  convolve(one, x.m(), weights.m(), z.m());
  EXPECT_EQ(z.data[0], 1e4 * 1 + 1e5 * 2 + 1e7 * 4 + 1e8 * 5);
  EXPECT_EQ(z.data[4], 1 * 1 + 10 * 2 + 100 * 3 + 1e3 * 4 + 1e4 * 5 + 1e5 * 6);
}

TEST(LayerOps, PoolsHaveTheirGradients) {
  for (const Window& w : {made(4, 3, 2, 2, 0, 3), made(5, 2, 3, 2, 1, 2), made(5, 2, 3, 1, 0, 2)}) {
    Values x = input(w, 4), y = output(w), dy = output(w, 5), dx = input(w);
    max_pool(w, x.m(), y.m());
    max_pool_grad(w, dy.m(), x.m(), y.m(), dx.m());
    expect_gradient(x, dx, dy, y, [&] { max_pool(w, x.m(), y.m()); });
    average_pool_grad(w, dy.m(), dx.m());
    expect_gradient(x, dx, dy, y, [&] { average_pool(w, x.m(), y.m()); });
  }
}

TEST(LayerOps, TheFirstMaximumTakesTheGradientAndPaddingIsNotCounted) {
  Window w{1, 2, 2, 1, 2, 2, 2, 0, 1, 1, 1};
  Values x(4, 1), y(1, 1), dy(1, 1), dx(4, 1);
  x.data = {-3, 7, 7, 7}, dy.data = {5};
  max_pool(w, x.m(), y.m());
  max_pool_grad(w, dy.m(), x.m(), y.m(), dx.m());
  EXPECT_EQ(dx.data, (std::vector<double>{0, 5, 0, 0}));
  w = {1, 2, 2, 1, 3, 3, 1, 1, 2, 2, 1};
  Values all(4, 1);
  x.data = {-1, -2, -3, -4};
  max_pool(w, x.m(), all.m());
  EXPECT_EQ(all.data, (std::vector<double>{-1, -1, -1, -1})) << "padding is never the maximum";
  average_pool(w, x.m(), all.m());
  EXPECT_EQ(all.data, (std::vector<double>{-2.5, -2.5, -2.5, -2.5}));
}

TEST(LayerOps, BatchNormHasItsGradients) {
  for (const Activation after : {Activation::None, Activation::Tanh}) {
    Values x(9, 4, 6), gain(1, 4, 7), shift(1, 4, 8), y(9, 4), dy(9, 4, 9), mean(1, 4), inverse(1, 4), m(1, 4), v(1, 4);
    const NormValues<double> norm{gain.data.data(), shift.data.data(), mean.data.data(), inverse.data.data()};
    const auto forward = [&] { batch_norm({after}, x.m(), norm, m.m(), v.m(), y.m()); };
    Values dx(9, 4), dgain(1, 4), dshift(1, 4);
    forward();
    batch_norm_grad({after}, dy.m(), x.m(), norm, dx.m(), dgain.m(), dshift.m());
    expect_gradient(x, dx, dy, y, forward);
    expect_gradient(gain, dgain, dy, y, forward);
    expect_gradient(shift, dshift, dy, y, forward);
  }
}

TEST(LayerOps, BatchNormWithPoolHasItsGradients) {
  const Window pool{2, 4, 2, 3, 2, 2, 2, 0, 2, 1, 3};
  for (const Activation after : {Activation::None, Activation::Tanh}) {
    Values x(16, 3, 6), gain(1, 3, 7), shift(1, 3, 8), y(4, 3), dy(4, 3, 9), mean(1, 3), inverse(1, 3), m(1, 3), v(1, 3);
    const NormValues<double> norm{gain.data.data(), shift.data.data(), mean.data.data(), inverse.data.data()};
    const auto forward = [&] { batch_norm({after, pool}, x.m(), norm, m.m(), v.m(), y.m()); };
    Values dx(16, 3), dgain(1, 3), dshift(1, 3);
    forward();
    batch_norm_grad({after, pool}, dy.m(), x.m(), norm, dx.m(), dgain.m(), dshift.m());
    expect_gradient(x, dx, dy, y, forward);
    expect_gradient(gain, dgain, dy, y, forward);
    expect_gradient(shift, dshift, dy, y, forward);
  }
}

TEST(LayerOps, LayerNormHasItsGradients) {
  Values x(3, 5, 10), gain(1, 5, 11), shift(1, 5, 12), y(3, 5), dy(3, 5, 13), mean(3, 1), inverse(3, 1);
  const NormValues<double> norm{gain.data.data(), shift.data.data(), mean.data.data(), inverse.data.data()};
  const auto forward = [&] { layer_norm(x.m(), norm, y.m()); };
  Values dx(3, 5), dgain(1, 5), dshift(1, 5);
  forward();
  layer_norm_grad(dy.m(), x.m(), norm, dx.m(), dgain.m(), dshift.m());
  expect_gradient(x, dx, dy, y, forward);
  expect_gradient(gain, dgain, dy, y, forward);
  expect_gradient(shift, dshift, dy, y, forward);
}

TEST(LayerOps, AttentionHasItsGradientAndHidesTheFuture) {
  const Heads heads{4, 2, 3};
  Values qkv(8, 18, 14), out(8, 6), lse(4, 4), dout(8, 6, 15), dqkv(8, 18);
  const auto forward = [&] { attend(heads, qkv.m(), out.m(), lse.m()); };
  forward();
  attend_grad(heads, dout.m(), out.m(), qkv.m(), lse.m(), dqkv.m());
  expect_gradient(qkv, dqkv, dout, out, forward);
  for (int64_t j = 0; j < 6; ++j)
    EXPECT_DOUBLE_EQ(out.data[static_cast<size_t>(j)], qkv.data[static_cast<size_t>(12 + j)]) << "the first symbol sees itself only";
}

TEST(LayerOps, EmbeddingAddsUpTheGradientOfASymbol) {
  Values symbols(2, 3), table(4, 5, 16), positions(3, 5, 17), h(6, 5), dh(6, 5, 18), dtable(4, 5), dpositions(3, 5);
  symbols.data = {1, 3, 1, 0, 1, 3};
  const auto forward = [&] { embed(symbols.m(), table.m(), positions.m(), h.m()); };
  embed_grad(symbols.m(), dh.m(), dtable.m(), dpositions.m());
  expect_gradient(table, dtable, dh, h, forward);
  expect_gradient(positions, dpositions, dh, h, forward);
}

TEST(LayerOps, SmoothedTargetsHaveTheirGradient) {
  const std::vector<int32_t> classes{2, 0, 1};
  const Labels labels{classes.data(), 0.2};
  Values z(3, 4, 19), dz(3, 4);
  const double loss = softmax_cross_entropy(z.m(), labels, 1.0, dz.m()).loss;
  EXPECT_NEAR(cross_entropy(z.m(), labels).loss, loss, 1e-12);
  for (size_t i = 0; i < z.data.size(); ++i) {
    Values up = z, down = z, space(3, 4);
    up.data[i] += 1e-6, down.data[i] -= 1e-6;
    const double slope = (softmax_cross_entropy(up.m(), labels, 1.0, space.m()).loss -
                          softmax_cross_entropy(down.m(), labels, 1.0, space.m()).loss) / 2e-6;
    EXPECT_NEAR(dz.data[i], slope, 1e-7);
  }
}

// A class whose share of the softmax is below the smallest float still has its loss.
template <class Real>
void expect_loss_of_far_scores(double smoothing, double want) {
  std::vector<Real> z{0, 2000, 500, 2000}, dz(4);
  const int32_t label = 2;
  const Labels labels{&label, smoothing};
  const Matrix<Real> scores{z.data(), 1, 4};
  EXPECT_NEAR(cross_entropy(scores, labels).loss, want, 1e-6);
  EXPECT_NEAR(softmax_cross_entropy(scores, labels, Real(1), Matrix<Real>{dz.data(), 1, 4}).loss, want, 1e-6);
}

TEST(LayerOps, LossHasNoLimit) {
  const double whole = 2000 + std::log(2.0);
  for (const double smoothing : {0.0, 0.2}) {
    const double want = whole - (1 - smoothing) * 500 - smoothing * (0 + 2000 + 500 + 2000) / 4;
    expect_loss_of_far_scores<float>(smoothing, want);
    expect_loss_of_far_scores<double>(smoothing, want);
  }
}

TEST(LayerOps, DropoutDropsItsShareAndScalesTheRest) {
  const DropoutMask mask{0.25F, 3};
  Values x(100, 101), y(100, 101);
  std::fill(x.data.begin(), x.data.end(), 3.0);
  drop_out(mask, 5, 11, x.m(), y.m());
  const auto kept = std::count(y.data.begin(), y.data.end(), 4.0);
  EXPECT_EQ(kept + std::count(y.data.begin(), y.data.end(), 0.0), 10100);
  EXPECT_NEAR(static_cast<double>(kept), 0.75 * 10100, 150);
  Values again(100, 101), later(100, 101);
  drop_out(mask, 5, 11, x.m(), again.m());
  drop_out(mask, 5, 12, x.m(), later.m());
  EXPECT_EQ(again.data, y.data);
  EXPECT_NE(later.data, y.data);
}

}  // namespace
}  // namespace ws::cpu
