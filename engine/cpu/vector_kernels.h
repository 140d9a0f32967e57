// The inner loops of matrix products and of pools. Each vector set compiles them in a source of its own, with its own instructions. They call
// no function of the standard library: the linker keeps one copy of such a function, and that copy may need AVX-512.
#pragma once
#include <cstdint>
#include <utility>

namespace ws::cpu {

// Some columns of a product. a(i, p) is a[i·a_row + segment·a_segment + (p in the segment)·a_term]; the rows are groups of equal
// size, as many as `groups`. b is packed: one row of whole vectors for each p.
template <class Real>
struct Panel {
  int64_t groups = 1, rows = 0, segments = 1, terms = 0, cols = 0;
  const Real* a = nullptr;
  int64_t a_group = 0, a_row = 0, a_segment = 0, a_term = 1;
  bool a_is_packed = false;  // by pack_rows
  const Real* b = nullptr;
  int64_t b_term = 0;
  Real factor = 1, kept = 0;  // c = factor·(sum of the products) + kept·c
  Real* c = nullptr;
  int64_t c_group = 0, c_row = 0;
};

// The pixels of a picture under a window: `row` values from one row of pixels to the next.
struct Pool {
  int64_t row = 0, rows = 0, cols = 0, channels = 0;
};

template <class Real>
struct Kernels {
  int64_t lanes = 0;      // values of a vector
  int64_t most_rows = 0;  // of a tile, which stays in registers
  void (*multiply)(const Panel<Real>& panel) = nullptr;
  // to[p][j] = b[p·b_term + j·b_col], and zero behind `cols` up to `width`, which is whole vectors.
  void (*pack_columns)(const Real* b, int64_t b_term, int64_t b_col, int64_t terms, int64_t cols, int64_t width, Real* to) = nullptr;
  // The rows of a tile side by side, for multiply().
  void (*pack_rows)(const Real* a, int64_t a_row, int64_t a_term, int64_t rows, int64_t terms, Real* to) = nullptr;
  // The largest value of each channel.
  void (*pool)(const Pool& pool, const Real* in, Real* most) = nullptr;
  // Adds the gradient of each channel to the first value that is its largest.
  void (*pool_grad)(const Pool& pool, const Real* in, const Real* most, const Real* gradient, Real* sum) = nullptr;
};

constexpr int64_t kMostVectors = 3;  // of a row of a tile

template <class Real>
const Kernels<Real>& avx2_kernels();
template <class Real>
const Kernels<Real>& avx512_kernels();

// kBytes: size of a vector. kRows: the accumulators, kRows × kMostVectors, leave registers for the operands.
template <class Real, int kBytes, int kRows>
struct VectorKernels {
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(Real));
  typedef Real Vector __attribute__((vector_size(kBytes)));
  typedef Vector Aliasing __attribute__((may_alias));
  typedef Aliasing Unaligned __attribute__((aligned(sizeof(Real))));

  static Vector load(const Real* at) { return *reinterpret_cast<const Unaligned*>(at); }
  static void store(Real* at, Vector v) { *reinterpret_cast<Unaligned*>(at) = v; }

  // Calls work.template operator()<I>() for each I: unrolled before values are assigned to registers.
  template <class Work, int... I>
  __attribute__((always_inline)) static void unroll(std::integer_sequence<int, I...>, const Work& work) {
    (work.template operator()<I>(), ...);
  }
  template <int kCount, class Work>
  __attribute__((always_inline)) static void unroll(const Work& work) {
    unroll(std::make_integer_sequence<int, kCount>(), work);
  }

  // kAdjacent: the rows of a lie side by side.
  template <bool kAdjacent, int R, int V>
  static void tile(const Panel<Real>& panel, const Real* a, int64_t a_term, Real* c) {
    Vector sums[R * V];
    unroll<R * V>([&]<int I>() { sums[I] = Vector{}; });
    const int64_t row = kAdjacent ? 1 : panel.a_row, b_term = panel.b_term, terms = panel.terms;
    const Real* b = panel.b;
    for (int64_t segment = 0; segment < panel.segments; ++segment) {
      constexpr int kThirds = (R + 2) / 3;
      const Real* thirds[kThirds];  // a pointer for each row would need more registers than there are
      unroll<kThirds>([&]<int I>() { thirds[I] = a + segment * panel.a_segment + 3 * I * row; });
      for (int64_t p = 0; p < terms; ++p, b += b_term) {
        Vector bs[V];
        unroll<V>([&]<int I>() { bs[I] = load(b + I * kLanes); });
        unroll<R>([&]<int I>() {
          const Real value = thirds[I / 3][I % 3 * row];
          unroll<V>([&]<int J>() { sums[I * V + J] += value * bs[J]; });
        });
        unroll<kThirds>([&]<int I>() { thirds[I] += a_term; });
      }
    }
    const Real factor = panel.factor, kept = panel.kept;
    const int64_t c_row = panel.c_row;
    const auto place = [&](int i) { return c + i / V * c_row + i % V * kLanes; };
    if (panel.cols < V * kLanes) {
      Real values[R * V * kLanes];
      unroll<R * V>([&]<int I>() { store(values + I * kLanes, sums[I]); });
      write_part(panel, values, R, V * kLanes, c);
    } else if (kept == 0) {
      unroll<R * V>([&]<int I>() { store(place(I), factor * sums[I]); });
    } else {
      unroll<R * V>([&]<int I>() { store(place(I), factor * sums[I] + kept * load(place(I))); });
    }
  }

