#include "engine/cpu/cpu_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "engine/cpu/cores.h"
#include "engine/cpu/gemm.h"

namespace ws::cpu {
namespace {

// The tanh form of gelu, as fused library kernels use it.
constexpr double kGelu = 0.7978845608028654, kGeluCubic = 0.044715;

template <class Real>
Real gelu(Real z) {
  return Real(0.5) * z * (1 + std::tanh(Real(kGelu) * (z + Real(kGeluCubic) * z * z * z)));
}

template <class Real>
Real gelu_slope(Real z) {
  const Real t = std::tanh(Real(kGelu) * (z + Real(kGeluCubic) * z * z * z));
  return Real(0.5) * (1 + t) + Real(0.5) * z * (1 - t * t) * Real(kGelu) * (1 + 3 * Real(kGeluCubic) * z * z);
}

template <class Real>
Real bend(Activation kind, Real z) {
  switch (kind) {
    case Activation::None:
      return z;
    case Activation::Relu:
      return z > 0 ? z : Real(0);
    case Activation::Sigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::Tanh:
      return std::tanh(z);
    case Activation::Gelu:
      return gelu(z);
  }
  return z;
}

template <class Real>
Real slope(Activation kind, Real saved) {
  switch (kind) {
    case Activation::None:
      return 1;
    case Activation::Relu:
      return saved > 0 ? Real(1) : Real(0);
    case Activation::Sigmoid:
      return saved * (1 - saved);
    case Activation::Tanh:
      return 1 - saved * saved;
    case Activation::Gelu:
      return gelu_slope(saved);
  }
  return 1;
}

// Returns the logarithm of Σ exp(z). A class's loss is this minus its z, also where its p is too small for a Real.
template <class Real>
double softmax_row(const Real* z, Real* p, int64_t n) {
  const Real top = *std::max_element(z, z + n);
  Real sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += p[j] = std::exp(z[j] - top);
  const Real share = 1 / sum;
  for (int64_t j = 0; j < n; ++j) p[j] *= share;
  return static_cast<double>(top) + std::log(static_cast<double>(sum));
}

template <class Real>
bool is_right(const Real* scores, int64_t n, int32_t label) {
  return std::max_element(scores, scores + n) - scores == label;
}

}  // namespace

template <class Real>
void multiply(Part<Real> a, bool transpose_a, Part<Real> b, bool transpose_b, Part<Real> c, Real factor, Result result) {
  Product<Real> product;
  product.rows = c.rows, product.cols = c.cols, product.terms = transpose_a ? a.rows : a.cols;
  product.a = a.data, product.a_row = transpose_a ? 1 : a.stride, product.a_term = transpose_a ? a.stride : 1;
  product.b = b.data, product.b_term = transpose_b ? 1 : b.stride, product.b_col = transpose_b ? b.stride : 1;
  product.factor = factor, product.kept = result == Result::Adds ? Real(1) : Real(0);
  product.c = c.data, product.c_row = c.stride;
  gemm(product);
}

template <class Real>
void multiply(Matrix<Real> a, bool transpose_a, Matrix<Real> b, bool transpose_b, Matrix<Real> c) {
  multiply<Real>(Part<Real>(a), transpose_a, Part<Real>(b), transpose_b, Part<Real>(c), Real(1), Result::Replaces);
}

template <class Real>
void broadcast_rows(Matrix<Real> bias, Matrix<Real> out) {
  for (int64_t r = 0; r < out.rows; ++r) std::copy_n(bias.data, out.cols, out.row(r));
}

template <class Real>
void add(Matrix<Real> a, Matrix<Real> b, Matrix<Real> out) {
  share_range(out.size(), kLeastValues, [=](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) out.data[i] = a.data[i] + b.data[i];
  });
}

namespace {

// out[i] = work(i, in[i]). A loop over one array and a loop over two that do not overlap vectorise, if `work` has no branches.
template <class Real, class Work>
void each_value(const Real* in, Real* out, int64_t count, const Work& work) {
  if (in != out)
    for (int64_t i = 0; i < count; ++i) out[i] = work(i, in[i]);
  else
    for (int64_t i = 0; i < count; ++i) out[i] = work(i, out[i]);
}

template <class Real>
void activate_values(Activation kind, const Real* z, Real* h, int64_t count) {
  if (kind == Activation::Relu) return each_value(z, h, count, [](int64_t, Real v) { return v > 0 ? v : Real(0); });
  each_value(z, h, count, [kind](int64_t, Real v) { return bend(kind, v); });
}

}  // namespace

