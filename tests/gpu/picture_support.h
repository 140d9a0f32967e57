// What the tests of picture kernels share: the operands of a convolution and of a batch norm, and plain loops in double.
#pragma once
#include <algorithm>

#include "tests/gpu/op_support.h"

namespace ws::cuda::test {

inline Window window(int64_t n, int64_t h, int64_t w, int64_t c, int64_t k, int64_t kh, int64_t kw, int64_t stride,
                     int64_t pad) {
  return {n, h, w, c, kh, kw, stride, pad, (h + 2 * pad - kh) / stride + 1, (w + 2 * pad - kw) / stride + 1, k};
}

// Everything that the three passes of a convolution read and write.
struct Picture {
  Window v;
  Precision precision;
  Matrix x, w, bias, z, dz, dx, dw, db;
  DeviceBlock<char> memory = DeviceBlock<char>::device(32 << 20);

  Picture(const Window& window, Precision p) : v(window), precision(p) {
    const DType type = type_of(p);
    x = random_matrix(v.n * v.h * v.w, v.c, type, 1);
    w = random_matrix(v.k, v.kh * v.kw * v.c, type, 2);
    bias = random_matrix(1, v.k, type, 3);
    dz = random_matrix(v.n * v.oh * v.ow, v.k, type, 4);
    forget_results();
  }
  void forget_results() {
    z = Matrix(dz.t.rows, v.k, dz.t.type), dx = Matrix(x.t.rows, v.c, x.t.type);
    dw = Matrix(v.k, v.kh * v.kw * v.c), db = Matrix(1, v.k);
  }
  Workspace workspace() const { return {memory.data(), static_cast<int64_t>(memory.bytes())}; }
  Convolution forward(Epilogue epilogue = Epilogue::None) const {
    Convolution c{Convolution::Pass::Forward, v, x.t, w.t, z.t, epilogue};
    if (epilogue != Epilogue::None) c.bias = bias.t;
    c.precision = precision;
    return c;
  }
  Convolution data_grad() const {
    Convolution c{Convolution::Pass::DataGrad, v, dx.t, w.t, dz.t};
    c.precision = precision;
    return c;
  }
  Convolution weight_grad() const {
    Convolution c{Convolution::Pass::WeightGrad, v, x.t, dw.t, dz.t, Epilogue::BiasGrad};
    c.bias_grad = db.t;
    c.precision = precision;
    return c;
  }
};

// Calls f(row of z, row of x, tap) for each product of a convolution.
template <class F>
void each_tap(const Window& v, F f) {
  for (int64_t n = 0; n < v.n; ++n)
    for (int64_t q = 0; q < v.oh; ++q)
      for (int64_t p = 0; p < v.ow; ++p)
        for (int64_t r = 0; r < v.kh; ++r)
          for (int64_t s = 0; s < v.kw; ++s) {
            const int64_t y = q * v.stride - v.pad + r, x = p * v.stride - v.pad + s;
            if (y < 0 || y >= v.h || x < 0 || x >= v.w) continue;
            f((n * v.oh + q) * v.ow + p, (n * v.h + y) * v.w + x, r * v.kw + s);
          }
}

inline std::vector<double> convolved(const Window& v, const Matrix& x, const Matrix& w) {
  std::vector<double> z(static_cast<size_t>(v.n * v.oh * v.ow * v.k));
  each_tap(v, [&](int64_t to, int64_t from, int64_t tap) {
    const float* pixel = x.v.data() + from * v.c;
    for (int64_t k = 0; k < v.k; ++k) {
      const float* weights = w.v.data() + (k * v.kh * v.kw + tap) * v.c;
      double sum = 0;
      for (int64_t c = 0; c < v.c; ++c) sum += static_cast<double>(pixel[c]) * weights[c];
      z[static_cast<size_t>(to * v.k + k)] += sum;
    }
  });
  return z;
}

inline std::vector<double> data_gradient(const Window& v, const Matrix& dz, const Matrix& w) {
  std::vector<double> dx(static_cast<size_t>(v.n * v.h * v.w * v.c));
  each_tap(v, [&](int64_t from, int64_t to, int64_t tap) {
    double* pixel = dx.data() + to * v.c;
    for (int64_t k = 0; k < v.k; ++k) {
      const double d = dz.v[static_cast<size_t>(from * v.k + k)];
      const float* weights = w.v.data() + (k * v.kh * v.kw + tap) * v.c;
      for (int64_t c = 0; c < v.c; ++c) pixel[c] += d * weights[c];
    }
  });
  return dx;
}

inline std::vector<double> weight_gradient(const Window& v, const Matrix& x, const Matrix& dz) {
  std::vector<double> dw(static_cast<size_t>(v.k * v.kh * v.kw * v.c));
  each_tap(v, [&](int64_t at, int64_t from, int64_t tap) {
    const float* pixel = x.v.data() + from * v.c;
    for (int64_t k = 0; k < v.k; ++k) {
      const double d = dz.v[static_cast<size_t>(at * v.k + k)];
      double* weights = dw.data() + (k * v.kh * v.kw + tap) * v.c;
      for (int64_t c = 0; c < v.c; ++c) weights[c] += d * pixel[c];
    }
  });
  return dw;
}

// Whole numbers from -3 to 3.
inline Matrix coarse_matrix(int64_t rows, int64_t cols, DType type, uint32_t seed) {
  Matrix m = random_matrix(rows, cols, type, seed, 1.5f);
  for (float& v : m.v) v = std::clamp(std::round(v), -3.f, 3.f);
  m.upload();
  return m;
}

struct Pooled {
  std::vector<double> y, dx;
};

// Calls f(element of y, elements of x that its window covers, row by row).
template <class F>
void each_window(const Window& v, F f) {
  std::vector<size_t> covered;
  for (int64_t n = 0; n < v.n; ++n)
    for (int64_t q = 0; q < v.oh; ++q)
      for (int64_t p = 0; p < v.ow; ++p)
        for (int64_t c = 0; c < v.c; ++c) {
          covered.clear();
          for (int64_t r = 0; r < v.kh; ++r)
            for (int64_t s = 0; s < v.kw; ++s) {
              const int64_t y = q * v.stride - v.pad + r, x = p * v.stride - v.pad + s;
              if (y >= 0 && y < v.h && x >= 0 && x < v.w)
                covered.push_back(static_cast<size_t>(((n * v.h + y) * v.w + x) * v.c + c));
            }
          f(static_cast<size_t>(((n * v.oh + q) * v.ow + p) * v.c + c), covered);
        }
}

inline Pooled max_pooled(const Window& v, const Matrix& x, const Matrix& dy) {
  Pooled out{std::vector<double>(dy.v.size()), std::vector<double>(x.v.size())};
  each_window(v, [&](size_t to, const std::vector<size_t>& covered) {
    const size_t best = *std::ranges::max_element(covered, {}, [&](size_t i) { return x.v[i]; });  // the first of equals
    out.y[to] = x.v[best], out.dx[best] += dy.v[to];
  });
  return out;
}

inline Pooled avg_pooled(const Window& v, const Matrix& x, const Matrix& dy) {
  Pooled out{std::vector<double>(dy.v.size()), std::vector<double>(x.v.size())};
  each_window(v, [&](size_t to, const std::vector<size_t>& covered) {
    for (size_t i : covered) {
      out.y[to] += x.v[i] / static_cast<double>(covered.size());
      out.dx[i] += dy.v[to] / static_cast<double>(covered.size());
    }
  });
  return out;
}

// The operands of a batch norm. The columns have a mean far from zero.
struct NormOperands {
  Matrix x, dy, gain, shift, y, mean, inverse, running_mean, running_var, dx, dgain, dshift;
  Activation activation;