  // Copies fewer values than a vector has.
  template <int kSize = kLanes / 2>
  static void copy_part(const Real* from, int64_t count, Real* to) {
    if (count & kSize) __builtin_memcpy(to, from, kSize * sizeof(Real));
    const int64_t done = count & kSize;
    if constexpr (kSize > 1) copy_part<kSize / 2>(from + done, count - done, to + done);
  }

  __attribute__((noinline)) static void write_part(const Panel<Real>& panel, const Real* values, int64_t rows, int64_t width, Real* c) {
    const Real factor = panel.factor, kept = panel.kept;
    const auto result = [&](const Real* sum, const Real* old) { return kept == 0 ? factor * load(sum) : factor * load(sum) + kept * load(old); };
    const int64_t whole = panel.cols / kLanes * kLanes, rest = panel.cols - whole;
    for (int64_t r = 0; r < rows; ++r, values += width, c += panel.c_row) {
      for (int64_t j = 0; j < whole; j += kLanes) store(c + j, result(values + j, c + j));
      if (rest == 0) continue;
      Real part[kLanes] = {};
      if (kept != 0) copy_part(c + whole, rest, part);
      store(part, result(values + whole, part));
      copy_part(part, rest, c + whole);
    }
  }

  using Tile = void (*)(const Panel<Real>&, const Real*, int64_t, Real*);
  struct Tiles {
    Tile of[kMostVectors][kRows];
  };
  template <bool kAdjacent, int V, int... R>
  static constexpr void fill(Tiles& tiles, std::integer_sequence<int, R...>) {
    ((tiles.of[V - 1][R] = &tile<kAdjacent, R + 1, V>), ...);
  }
  template <bool kAdjacent>
  static constexpr Tiles tiles() {
    Tiles all{};
    fill<kAdjacent, 1>(all, std::make_integer_sequence<int, kRows>());
    fill<kAdjacent, 2>(all, std::make_integer_sequence<int, kRows>());
    fill<kAdjacent, 3>(all, std::make_integer_sequence<int, kRows>());
    return all;
  }

  // Calls work(first row, number of rows) for tiles of nearly equal size.
  template <class Work>
  static void each_tile(int64_t rows, const Work& work) {
    const int64_t count = (rows + kRows - 1) / kRows;
    for (int64_t i = 0; i < count; ++i) work(rows * i / count, rows * (i + 1) / count - rows * i / count);
  }

  static void multiply(const Panel<Real>& panel) {
    static constexpr Tiles kApart = tiles<false>(), kSideBySide = tiles<true>();
    const bool adjacent = panel.a_is_packed || panel.a_row == 1;
    const auto& choice = (adjacent ? kSideBySide : kApart).of[(panel.cols + kLanes - 1) / kLanes - 1];
    for (int64_t group = 0; group < panel.groups; ++group)
      each_tile(panel.rows, [&](int64_t first, int64_t count) {
        const Real* a = panel.a + group * panel.a_group + first * (panel.a_is_packed ? panel.terms : panel.a_row);
        choice[count - 1](panel, a, panel.a_is_packed ? count : panel.a_term, panel.c + group * panel.c_group + first * panel.c_row);
      });
  }

  template <int R>
  static void pack_tile(const Real* a, int64_t a_row, int64_t a_term, int64_t terms, Real* to) {
    for (int64_t p = 0; p < terms; ++p, a += a_term, to += R)
      for (int r = 0; r < R; ++r) to[r] = a[r * a_row];
  }

  static void pack_rows(const Real* a, int64_t a_row, int64_t a_term, int64_t rows, int64_t terms, Real* to) {
    each_tile(rows, [&](int64_t first, int64_t count) {
      const Real* from = a + first * a_row;
      Real* place = to + first * terms;
      if (count == kRows && a_row == 1) return pack_tile<kRows>(from, 1, a_term, terms, place);
      for (int64_t p = 0; p < terms; ++p)
        for (int64_t r = 0; r < count; ++r) place[p * count + r] = from[p * a_term + r * a_row];
    });
  }