template <class Real>
void activate(Activation kind, Matrix<Real> z, Matrix<Real> h) {
  share_range(h.size(), kLeastValues, [=](int64_t first, int64_t end) { activate_values(kind, z.data + first, h.data + first, end - first); });
}

template <class Real>
void activate_grad(Activation kind, Matrix<Real> dh, Matrix<Real> saved, Matrix<Real> dz) {
  share_range(dz.size(), kLeastValues, [=](int64_t first, int64_t end) {
    const Real *from = dh.data + first, *at = saved.data + first;
    if (kind == Activation::Relu)
      return each_value(from, dz.data + first, end - first, [at](int64_t i, Real gradient) { return at[i] > 0 ? gradient : Real(0); });
    each_value(from, dz.data + first, end - first, [at, kind](int64_t i, Real gradient) { return gradient * slope(kind, at[i]); });
  });
}

template <class Real>
void bias_activate(Activation kind, Matrix<Real> z, Matrix<Real> bias, Matrix<Real> h, Matrix<Real> pre) {
  const int64_t cols = bias.size();  // h may have another shape
  const int64_t block = std::max<int64_t>(1, 4096 / cols);  // stays in the first cache
  share_range(h.size() / cols, least_rows(cols), [=](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; row += block) {
      const int64_t rows = std::min(block, end - row);
      const Real *in = z.data + row * cols, *add = bias.data;
      Real* out = h.data + row * cols;
      for (int64_t r = 0; r < rows; ++r) each_value(in + r * cols, out + r * cols, cols, [add](int64_t j, Real v) { return v + add[j]; });
      if (pre.data) std::copy_n(out, rows * cols, pre.data + row * cols);
      if (kind != Activation::None) activate_values(kind, out, out, rows * cols);
    }
  });
}

template <class Real>
void softmax(Matrix<Real> z, Matrix<Real> p) {
  for (int64_t r = 0; r < z.rows; ++r) softmax_row(z.row(r), p.row(r), z.cols);
}

namespace {

// `whole`: what softmax_row returned for z.
template <class Real>
double row_loss(const Real* z, double whole, int64_t n, int32_t label, double smoothing) {
  const double right = whole - static_cast<double>(z[label]);
  if (smoothing == 0) return right;
  double all = 0;
  for (int64_t j = 0; j < n; ++j) all += whole - static_cast<double>(z[j]);
  return (1 - smoothing) * right + smoothing / static_cast<double>(n) * all;
}

template <class Real>
void row_grad(const Real* p, Real* dz, int64_t n, int32_t label, double smoothing, Real scale) {
  const Real right = static_cast<Real>(1 - smoothing), each = static_cast<Real>(smoothing / static_cast<double>(n));
  for (int64_t j = 0; j < n; ++j) dz[j] = (p[j] - (j == label ? right + each : each)) * scale;
}

}  // namespace

template <class Real>
Sums cross_entropy(Matrix<Real> z, Labels labels) {
  std::vector<Real> p(static_cast<size_t>(z.cols));
  Sums sums;
  for (int64_t r = 0; r < z.rows; ++r) {
    const double whole = softmax_row(z.row(r), p.data(), z.cols);
    sums.loss += row_loss(z.row(r), whole, z.cols, labels.classes[r], labels.smoothing);
    sums.correct += is_right(z.row(r), z.cols, labels.classes[r]);
  }
  return sums;
}

template <class Real>
void softmax_grad(Matrix<Real> p, Labels labels, Real scale, Matrix<Real> dz) {
  for (int64_t r = 0; r < p.rows; ++r)
    row_grad(p.row(r), dz.row(r), p.cols, labels.classes[r], labels.smoothing, scale);
}

template <class Real>
Sums softmax_cross_entropy(Matrix<Real> z, Labels labels, Real scale, Matrix<Real> dz) {
  std::vector<Sums> rows(static_cast<size_t>(z.rows));
  share_range(z.rows, least_rows(8 * z.cols), [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r) {
      Sums& row = rows[static_cast<size_t>(r)];
      row.correct = is_right(z.row(r), z.cols, labels.classes[r]);
      const double whole = softmax_row(z.row(r), dz.row(r), z.cols);
      row.loss = row_loss(z.row(r), whole, z.cols, labels.classes[r], labels.smoothing);
      row_grad(dz.row(r), dz.row(r), z.cols, labels.classes[r], labels.smoothing, scale);
    }
  });
  Sums sums;
  for (const Sums& row : rows) sums.loss += row.loss, sums.correct += row.correct;
  return sums;
}

