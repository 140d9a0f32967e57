#include "engine/cpu/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/convolution.h"
#include "engine/cpu/cores.h"
#include "profiling/base/philox.h"

namespace ws::cpu {
namespace {

// x as rows with one value for each gain: its buffer may have another shape.
template <class Real>
Matrix<Real> columns(Matrix<Real> x, int64_t cols) {
  return {x.data, x.size() / cols, cols};
}

// Sums f(row, column) over the rows, in double.
template <class F>
std::vector<double> column_sums(int64_t rows, int64_t cols, const F& f) {
  std::vector<double> sums(static_cast<size_t>(cols));
  share_sums(rows, cols, sums.data(), [&](int64_t first, int64_t end, double* to) {
    for (int64_t r = first; r < end; ++r)
      for (int64_t j = 0; j < cols; ++j) to[j] += static_cast<double>(f(r, j));
  });
  return sums;
}

template <class Work>
void each_row(int64_t rows, int64_t cols, const Work& work) {
  share_range(rows, least_rows(cols), [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r) work(r);
  });
}

template <class Real>
Real inverse_of(double variance) {
  return static_cast<Real>(1 / std::sqrt(variance + kNormEpsilon));
}

template <class Real>
void normalise(Activation after, Matrix<Real> x, const Real* mean, const Real* inverse, NormValues<Real> norm,
               Matrix<Real> y) {
  each_row(x.rows, x.cols, [=](int64_t r) {
    for (int64_t j = 0; j < x.cols; ++j)
      y.data[r * x.cols + j] = (x.row(r)[j] - mean[j]) * inverse[j] * norm.gain[j] + norm.shift[j];
  });
  if (after != Activation::None) activate(after, y, y);
}

// The gradient of the norm's own result. `dy`: the gradient of what follows it.
template <class Real>
Matrix<Real> gradient_of_norm(const AfterNorm& after, Matrix<Real> dy, Matrix<Real> x, const NormValues<Real>& norm,
                              std::vector<Real>& space) {
  const bool pools = after.pool.kh > 0;
  if (!pools && after.activation == Activation::None) return columns(dy, x.cols);
  const auto size = static_cast<size_t>(x.size());
  space.resize(2 * size + static_cast<size_t>(dy.size()));
  const Matrix<Real> y{space.data(), x.rows, x.cols}, g{space.data() + size, x.rows, x.cols};
  const Matrix<Real> pooled{space.data() + 2 * size, dy.rows, dy.cols};
  normalise(after.activation, x, norm.mean, norm.inverse, norm, y);
  if (pools) max_pool(after.pool, y, pooled), max_pool_grad(after.pool, dy, y, pooled, g);
  if (after.activation == Activation::None) return g;
  activate_grad(after.activation, pools ? g : dy, y, g);
  return g;
}

}  // namespace

template <class Real>
void batch_norm(const AfterNorm& after, Matrix<Real> given, NormValues<Real> norm, Matrix<Real> running_mean,
                Matrix<Real> running_variance, Matrix<Real> y) {
  const int64_t cols = running_mean.size();
  const Matrix<Real> x = columns(given, cols);
  const auto n = static_cast<double>(x.rows);
  const auto sums = column_sums(x.rows, cols, [&](int64_t r, int64_t j) { return x.row(r)[j]; });
  for (int64_t j = 0; j < cols; ++j) norm.mean[j] = static_cast<Real>(sums[static_cast<size_t>(j)] / n);
  const auto squares = column_sums(x.rows, cols, [&](int64_t r, int64_t j) {
    const Real distance = x.row(r)[j] - norm.mean[j];
    return distance * distance;
  });
  const auto momentum = static_cast<Real>(kRunningMomentum);
  for (int64_t j = 0; j < cols; ++j) {
    const double variance = squares[static_cast<size_t>(j)] / n;
    norm.inverse[j] = inverse_of<Real>(variance);
    const auto unbiased = static_cast<Real>(variance * n / std::max(1.0, n - 1));
    running_mean.data[j] += momentum * (norm.mean[j] - running_mean.data[j]);
    running_variance.data[j] += momentum * (unbiased - running_variance.data[j]);
  }
  if (after.pool.kh == 0) return normalise(after.activation, x, norm.mean, norm.inverse, norm, y);
  std::vector<Real> space(static_cast<size_t>(x.size()));
  const Matrix<Real> whole{space.data(), x.rows, cols};
  normalise(after.activation, x, norm.mean, norm.inverse, norm, whole);
  max_pool(after.pool, whole, y);
}

template <class Real>
void batch_norm_apply(Activation after, Matrix<Real> given, NormValues<Real> norm, Matrix<Real> running_mean,
                      Matrix<Real> running_variance, Matrix<Real> y) {
  const int64_t cols = running_mean.size();
  std::vector<Real> inverse(static_cast<size_t>(cols));
  for (int64_t j = 0; j < cols; ++j)
    inverse[static_cast<size_t>(j)] = inverse_of<Real>(static_cast<double>(running_variance.data[j]));
  normalise(after, columns(given, cols), running_mean.data, inverse.data(), norm, y);
}