  // Exchanges rows and columns of kLanes vectors, in steps that exchange blocks of kStep values.
  template <int kStep, int... E>
  __attribute__((always_inline)) static void exchange(Vector* v, std::integer_sequence<int, E...>) {
    unroll<kLanes / 2>([&]<int I>() {
      constexpr int kAt = I / kStep * 2 * kStep + I % kStep;
      const Vector low = v[kAt], high = v[kAt + kStep];
      v[kAt] = __builtin_shufflevector(low, high, ((E & kStep) ? kLanes + E - kStep : E)...);
      v[kAt + kStep] = __builtin_shufflevector(low, high, ((E & kStep) ? kLanes + E : E + kStep)...);
    });
  }
  __attribute__((always_inline)) static void transpose(Vector* v) {
    constexpr auto each = std::make_integer_sequence<int, kLanes>();
    exchange<1>(v, each);
    if constexpr (kLanes > 2) exchange<2>(v, each);
    if constexpr (kLanes > 4) exchange<4>(v, each);
    if constexpr (kLanes > 8) exchange<8>(v, each);
  }

  static void pack_one_by_one(const Real* b, int64_t b_term, int64_t b_col, int64_t terms, int64_t cols, int64_t width, Real* to) {
    for (int64_t p = 0; p < terms; ++p)
      for (int64_t j = 0; j < cols; ++j) to[p * width + j] = b[p * b_term + j * b_col];
  }

  static void pack_columns(const Real* b, int64_t b_term, int64_t b_col, int64_t terms, int64_t cols, int64_t width, Real* to) {
    const int64_t whole = cols / kLanes * kLanes, rest = cols - whole;
    for (int64_t p = 0; rest > 0 && p < terms; ++p) store(to + p * width + whole, Vector{});
    if (b_col == 1) {
      for (int64_t p = 0; p < terms; ++p) {
        for (int64_t j = 0; j < whole; j += kLanes) store(to + p * width + j, load(b + p * b_term + j));
        if (rest > 0) copy_part(b + p * b_term + whole, rest, to + p * width + whole);
      }
      return;
    }
    const int64_t end = b_term == 1 ? terms / kLanes * kLanes : 0;
    for (int64_t j = 0; j < whole; j += kLanes)
      for (int64_t p = 0; p < end; p += kLanes) {
        Vector v[kLanes];
        unroll<kLanes>([&]<int I>() { v[I] = load(b + p + (j + I) * b_col); });
        transpose(v);
        unroll<kLanes>([&]<int I>() { store(to + (p + I) * width + j, v[I]); });
      }
    pack_one_by_one(b + end * b_term, b_term, b_col, terms - end, whole, width, to + end * width);
    pack_one_by_one(b + whole * b_col, b_term, b_col, terms, rest, width, to + whole);
  }

  template <class Visit>
  __attribute__((always_inline)) static void each_pixel(const Pool& pool, int64_t channel, const Visit& visit) {
    for (int64_t y = 0; y < pool.rows; ++y)
      for (int64_t x = 0; x < pool.cols; ++x) visit(y * pool.row + x * pool.channels + channel);
  }

  static void largest(const Pool& pool, const Real* in, Real* most) {
    int64_t c = 0;
    for (; c + kLanes <= pool.channels; c += kLanes) {
      Vector top = load(in + c);
      each_pixel(pool, c, [&](int64_t at) {
        const Vector value = load(in + at);
        top = value > top ? value : top;
      });
      store(most + c, top);
    }
    for (; c < pool.channels; ++c) {
      Real top = in[c];
      each_pixel(pool, c, [&](int64_t at) { top = in[at] > top ? in[at] : top; });
      most[c] = top;
    }
  }

  static void give_gradient(const Pool& pool, const Real* in, const Real* most, const Real* gradient, Real* sum) {
    int64_t c = 0;
    for (; c + kLanes <= pool.channels; c += kLanes) {
      const Vector top = load(most + c);
      Vector left = load(gradient + c);  // zero where the largest value was found
      each_pixel(pool, c, [&](int64_t at) {
        const auto takes = load(in + at) == top;
        store(sum + at, load(sum + at) + (takes ? left : Vector{}));
        left = takes ? Vector{} : left;
      });
    }
    for (; c < pool.channels; ++c) {
      Real left = gradient[c];
      each_pixel(pool, c, [&](int64_t at) {
        if (in[at] != most[c]) return;
        sum[at] += left;
        left = 0;
      });
    }
  }

  static constexpr Kernels<Real> kAll{kLanes, kRows, &multiply, &pack_columns, &pack_rows, &largest, &give_gradient};
};

}  // namespace ws::cpu