template <class Real>
Sums squared_error(Matrix<Real> z, Matrix<Real> y) {
  double sum = 0;
  for (int64_t i = 0; i < z.size(); ++i) {
    const double e = static_cast<double>(z.data[i]) - static_cast<double>(y.data[i]);
    sum += e * e;
  }
  return {sum / static_cast<double>(z.cols), 0};
}

template <class Real>
void squared_error_grad(Matrix<Real> z, Matrix<Real> y, Real scale, Matrix<Real> dz) {
  const Real factor = 2 * scale / static_cast<Real>(z.cols);
  for (int64_t i = 0; i < z.size(); ++i) dz.data[i] = factor * (z.data[i] - y.data[i]);
}

template <class Real>
void column_sum(Matrix<Real> a, Matrix<Real> out) {
  a = {a.data, a.size() / out.size(), out.size()};  // a may have another shape
  if (a.cols == 1) {  // one long column: summed in double, because a float would lose small values
    double sum = 0;
    for (int64_t r = 0; r < a.rows; ++r) sum += static_cast<double>(a.data[r]);
    out.data[0] = static_cast<Real>(sum);
    return;
  }
  share_sums(a.rows, a.cols, out.data, [=](int64_t first, int64_t end, Real* to) {
    for (int64_t r = first; r < end; ++r)
      for (int64_t j = 0; j < a.cols; ++j) to[j] += a.row(r)[j];
  });
}

template <class Real>
bool all_finite(Matrix<Real> a) {
  return std::all_of(a.data, a.data + a.size(), [](Real v) { return std::isfinite(v); });
}

template <class Real>
double sum_of_squares(Matrix<Real> a) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a.data[i]) * static_cast<double>(a.data[i]);
  return sum;
}

template <class Real>
void scale(Real factor, Matrix<Real> a) {
  for (int64_t i = 0; i < a.size(); ++i) a.data[i] *= factor;
}

namespace {

// What an update does to each weight. Taken by value: a reference to a number of the same type as the weights would keep its loop
// from being vectorised.
template <class Real>
struct Rule {
  Real lr, decay, unscale, momentum;
  bool nesterov;

  void plain(Real* w, const Real* gradient, int64_t count) const {
    const Rule rule = *this;
    for (int64_t i = 0; i < count; ++i) w[i] -= rule.lr * (gradient[i] * rule.unscale + rule.decay * w[i]);
  }
  void with_momentum(Real* w, const Real* gradient, Real* m, int64_t count) const {
    const Rule rule = *this;
    for (int64_t i = 0; i < count; ++i) {
      const Real g = gradient[i] * rule.unscale + rule.decay * w[i];
      m[i] = rule.momentum * m[i] + g;
      w[i] -= rule.lr * (rule.nesterov ? g + rule.momentum * m[i] : m[i]);
    }
  }
};

template <class Real>
struct AdamRule {
  AdamRule(const Hyper& h, Real decay)
      : b1(static_cast<Real>(h.beta1)),
        b2(static_cast<Real>(h.beta2)),
        epsilon(static_cast<Real>(h.epsilon)),
        step(static_cast<Real>(h.lr / (1 - std::pow(h.beta1, static_cast<double>(h.updates))))),
        root(static_cast<Real>(1 / std::sqrt(1 - std::pow(h.beta2, static_cast<double>(h.updates))))),
        unscale(static_cast<Real>(h.unscale)),
        keeps(h.kind == Optimizer::AdamW ? 1 - static_cast<Real>(h.lr) * decay : Real(1)),
        added(h.kind == Optimizer::AdamW ? Real(0) : decay) {}

  void operator()(Real* w, const Real* gradient, Real* m, Real* v, int64_t count) const {
    const AdamRule rule = *this;
    for (int64_t i = 0; i < count; ++i) {
      const Real g = gradient[i] * rule.unscale + rule.added * w[i];
      w[i] *= rule.keeps;
      m[i] = rule.b1 * m[i] + (1 - rule.b1) * g;
      v[i] = rule.b2 * v[i] + (1 - rule.b2) * g * g;
      w[i] -= rule.step * m[i] / (std::sqrt(v[i]) * rule.root + rule.epsilon);
    }
  }

