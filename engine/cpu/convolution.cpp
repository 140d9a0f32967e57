#include "engine/cpu/convolution.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/cpu/cores.h"
#include "engine/cpu/gemm.h"

namespace ws::cpu {
namespace {

int64_t terms(const Window& w) { return w.kh * w.kw * w.c; }

// The pixels of a picture that the window of an output pixel covers.
struct Covered {
  int64_t output = 0, top = 0, bottom = 0, left = 0, right = 0;

  Pool pool(const Window& w) const { return {w.w * w.c, bottom - top, right - left, w.c}; }
  int64_t first(const Window& w) const { return (top * w.w + left) * w.c; }
  // Calls visit(input pixel).
  template <class Visit>
  void each(int64_t width, const Visit& visit) const {
    for (int64_t y = top; y < bottom; ++y)
      for (int64_t x = left; x < right; ++x) visit(y * width + x);
  }
};

template <class Visit>
void each_window(const Window& w, const Visit& visit) {
  for (int64_t oy = 0; oy < w.oh; ++oy) {
    const int64_t y = oy * w.stride - w.pad, top = std::max<int64_t>(0, y), bottom = std::min(w.h, y + w.kh);
    for (int64_t ox = 0; ox < w.ow; ++ox) {
      const int64_t x = ox * w.stride - w.pad;
      visit(Covered{oy * w.ow + ox, top, bottom, std::max<int64_t>(0, x), std::min(w.w, x + w.kw)});
    }
  }
}

// Calls visit(output pixel, input pixel) for each pixel that a window covers.
template <class Visit>
void each_covered(const Window& w, const Visit& visit) {
  each_window(w, [&](const Covered& window) { window.each(w.w, [&](int64_t pixel) { visit(window.output, pixel); }); });
}

// A picture among zeros: its pixels begin at (top, left), `step` pixels after each other.
struct Frame {
  int64_t rows = 0, cols = 0, top = 0, left = 0, step = 1;

  template <class Real>
  Real* clear(int64_t channels) const {
    Real* const space = scratch<Real>(rows * cols * channels);
    std::fill_n(space, rows * cols * channels, Real(0));
    return space;
  }

  // Returns the frame around the picture of h × w pixels: in `space`, which was cleared, or the picture itself if nothing is around it.
  template <class Real>
  const Real* around(const Real* picture, int64_t h, int64_t w, int64_t channels, Real* space) const {
    if (rows == h && cols == w && step == 1) return picture;
    const int64_t first = left < 0 ? (step - 1 - left) / step : 0, end = std::min(w, (cols - left + step - 1) / step);
    for (int64_t y = 0; y < h; ++y) {
      const int64_t row = top + y * step;
      if (row < 0 || row >= rows || first >= end) continue;
      const Real* from = picture + (y * w + first) * channels;
      Real* to = space + (row * cols + left + first * step) * channels;
      if (step == 1) std::copy_n(from, (end - first) * channels, to);
      for (int64_t x = first; step > 1 && x < end; ++x, from += channels, to += step * channels) std::copy_n(from, channels, to);
    }
    return space;
  }
};

// A matrix b in packed panels, which several threads read.
template <class Real>
class Columns {
 public:
  Columns(int64_t rows, int64_t cols) : cols_(cols), rows_(rows), lines_(static_cast<size_t>(rows * panels() * width()) * sizeof(Real) / sizeof(Line)) {}