template <class Real>
void batch_norm_grad(const AfterNorm& after, Matrix<Real> dy, Matrix<Real> given, NormValues<Real> norm, Matrix<Real> dx,
                     Matrix<Real> dgain, Matrix<Real> dshift) {
  const int64_t cols = dgain.size();
  const Matrix<Real> x = columns(given, cols);
  std::vector<Real> space;
  const Matrix<Real> g = gradient_of_norm(after, dy, x, norm, space);
  const auto centred = [&](int64_t r, int64_t j) { return (x.row(r)[j] - norm.mean[j]) * norm.inverse[j]; };
  const auto shifts = column_sums(x.rows, cols, [&](int64_t r, int64_t j) { return g.row(r)[j]; });
  const auto gains = column_sums(x.rows, cols, [&](int64_t r, int64_t j) { return g.row(r)[j] * centred(r, j); });
  for (int64_t j = 0; j < cols; ++j) {
    dshift.data[j] = static_cast<Real>(shifts[static_cast<size_t>(j)]);
    dgain.data[j] = static_cast<Real>(gains[static_cast<size_t>(j)]);
  }
  const Real share = 1 / static_cast<Real>(x.rows);
  each_row(x.rows, cols, [=](int64_t r) {
    for (int64_t j = 0; j < cols; ++j)
      dx.data[r * cols + j] = norm.gain[j] * norm.inverse[j] *
                              (g.row(r)[j] - share * dshift.data[j] - centred(r, j) * share * dgain.data[j]);
  });
}

template <class Real>
void layer_norm(Matrix<Real> x, NormValues<Real> norm, Matrix<Real> y) {
  const auto n = static_cast<double>(x.cols);
  each_row(x.rows, x.cols, [=](int64_t r) {
    const Real* row = x.row(r);
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < x.cols; ++j) sum += static_cast<double>(row[j]);
    const double mean = sum / n;
    for (int64_t j = 0; j < x.cols; ++j) squares += (static_cast<double>(row[j]) - mean) * (static_cast<double>(row[j]) - mean);
    norm.mean[r] = static_cast<Real>(mean);
    norm.inverse[r] = inverse_of<Real>(squares / n);
    for (int64_t j = 0; j < x.cols; ++j)
      y.row(r)[j] = (row[j] - norm.mean[r]) * norm.inverse[r] * norm.gain[j] + norm.shift[j];
  });
}

template <class Real>
void layer_norm_grad(Matrix<Real> dy, Matrix<Real> x, NormValues<Real> norm, Matrix<Real> dx, Matrix<Real> dgain,
                     Matrix<Real> dshift) {
  const auto centred = [&](int64_t r, int64_t j) { return (x.row(r)[j] - norm.mean[r]) * norm.inverse[r]; };
  const auto shifts = column_sums(x.rows, x.cols, [&](int64_t r, int64_t j) { return dy.row(r)[j]; });
  const auto gains = column_sums(x.rows, x.cols, [&](int64_t r, int64_t j) { return dy.row(r)[j] * centred(r, j); });
  for (int64_t j = 0; j < x.cols; ++j) {
    dshift.data[j] = static_cast<Real>(shifts[static_cast<size_t>(j)]);
    dgain.data[j] = static_cast<Real>(gains[static_cast<size_t>(j)]);
  }
  each_row(x.rows, x.cols, [=](int64_t r) {
    double sum = 0, product = 0;
    for (int64_t j = 0; j < x.cols; ++j) {
      const Real g = dy.row(r)[j] * norm.gain[j];
      sum += static_cast<double>(g);
      product += static_cast<double>(g * centred(r, j));
    }
    const Real mean = static_cast<Real>(sum / static_cast<double>(x.cols)),
               slope = static_cast<Real>(product / static_cast<double>(x.cols));
    for (int64_t j = 0; j < x.cols; ++j)
      dx.row(r)[j] = norm.inverse[r] * (dy.row(r)[j] * norm.gain[j] - mean - centred(r, j) * slope);
  });
}

template <class Real>
void drop_out(const DropoutMask& mask, uint64_t seed, int64_t step, Matrix<Real> x, Matrix<Real> y) {
  const uint64_t stream = dropout_stream(mask, step);
  const Real factor = 1 / (1 - static_cast<Real>(mask.rate));
  share_range((x.size() + 3) / 4, kLeastValues / 16, [=](int64_t first, int64_t end) {
    for (int64_t four = first; four < end; ++four) {
      const data::PhiloxWords words = data::philox_at(seed, stream, static_cast<uint64_t>(four));
      for (int64_t j = 4 * four; j < std::min(4 * four + 4, x.size()); ++j)
        y.data[j] = data::unit_uniform(words.w[j - 4 * four]) >= mask.rate ? x.data[j] * factor : Real(0);
    }
  });
}

#define WS_FOR(Real)                                                                                                    \
  template void batch_norm(const AfterNorm&, Matrix<Real>, NormValues<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>); \
  template void batch_norm_apply(Activation, Matrix<Real>, NormValues<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>); \
  template void batch_norm_grad(const AfterNorm&, Matrix<Real>, Matrix<Real>, NormValues<Real>, Matrix<Real>,           \
                                Matrix<Real>, Matrix<Real>);                                                            \
  template void layer_norm(Matrix<Real>, NormValues<Real>, Matrix<Real>);                                               \
  template void layer_norm_grad(Matrix<Real>, Matrix<Real>, NormValues<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>); \
  template void drop_out(const DropoutMask&, uint64_t, int64_t, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
