#include "engine/cpu/convolution.h"

#include <algorithm>
#include <vector>

#include "engine/cpu/cores.h"

namespace ws::cpu {
namespace {

constexpr int64_t kMostValues = 1 << 16;  // of the unfolded windows that are multiplied at once: they stay in the cache

int64_t terms(const Window& w) { return w.kh * w.kw * w.c; }
bool is_plain_product(const Window& w) { return w.kh == 1 && w.kw == 1 && w.stride == 1 && w.pad == 0; }

// Adjacent pixels of a picture that one row of a window covers. Pixels are numbered within the picture.
struct Run {
  int64_t output = 0;  // output pixel
  int64_t place = 0;   // of the first pixel in the window
  int64_t pixel = 0, count = 0;
};

template <class Visit>
void each_run(const Window& w, const Visit& visit) {
  for (int64_t oy = 0; oy < w.oh; ++oy)
    for (int64_t ox = 0; ox < w.ow; ++ox)
      for (int64_t r = 0; r < w.kh; ++r) {
        const int64_t y = oy * w.stride - w.pad + r, left = ox * w.stride - w.pad;
        const int64_t first = std::max<int64_t>(0, -left), end = std::min(w.kw, w.w - left);
        if (y < 0 || y >= w.h || first >= end) continue;
        visit(Run{oy * w.ow + ox, r * w.kw + first, y * w.w + left + first, end - first});
      }
}

// Calls visit(output pixel, input pixel) for each pixel that a window covers.
template <class Visit>
void each_covered(const Window& w, const Visit& visit) {
  each_run(w, [&](const Run& run) {
    for (int64_t i = 0; i < run.count; ++i) visit(run.output, run.pixel + i);
  });
}

// One row for each output pixel, with the values under its window; zero where the window leaves the picture.
template <class Real>
void unfold(const Window& w, const Real* picture, Real* rows) {
  const int64_t each = terms(w);
  if (w.pad > 0) std::fill_n(rows, w.oh * w.ow * each, Real(0));
  each_run(w, [&](const Run& run) {
    const Real* from = picture + run.pixel * w.c;
    Real* to = rows + run.output * each + run.place * w.c;
    for (int64_t i = 0; i < run.count * w.c; ++i) to[i] = from[i];
  });
}

// Adds up what unfold() would have copied from each value.
template <class Real>
void fold(const Window& w, const Real* rows, Real* picture) {
  const int64_t each = terms(w);
  std::fill_n(picture, w.h * w.w * w.c, Real(0));
  each_run(w, [&](const Run& run) {
    const Real* from = rows + run.output * each + run.place * w.c;
    Real* to = picture + run.pixel * w.c;
    for (int64_t i = 0; i < run.count * w.c; ++i) to[i] += from[i];
  });
}

// Some pictures at a time.
struct Chunks {
  explicit Chunks(const Window& w)
      : window(w), most(std::clamp<int64_t>(kMostValues / std::max<int64_t>(1, w.oh * w.ow * terms(w)), 1, w.n)), count((w.n + most - 1) / most) {}

  // Calls work(first picture, number of pictures, space for the matrix of their windows).
  template <class Real, class Work>
  void call(int64_t chunk, const Work& work) const {
    const int64_t first = chunk * most, pictures = std::min(most, window.n - first), pixels = window.oh * window.ow;
    work(first, pictures, Matrix<Real>{scratch<Real>(most * pixels * terms(window)), pictures * pixels, terms(window)});
  }