  // Rows from `first` on: row p, column j is b[p·b_term + j·b_col].
  void pack(int64_t first, int64_t count, const Real* b, int64_t b_term, int64_t b_col) {
    for (int64_t i = 0; i < panels(); ++i)
      kernels_.pack_columns(b + i * width() * b_col, b_term, b_col, count, columns_of(i), width(), data(i) + first * width());
  }
  void multiply(Panel<Real> panel) const {
    panel.b_term = width();
    for (int64_t i = 0; i < panels(); ++i, panel.c += width()) {
      panel.b = data(i), panel.cols = columns_of(i);
      kernels_.multiply(panel);
    }
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  int64_t vectors() const { return (cols_ + kernels_.lanes - 1) / kernels_.lanes; }
  int64_t panels() const { return (vectors() + kMostVectors - 1) / kMostVectors; }
  int64_t width() const { return (vectors() + panels() - 1) / panels() * kernels_.lanes; }
  int64_t columns_of(int64_t panel) const { return std::min(width(), cols_ - panel * width()); }
  const Real* data(int64_t panel) const { return reinterpret_cast<const Real*>(lines_.data()) + panel * rows_ * width(); }
  Real* data(int64_t panel) { return reinterpret_cast<Real*>(lines_.data()) + panel * rows_ * width(); }

  const Kernels<Real>& kernels_ = best_kernels<Real>();
  int64_t cols_, rows_;
  std::vector<Line> lines_;
};

// Calls work(first, end) for ranges of pictures.
template <class Work>
void share_pictures(const Window& w, const Work& work) {
  constexpr int64_t kLeastWork = 500'000;  // multiplications
  share_range(w.n, kLeastWork / std::max<int64_t>(1, w.oh * w.ow * w.k * terms(w)) + 1, work);
}

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

Frame padded(const Window& w) { return {w.h + 2 * w.pad, w.w + 2 * w.pad, w.pad, w.pad, 1}; }

}  // namespace

// Row ox of a group is the window of output pixel (oy, ox) in the padded picture: its rows are segments. Nothing is copied out of it.
template <class Real>
void convolve(const Window& w, Matrix<Real> x, Matrix<Real> weights, Matrix<Real> z) {
  Columns<Real> columns(terms(w), w.k);
  columns.pack(0, terms(w), weights.data, 1, terms(w));
  share_pictures(w, [&](int64_t first, int64_t end) {
    const Frame frame = padded(w);
    Real* const space = frame.clear<Real>(w.c);
    Panel<Real> panel;
    panel.groups = w.oh, panel.rows = w.ow, panel.segments = w.kh, panel.terms = w.kw * w.c;
    panel.a_group = w.stride * frame.cols * w.c, panel.a_row = w.stride * w.c, panel.a_segment = frame.cols * w.c;
    panel.c_group = w.ow * w.k, panel.c_row = w.k;
    for (int64_t n = first; n < end; ++n) {
      panel.a = frame.around(input_of(w, x, n), w.h, w.w, w.c, space), panel.c = outputs_of(w, z, n, 1).data;
      columns.multiply(panel);
    }
  });
}

// A convolution of the gradient, with zeros between its pixels if the stride is larger than 1, and the weights turned around.
template <class Real>
void convolve_data_grad(const Window& w, Matrix<Real> dz, Matrix<Real> weights, Matrix<Real> dx) {
  Columns<Real> columns(w.kh * w.kw * w.k, w.c);
  for (int64_t i = 0; i < w.kh * w.kw; ++i) columns.pack(i * w.k, w.k, weights.data + (w.kh * w.kw - 1 - i) * w.c, terms(w), 1);
  share_pictures(w, [&](int64_t first, int64_t end) {
    const Frame frame{w.h + w.kh - 1, w.w + w.kw - 1, w.kh - 1 - w.pad, w.kw - 1 - w.pad, w.stride};
    Real* const space = frame.clear<Real>(w.k);
    Panel<Real> panel;
    panel.groups = w.h, panel.rows = w.w, panel.segments = w.kh, panel.terms = w.kw * w.k;
    panel.a_group = panel.a_segment = frame.cols * w.k, panel.a_row = w.k;
    panel.c_group = w.w * w.c, panel.c_row = w.c;
    for (int64_t n = first; n < end; ++n) {
      panel.a = frame.around(outputs_of(w, dz, n, 1).data, w.oh, w.ow, w.k, space), panel.c = input_of(w, dx, n);
      columns.multiply(panel);
    }
  });
}

namespace {

// Adds a picture's part to the gradient of the weights, turned: one row for each value of a window, one column for each output channel.
template <class Real>
void add_weight_grad(const Window& w, int64_t frame_cols, const Real* frame, const Real* dz, Columns<Real>& columns, Real* sum) {
  Panel<Real> panel;
  panel.groups = w.kh, panel.rows = w.kw * w.c, panel.segments = w.oh, panel.terms = w.ow;
  panel.a = frame, panel.a_group = frame_cols * w.c, panel.a_row = 1;
  panel.a_segment = w.stride * frame_cols * w.c, panel.a_term = w.stride * w.c;
  panel.kept = 1, panel.c = sum, panel.c_group = w.kw * w.c * w.k, panel.c_row = w.k;
  columns.pack(0, w.oh * w.ow, dz, w.k, 1);
  columns.multiply(panel);
}

}  // namespace

template <class Real>
void convolve_weight_grad(const Window& w, Matrix<Real> x, Matrix<Real> dz, Matrix<Real> dw) {
  const int64_t parts = std::min<int64_t>(w.n, 16);  // not by the number of cores: the bits do not depend on it
  std::vector<Real> sums(static_cast<size_t>(parts * dw.size()));
  share_out(parts, [&](int64_t part) {
    const Frame frame = padded(w);
    Real* const space = frame.clear<Real>(w.c);
    Columns<Real> columns(w.oh * w.ow, w.k);
    for (int64_t n = w.n * part / parts; n < w.n * (part + 1) / parts; ++n)
      add_weight_grad(w, frame.cols, frame.around(input_of(w, x, n), w.h, w.w, w.c, space), outputs_of(w, dz, n, 1).data, columns,
                      sums.data() + part * dw.size());
  });
  const int64_t each = terms(w);
  share_range(each, least_rows(parts * w.k), [&](int64_t first, int64_t end) {
    for (int64_t part = 1; part < parts; ++part)
      for (int64_t i = first * w.k; i < end * w.k; ++i) sums[static_cast<size_t>(i)] += sums[static_cast<size_t>(part * dw.size() + i)];
    for (int64_t i = first; i < end; ++i)
      for (int64_t k = 0; k < w.k; ++k) dw.data[k * each + i] = sums[static_cast<size_t>(i * w.k + k)];
  });
}

template <class Real>
void max_pool(const Window& w, Matrix<Real> x, Matrix<Real> y) {
  const Kernels<Real>& kernels = best_kernels<Real>();
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const Real* from = input_of(w, x, n);
    Real* to = outputs_of(w, y, n, 1).data;
    each_window(w, [&](const Covered& window) { kernels.pool(window.pool(w), from + window.first(w), to + window.output * w.c); });
  });
}

template <class Real>
void max_pool_grad(const Window& w, Matrix<Real> dy, Matrix<Real> x, Matrix<Real> y, Matrix<Real> dx) {
  const Kernels<Real>& kernels = best_kernels<Real>();
  each_picture(w, w.h * w.w * w.c, [&](int64_t n) {
    const Real *from = input_of(w, x, n), *most = outputs_of(w, y, n, 1).data, *gradient = outputs_of(w, dy, n, 1).data;
    Real* to = input_of(w, dx, n);
    std::fill_n(to, w.h * w.w * w.c, Real(0));
    each_window(w, [&](const Covered& window) {
      const int64_t output = window.output * w.c;
      kernels.pool_grad(window.pool(w), from + window.first(w), most + output, gradient + output, to + window.first(w));
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