  Real b1, b2, epsilon, step, root, unscale, keeps, added;
};

}  // namespace

template <class Real>
void update(const Hyper& h, bool decays, Matrix<Real> w, Matrix<Real> gradient, Real* m, Real* v) {
  const Real decay = decays ? static_cast<Real>(h.weight_decay) : Real(0);
  Real *const to = w.data, *const from = gradient.data;
  if (is_adam(h.kind)) {
    const AdamRule<Real> adam(h, decay);
    return share_range(w.size(), kLeastValues, [&](int64_t i, int64_t end) { adam(to + i, from + i, m + i, v + i, end - i); });
  }
  const Rule<Real> rule{static_cast<Real>(h.lr), decay, static_cast<Real>(h.unscale), static_cast<Real>(h.momentum), h.nesterov};
  share_range(w.size(), kLeastValues, [&](int64_t i, int64_t end) {
    h.kind == Optimizer::Sgd ? rule.plain(to + i, from + i, end - i) : rule.with_momentum(to + i, from + i, m + i, end - i);
  });
}

namespace {

// One input: sums chunks of 1024 rows in Real and adds them up in double, which is fast and exact enough.
template <class Real>
Sums line_through(Matrix<Real> x, Matrix<Real> y, Real w, Real b, double& dw, double& db) {
  constexpr int64_t kChunk = 1024;
  Sums sums;
  for (int64_t begin = 0; begin < x.rows; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, x.rows);
    Real ee = 0, ex = 0, e1 = 0;
    for (int64_t i = begin; i < end; ++i) {
      const Real e = w * x.data[i] + b - y.data[i];
      ee += e * e;
      ex += e * x.data[i];
      e1 += e;
    }
    sums.loss += static_cast<double>(ee);
    dw += static_cast<double>(ex);
    db += static_cast<double>(e1);
  }
  return sums;
}

}  // namespace

template <class Real>
Sums linear_step(Matrix<Real> x, Matrix<Real> y, Matrix<Real> w, Real b, Matrix<Real> dw, Real* db) {
  const double scale = 2.0 / static_cast<double>(x.rows);
  double db_sum = 0;
  if (x.cols == 1) {
    double dw_sum = 0;
    const Sums sums = line_through(x, y, w.data[0], b, dw_sum, db_sum);
    dw.data[0] = static_cast<Real>(scale * dw_sum);
    *db = static_cast<Real>(scale * db_sum);
    return sums;
  }
  Sums sums;
  std::fill_n(dw.data, dw.size(), Real(0));
  for (int64_t r = 0; r < x.rows; ++r) {
    Real z = b;
    for (int64_t j = 0; j < x.cols; ++j) z += x.row(r)[j] * w.data[j];
    const Real e = z - y.data[r];
    sums.loss += static_cast<double>(e) * static_cast<double>(e);
    db_sum += static_cast<double>(e);
    for (int64_t j = 0; j < x.cols; ++j) dw.data[j] += static_cast<Real>(scale) * e * x.row(r)[j];
  }
  *db = static_cast<Real>(scale * db_sum);
  return sums;
}

namespace {

float round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (!std::isfinite(value)) return value;
  return std::bit_cast<float>((bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u);
}

float round_to_half(float value) {
  if (!std::isfinite(value)) return value;
  const float size = std::abs(value);
  if (size >= 65520.0f) return std::copysign(INFINITY, value);
  const float unit =
      size < 0x1p-14f ? 0x1p-24f : std::ldexp(1.0f, std::ilogb(size) - 10);  // distance of adjacent numbers here
  return std::nearbyint(value / unit) * unit;
}

}  // namespace

float round_to(DType type, float value) {
  if (type == DType::Bf16) return round_to_bf16(value);
  return type == DType::F16 ? round_to_half(value) : value;
}

template <class Real>
void round_all(DType type, Matrix<Real> a) {
  if (type != DType::Bf16 && type != DType::F16) return;
  share_range(a.size(), kLeastValues / 4, [=](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) a.data[i] = static_cast<Real>(round_to(type, static_cast<float>(a.data[i])));
  });
}