  Window window;
  int64_t most, count;
};

// Calls work(picture) for each picture; `values`: how many it works on.
template <class Work>
void each_picture(const Window& w, int64_t values, const Work& work) {
  share_range(w.n, least_rows(values), [&](int64_t first, int64_t end) {
    for (int64_t n = first; n < end; ++n) work(n);
  });
}

template <class Real>
Matrix<Real> outputs_of(const Window& w, Matrix<Real> z, int64_t first, int64_t count) {
  const int64_t pixels = w.oh * w.ow;
  return {z.data + first * pixels * w.k, count * pixels, w.k};
}

template <class Real>
Real* input_of(const Window& w, Matrix<Real> x, int64_t picture) {
  return x.data + picture * w.h * w.w * w.c;
}

template <class Real>
void unfold_all(const Window& w, Matrix<Real> x, int64_t first, int64_t count, Matrix<Real> rows) {
  for (int64_t i = 0; i < count; ++i) unfold(w, input_of(w, x, first + i), rows.row(i * w.oh * w.ow));
}

}  // namespace

template <class Real>
void convolve(const Window& w, Matrix<Real> x, Matrix<Real> weights, Matrix<Real> z) {
  if (is_plain_product(w))
    return multiply(Matrix<Real>{x.data, w.n * w.h * w.w, w.c}, false, weights, true, outputs_of(w, z, 0, w.n));
  const Chunks chunks(w);
  share_out(chunks.count, [&](int64_t chunk) {
    chunks.call<Real>(chunk, [&](int64_t first, int64_t count, Matrix<Real> rows) {
      unfold_all(w, x, first, count, rows);
      multiply(rows, false, weights, true, outputs_of(w, z, first, count));
    });
  });
}

template <class Real>
void convolve_data_grad(const Window& w, Matrix<Real> dz, Matrix<Real> weights, Matrix<Real> dx) {
  if (is_plain_product(w))
    return multiply(outputs_of(w, dz, 0, w.n), false, weights, false, Matrix<Real>{dx.data, w.n * w.h * w.w, w.c});
  const Chunks chunks(w);
  share_out(chunks.count, [&](int64_t chunk) {
    chunks.call<Real>(chunk, [&](int64_t first, int64_t count, Matrix<Real> rows) {
      multiply(outputs_of(w, dz, first, count), false, weights, false, rows);
      for (int64_t i = 0; i < count; ++i) fold(w, rows.row(i * w.oh * w.ow), input_of(w, dx, first + i));
    });
  });
}

template <class Real>
void convolve_weight_grad(const Window& w, Matrix<Real> x, Matrix<Real> dz, Matrix<Real> dw) {
  const Chunks chunks(w);
  const int64_t parts = std::min<int64_t>(chunks.count, 16);  // not by the number of cores: the bits do not depend on it
  std::vector<Real> sums(static_cast<size_t>(parts * dw.size()));
  share_out(parts, [&](int64_t part) {
    const Matrix<Real> sum{sums.data() + part * dw.size(), dw.rows, dw.cols};
    const int64_t begin = chunks.count * part / parts;
    for (int64_t chunk = begin; chunk < chunks.count * (part + 1) / parts; ++chunk)
      chunks.call<Real>(chunk, [&](int64_t first, int64_t count, Matrix<Real> rows) {
        unfold_all(w, x, first, count, rows);
        multiply<Real>(outputs_of(w, dz, first, count), true, rows, false, sum, Real(1), chunk == begin ? Result::Replaces : Result::Adds);
      });
  });
  share_range(dw.size(), kLeastValues / parts, [&](int64_t first, int64_t end) {
    std::copy(sums.data() + first, sums.data() + end, dw.data + first);
    for (int64_t part = 1; part < parts; ++part)
      for (int64_t i = first; i < end; ++i) dw.data[i] += sums[static_cast<size_t>(part * dw.size() + i)];
  });
}

template <class Real>
void max_pool(const Window& w, Matrix<Real> x, Matrix<Real> y) {
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const Real* from = input_of(w, x, n);
    Real* to = outputs_of(w, y, n, 1).data;
    std::vector<bool> begun(static_cast<size_t>(w.oh * w.ow));
    each_covered(w, [&](int64_t output, int64_t pixel) {
      const Real* in = from + pixel * w.c;
      Real* out = to + output * w.c;
      if (!begun[static_cast<size_t>(output)]) std::copy_n(in, w.c, out);
      begun[static_cast<size_t>(output)] = true;
      for (int64_t c = 0; c < w.c; ++c) out[c] = in[c] > out[c] ? in[c] : out[c];
    });
  });
}

