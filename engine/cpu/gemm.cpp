#include "engine/cpu/gemm.h"

#include <algorithm>
#include <memory>

namespace ws::cpu {
namespace {

// A panel of b stays in the first cache, the rows of a that it meets in the second.
constexpr int64_t kMostTerms = 224, kMostRows = 448;

template <class Real>
struct Space {
  alignas(64) Real rows[kMostRows * kMostTerms];
  alignas(64) Real columns[kMostTerms * kMostVectors * 64 / sizeof(Real)];
};

template <class Real>
Space<Real>& space() {
  thread_local const auto own = std::make_unique_for_overwrite<Space<Real>>();
  return *own;
}

int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Calls work(first, count) for parts of nearly equal size, none larger than `most`.
template <class Work>
void each_part(int64_t size, int64_t most, const Work& work) {
  const int64_t parts = ceiling(size, most);
  for (int64_t i = 0; i < parts; ++i) work(size * i / parts, size * (i + 1) / parts - size * i / parts);
}

// Some terms of some rows, by all columns.
template <class Real>
void multiply_rows(const Product<Real>& p, const Kernels<Real>& kernels) {
  const int64_t vectors = ceiling(p.cols, kernels.lanes);
  Panel<Real> panel;
  panel.rows = p.rows, panel.terms = p.terms, panel.a = p.a, panel.a_row = p.a_row, panel.a_term = p.a_term;
  panel.factor = p.factor, panel.kept = p.kept, panel.c_row = p.c_row;
  if (p.a_term != 1 && vectors > kMostVectors) {
    kernels.pack_rows(p.a, p.a_row, p.a_term, p.rows, p.terms, space<Real>().rows);
    panel.a = space<Real>().rows, panel.a_is_packed = true;
  }
  panel.b = space<Real>().columns;
  each_part(vectors, kMostVectors, [&](int64_t first, int64_t count) {
    const int64_t col = first * kernels.lanes;
    panel.b_term = count * kernels.lanes, panel.cols = std::min(panel.b_term, p.cols - col), panel.c = p.c + col;
    kernels.pack_columns(p.b + col * p.b_col, p.b_term, p.b_col, p.terms, panel.cols, panel.b_term, space<Real>().columns);
    kernels.multiply(panel);
  });
}

template <class Real>
void multiply_block(const Product<Real>& p, const Kernels<Real>& kernels) {
  each_part(std::max<int64_t>(1, p.terms), kMostTerms, [&](int64_t first, int64_t terms) {
    each_part(p.rows, kMostRows, [&](int64_t row, int64_t rows) {
      Product<Real> part = p;
      part.rows = rows, part.terms = std::min(terms, p.terms);
      part.a += row * p.a_row + first * p.a_term, part.b += first * p.b_term, part.c += row * p.c_row;
      if (first > 0) part.kept = 1;
      multiply_rows(part, kernels);
    });
  });
}

// The blocks of a result that cores compute at once: `down` by `across` of them.
struct Blocks {
  int64_t down = 1, across = 1;
};

template <class Real>
Blocks blocks_of(const Product<Real>& p, const Kernels<Real>& kernels, int64_t threads) {
  constexpr double kLeastWork = 5e5;  // multiplications of a block
  Blocks best;
  const double worth = static_cast<double>(p.rows) * static_cast<double>(p.cols) * static_cast<double>(p.terms) / kLeastWork;
  const auto wanted = static_cast<int64_t>(std::min(worth, static_cast<double>(threads)));
  if (wanted < 2) return best;
  const int64_t vectors = ceiling(p.cols, kernels.lanes);
  double least = 0;
  for (int64_t down = 1; down <= std::min(wanted, p.rows); ++down) {
    const int64_t across = std::min(wanted / down, vectors);
    // What a block costs: vectors to multiply, to pack from b, and to read from a.
    const auto rows = static_cast<double>(ceiling(p.rows, down)), columns = static_cast<double>(ceiling(vectors, across));
    const double cost = rows * columns + 8 * columns + rows;
    if (down > 1 && cost >= least) continue;
    least = cost, best = {down, across};
  }
  return best;
}

template <class Real>
const Kernels<Real>& baseline_kernels() {
  return VectorKernels<Real, 16, 3>::kAll;
}

}  // namespace

bool processor_has(VectorSet vectors) {
#ifdef __x86_64__
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (vectors == VectorSet::Avx2) return avx2;
  if (vectors == VectorSet::Avx512)
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw");
#endif
  return vectors == VectorSet::Baseline;
}

VectorSet best_vectors() {
  static const VectorSet best = [] {
    if (processor_has(VectorSet::Avx512)) return VectorSet::Avx512;
    return processor_has(VectorSet::Avx2) ? VectorSet::Avx2 : VectorSet::Baseline;
  }();
  return best;
}

template <class Real>
const Kernels<Real>& kernels_of(VectorSet vectors) {
#ifdef __x86_64__
  if (vectors == VectorSet::Avx512) return avx512_kernels<Real>();
  if (vectors == VectorSet::Avx2) return avx2_kernels<Real>();
#endif
  return baseline_kernels<Real>();
}

template <class Real>
const Kernels<Real>& best_kernels() {
  static const Kernels<Real>& best = kernels_of<Real>(best_vectors());
  return best;
}

template <class Real>
void gemm(const Product<Real>& p, const Kernels<Real>& kernels, int64_t threads) {
  if (p.rows == 0 || p.cols == 0) return;
  const Blocks blocks = blocks_of(p, kernels, threads);
  const int64_t vectors = ceiling(p.cols, kernels.lanes);
  share_out(blocks.down * blocks.across, [&](int64_t i) {
    const int64_t down = i / blocks.across, across = i % blocks.across;
    const int64_t row = p.rows * down / blocks.down, col = vectors * across / blocks.across * kernels.lanes;
    const int64_t end = std::min(p.cols, vectors * (across + 1) / blocks.across * kernels.lanes);
    Product<Real> block = p;
    block.rows = p.rows * (down + 1) / blocks.down - row, block.cols = end - col;
    block.a += row * p.a_row, block.b += col * p.b_col, block.c += row * p.c_row + col;
    multiply_block(block, kernels);
  });
}

#define WS_FOR(Real)                                            \
  template const Kernels<Real>& kernels_of<Real>(VectorSet);    \
  template const Kernels<Real>& best_kernels<Real>();           \
  template void gemm(const Product<Real>&, const Kernels<Real>&, int64_t);
WS_FOR(float)
WS_FOR(double)
#undef WS_FOR

}  // namespace ws::cpu