#define WS_FOR(Real)                                                                               \
  template void multiply(Part<Real>, bool, Part<Real>, bool, Part<Real>, Real, Result);            \
  template void multiply(Matrix<Real>, bool, Matrix<Real>, bool, Matrix<Real>);                    \
  template void broadcast_rows(Matrix<Real>, Matrix<Real>);                                        \
  template void add(Matrix<Real>, Matrix<Real>, Matrix<Real>);                                     \
  template void activate(Activation, Matrix<Real>, Matrix<Real>);                                  \
  template void activate_grad(Activation, Matrix<Real>, Matrix<Real>, Matrix<Real>);               \
  template void bias_activate(Activation, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>); \
  template void softmax(Matrix<Real>, Matrix<Real>);                                               \
  template Sums cross_entropy(Matrix<Real>, Labels);                                               \
  template void softmax_grad(Matrix<Real>, Labels, Real, Matrix<Real>);                            \
  template Sums softmax_cross_entropy(Matrix<Real>, Labels, Real, Matrix<Real>);                   \
  template Sums squared_error(Matrix<Real>, Matrix<Real>);                                         \
  template void squared_error_grad(Matrix<Real>, Matrix<Real>, Real, Matrix<Real>);                \
  template void column_sum(Matrix<Real>, Matrix<Real>);                                            \
  template bool all_finite(Matrix<Real>);                                                          \
  template double sum_of_squares(Matrix<Real>);                                                    \
  template void scale(Real, Matrix<Real>);                                                         \
  template void update(const Hyper&, bool, Matrix<Real>, Matrix<Real>, Real*, Real*);              \
  template Sums linear_step(Matrix<Real>, Matrix<Real>, Matrix<Real>, Real, Matrix<Real>, Real*);  \
  template void round_all(DType, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

template <class Real>
void embed(Matrix<Real> symbols, Matrix<Real> table, Matrix<Real> positions, Matrix<Real> h) {
  for (int64_t i = 0; i < symbols.size(); ++i) {
    const Real* vector = table.row(static_cast<int64_t>(symbols.data[i]));
    std::copy_n(vector, table.cols, h.row(i));
    if (!positions.data) continue;
    const Real* place = positions.row(i % symbols.cols);
    for (int64_t j = 0; j < table.cols; ++j) h.row(i)[j] += place[j];
  }
}

template <class Real>
void embed_grad(Matrix<Real> symbols, Matrix<Real> dh, Matrix<Real> dtable, Matrix<Real> dpositions) {
  std::fill_n(dtable.data, dtable.size(), Real(0));
  if (dpositions.data) std::fill_n(dpositions.data, dpositions.size(), Real(0));
  for (int64_t i = 0; i < symbols.size(); ++i) {
    Real* vector = dtable.row(static_cast<int64_t>(symbols.data[i]));
    for (int64_t j = 0; j < dtable.cols; ++j) vector[j] += dh.row(i)[j];
    if (!dpositions.data) continue;
    Real* place = dpositions.row(i % symbols.cols);
    for (int64_t j = 0; j < dtable.cols; ++j) place[j] += dh.row(i)[j];
  }
}

#define WS_FOR(Real)                                                                 \
  template void embed(Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);       \
  template void embed_grad(Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

template <class Real>
void prepare(const Preparation& how, const Window& pictures, uint64_t seed, int64_t step, Matrix<Real> x, Matrix<Real> y) {
  const int64_t size = pictures.h * pictures.w * pictures.c;
  share_range(pictures.n, least_rows(size), [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const PicturePlace place = how.is_random() ? place_of(how, seed, step, row) : PicturePlace{};
      const auto picture = [from = x.data + row * size](int64_t i) { return from[i]; };
      Real* to = y.data + row * size;
      for (int64_t v = 0; v < pictures.h; ++v)
        for (int64_t u = 0; u < pictures.w; ++u)
          for (int64_t channel = 0; channel < pictures.c; ++channel)
            *to++ = prepared_value<Real>(how, place, pictures.h, pictures.w, pictures.c, v, u, channel, picture);
    }
  });
}

template void prepare(const Preparation&, const Window&, uint64_t, int64_t, Matrix<float>, Matrix<float>);
template void prepare(const Preparation&, const Window&, uint64_t, int64_t, Matrix<double>, Matrix<double>);

}  // namespace ws::cpu