template <class Real>
void max_pool_grad(const Window& w, Matrix<Real> dy, Matrix<Real> x, Matrix<Real> y, Matrix<Real> dx) {
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const int64_t outputs = w.oh * w.ow * w.c;
    Real* const left = scratch<Real>(outputs);  // gradients whose maximum was not found yet
    const Real *from = input_of(w, x, n), *most = outputs_of(w, y, n, 1).data;
    Real* to = input_of(w, dx, n);
    std::fill_n(to, w.h * w.w * w.c, Real(0));
    std::copy_n(outputs_of(w, dy, n, 1).data, outputs, left);
    each_covered(w, [&](int64_t output, int64_t pixel) {
      const Real *in = from + pixel * w.c, *top = most + output * w.c;
      Real *grad = left + output * w.c, *sum = to + pixel * w.c;
      for (int64_t c = 0; c < w.c; ++c) {
        const bool takes = in[c] == top[c];
        sum[c] += takes ? grad[c] : Real(0);
        grad[c] = takes ? Real(0) : grad[c];
      }
    });
  });
}

namespace {

// 1 / the number of values under the window of each output pixel: padding is not counted.
template <class Real>
std::vector<Real> shares(const Window& w) {
  std::vector<Real> share(static_cast<size_t>(w.oh * w.ow));
  each_covered(w, [&](int64_t output, int64_t) { share[static_cast<size_t>(output)] += 1; });
  for (Real& s : share) s = 1 / s;
  return share;
}

}  // namespace

template <class Real>
void average_pool(const Window& w, Matrix<Real> x, Matrix<Real> y) {
  const std::vector<Real> share = shares<Real>(w);
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const Real* from = input_of(w, x, n);
    Real* to = outputs_of(w, y, n, 1).data;
    std::fill_n(to, w.oh * w.ow * w.c, Real(0));
    each_covered(w, [&](int64_t output, int64_t pixel) {
      for (int64_t c = 0; c < w.c; ++c) to[output * w.c + c] += from[pixel * w.c + c];
    });
    for (int64_t o = 0; o < w.oh * w.ow; ++o)
      for (int64_t c = 0; c < w.c; ++c) to[o * w.c + c] *= share[static_cast<size_t>(o)];
  });
}

template <class Real>
void average_pool_grad(const Window& w, Matrix<Real> dy, Matrix<Real> dx) {
  const std::vector<Real> share = shares<Real>(w);
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const Real* from = outputs_of(w, dy, n, 1).data;
    Real* to = input_of(w, dx, n);
    std::fill_n(to, w.h * w.w * w.c, Real(0));
    each_covered(w, [&](int64_t output, int64_t pixel) {
      for (int64_t c = 0; c < w.c; ++c)
        to[pixel * w.c + c] += from[output * w.c + c] * share[static_cast<size_t>(output)];
    });
  });
}

template <class Real>
void turn(const Window& w, Matrix<Real> x, Matrix<Real> y) {
  each_picture(w, w.h * w.w, [=](int64_t n) {
    const Real* from = x.data + n * w.h * w.w;
    Real* to = y.data + n * w.h * w.w;
    for (int64_t i = 0; i < w.h; ++i)
      for (int64_t j = 0; j < w.w; ++j) to[j * w.h + i] = from[i * w.w + j];
  });
}

#define WS_FOR(Real)                                                                                                   \
  template void convolve(const Window&, Matrix<Real>, Matrix<Real>, Matrix<Real>);                                     \
  template void convolve_data_grad(const Window&, Matrix<Real>, Matrix<Real>, Matrix<Real>);                           \
  template void convolve_weight_grad(const Window&, Matrix<Real>, Matrix<Real>, Matrix<Real>);                         \
  template void max_pool(const Window&, Matrix<Real>, Matrix<Real>);                                                   \
  template void max_pool_grad(const Window&, Matrix<Real>, Matrix<Real>, Matrix<Real>, Matrix<Real>);                  \
  template void average_pool(const Window&, Matrix<Real>, Matrix<Real>);                                               \
  template void average_pool_grad(const Window&, Matrix<Real>, Matrix<Real>);                                          \
  template void turn(const Window&, Matrix<Real>, Matrix<Real>);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