  NormOperands(int64_t rows, int64_t c, DType type, Activation act) : activation(act) {
    x = random_matrix(rows, c, type, 1);
    for (float& v : x.v) v = 2 * v + 3;
    x.upload();
    dy = random_matrix(rows, c, type, 2);
    gain = random_matrix(1, c, DType::F32, 3), shift = random_matrix(1, c, DType::F32, 4);
    running_mean = random_matrix(1, c, DType::F32, 5), running_var = random_matrix(1, c, DType::F32, 6);
    for (float& v : running_var.v) v = v * v + 0.5f;
    running_var.upload();
    mean = Matrix(1, c), inverse = Matrix(1, c), dgain = Matrix(1, c), dshift = Matrix(1, c);
    y = Matrix(rows, c, type), dx = Matrix(rows, c, type);
  }
  BatchNormalization forward() const {
    return {x.t, y.t, gain.t, shift.t, running_mean.t, running_var.t, mean.t, inverse.t, activation};
  }
  BatchNormGradient backward() const {
    return {dy.t, x.t, gain.t, shift.t, mean.t, inverse.t, dx.t, dgain.t, dshift.t, activation};
  }
};

struct Normed {
  std::vector<double> y, mean, inverse, running_mean, running_var, dx, dgain, dshift;
};

// One column of a batch norm and its gradient. Relu's slope comes from the saved y: near zero its sign is a matter of
// rounding.
inline void norm_column(const NormOperands& at, const std::vector<float>& saved, Activation act, int64_t c, Normed& out) {
  const int64_t rows = at.x.t.rows, cols = at.x.t.cols;
  const auto n = static_cast<double>(rows);
  const auto column = static_cast<size_t>(c);
  const double gain = at.gain.v[column], shift = at.shift.v[column];
  double mean = 0, var = 0, dgain = 0, dshift = 0;
  for (int64_t r = 0; r < rows; ++r) mean += at.x.at(r, c) / n;
  for (int64_t r = 0; r < rows; ++r) var += (at.x.at(r, c) - mean) * (at.x.at(r, c) - mean) / n;
  const double inverse = 1 / std::sqrt(var + kNormEpsilon);
  const auto normal = [&](int64_t r) { return (at.x.at(r, c) - mean) * inverse; };
  const auto grad = [&](int64_t r) {
    const bool off = act == Activation::Relu && saved[static_cast<size_t>(r * cols + c)] <= 0;
    return off ? 0 : at.dy.at(r, c);
  };
  for (int64_t r = 0; r < rows; ++r) dshift += grad(r), dgain += grad(r) * normal(r);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(r * cols + c);
    out.y[i] = bent(act, gain * normal(r) + shift);
    out.dx[i] = gain * inverse * (grad(r) - dshift / n - normal(r) * dgain / n);
  }
  out.mean[column] = mean, out.inverse[column] = inverse, out.dgain[column] = dgain, out.dshift[column] = dshift;
  out.running_mean[column] = 0.9 * at.running_mean.v[column] + 0.1 * mean;
  out.running_var[column] = 0.9 * at.running_var.v[column] + 0.1 * var * n / (n - 1);
}

// Call after batch_norm.
inline Normed normed(const NormOperands& at, Activation act) {
  Normed out;
  const std::vector<float> saved = at.y.download();
  for (auto* rows : {&out.y, &out.dx}) rows->resize(at.x.v.size());
  for (auto* row : {&out.mean, &out.inverse, &out.running_mean, &out.running_var, &out.dgain, &out.dshift})
    row->resize(at.gain.v.size());
  for (int64_t c = 0; c < at.x.t.cols; ++c) norm_column(at, saved, act, c, out);
  return out;
}

// What batch_norm_apply makes of the running statistics that are now on the device.
inline std::vector<double> applied(const NormOperands& at, Activation act) {
  const std::vector<float> mean = at.running_mean.download(), var = at.running_var.download();
  std::vector<double> y(at.x.v.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i % mean.size();
    y[i] = bent(act, (at.x.v[i] - mean[c]) / std::sqrt(var[c] + kNormEpsilon) * at.gain.v[c] + at.shift.v[c]);
  }
  return y;
}

}  // namespace ws::cuda::test
