// Own matrix products for the shapes of small networks, and the weight gradient with the optimizer inside. Included by one
// .cu file for each kind of number.
#pragma once
#include "engine/cuda/kernels/optimizer.cuh"
#include "engine/cuda/kernels/small_gemm.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

using Tile16 = TileShape<16, 16, 1, 1, 8, 128, 128, 4>;
using Tile32x16 = TileShape<32, 16, 1, 1, 8, 128, 128, 4>;
using Tile32 = TileShape<32, 32, 1, 1, 8, 128, 128, 3>;
using Tile64 = TileShape<64, 64, 2, 2, 2, 32, 64, 4>;
using UpdateTile32 = TileShape<32, 32, 1, 1, 8, 64, 128, 3>;  // k is the batch: short
using UpdateTile64 = TileShape<64, 64, 2, 2, 2, 32, 32, 3>;

// ---- c = epilogue(op(a)·op(b)) ----------------------------------------------------------------------------------------------
struct GemmArguments {
  Tensor a, b, c, bias, saved, bias_grad;
  Epilogue epilogue;
  Activation activation;
  int m, n, k, tiles_n;
  bool vector_a, vector_b, whole_quads;
};

__device__ __forceinline__ Operand operand(const Tensor& t, bool vector) {
  return {resolve(t).data, static_cast<int>(t.rows), static_cast<int>(t.cols), vector};
}

__device__ __forceinline__ void finish_quad(const GemmArguments& g, int row, int col, Pack<4> v) {
  const int count = min(4, g.n - col);
  if (row >= g.m || count <= 0) return;
  const int64_t at = static_cast<int64_t>(row) * g.n + col;
  if (g.bias) {
    const Pack<4> bias = load_some<4>(resolve(g.bias), col, count, g.whole_quads);
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] += bias.v[j];
  }
  if (g.epilogue == Epilogue::BiasActivate) {
    if (g.saved) store_some<4>(resolve(g.saved), at, v, count, g.whole_quads);
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] = activated(g.activation, v.v[j]);
  } else if (g.epilogue == Epilogue::ActivateGrad) {
    const Pack<4> saved = load_some<4>(resolve(g.saved), at, count, g.whole_quads);
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] *= activation_slope(g.activation, saved.v[j]);
  }
  store_some<4>(resolve(g.c), at, v, count, g.whole_quads);
}

template <Math M, bool TA, bool TB, class Shape>
__global__ __launch_bounds__(Shape::threads) void small_gemm_kernel(const __grid_constant__ GemmArguments g) {
  using Product = TileProduct<M, TA, TB, Shape>;
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  const int row0 = blockIdx.x / g.tiles_n * Shape::BM, col0 = blockIdx.x % g.tiles_n * Shape::BN;
  Product product(memory);
  ColumnSums<Product> columns;
  const bool sum_columns = TA && g.bias_grad && row0 == 0;
  product.run(operand(g.a, g.vector_a), operand(g.b, g.vector_b), row0, col0, g.k, [&](const auto* b, int k0) {
    if constexpr (TA)
      if (sum_columns) columns(b, k0);
  });
  product.meet();
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    if (q.x < Shape::BM) finish_quad(g, row0 + q.x, col0 + q.y, product.quad(q.x, q.y));
  }
  if constexpr (TA) {
    if (!sum_columns) return;
    const float db = columns.joined(reinterpret_cast<float*>(memory));
    const int col = col0 + threadIdx.x;
    if (threadIdx.x < Shape::BN && col < g.n) store(resolve(g.bias_grad), col, db);
  }
}

template <Math M, bool TA, bool TB, class Shape>
void launch_gemm(Queue queue, GemmArguments g) {
  const auto kernel = small_gemm_kernel<M, TA, TB, Shape>;
  const size_t shared = TileProduct<M, TA, TB, Shape>::shared_bytes(g.k);
  allow_shared(kernel, shared);
  g.tiles_n = static_cast<int>(ceil_div(g.n, Shape::BN));
  launch(queue, kernel, ceil_div(g.m, Shape::BM) * g.tiles_n, Shape::threads, shared, g);
}

template <Math M, bool TA, bool TB>
void launch_shaped(Queue queue, const GemmArguments& g) {
  switch (small_tile(g.m, g.n)) {
    case SmallTile::T64: return launch_gemm<M, TA, TB, Tile64>(queue, g);
    case SmallTile::T32: return launch_gemm<M, TA, TB, Tile32>(queue, g);
    case SmallTile::T32x16: return launch_gemm<M, TA, TB, Tile32x16>(queue, g);
    case SmallTile::T16: return launch_gemm<M, TA, TB, Tile16>(queue, g);
  }
}

inline GemmArguments gemm_arguments(const Product& p) {
  GemmArguments g{p.a, p.b, p.c, p.bias, p.saved, p.bias_grad, p.epilogue, p.activation};
  g.m = static_cast<int>(p.c.rows);
  g.n = static_cast<int>(p.c.cols);
  g.k = static_cast<int>(p.transpose_a ? p.a.rows : p.a.cols);
  g.vector_a = packs(p.a, 16 / size_of(p.a.type));
  g.vector_b = packs(p.b, 16 / size_of(p.b.type));
  g.whole_quads = packs(p.c, 4) && packs(p.saved, 4) && packs(p.bias, 4);
  return g;
}

template <Math M>
void small_gemm_of(Queue queue, const Product& p) {
  const GemmArguments g = gemm_arguments(p);
  if (p.transpose_a) return launch_shaped<M, true, false>(queue, g);
  if (p.transpose_b) return launch_shaped<M, false, true>(queue, g);
  launch_shaped<M, false, false>(queue, g);
}

// ---- w ← optimizer(w, aᵀ·dz) --------------------------------------------------------------------------------------------------
struct UpdateProblem {
  Tensor a, dz;
  ParamRef w, bias;
  int first_tile, tiles_n;
  bool vector_a, vector_b, whole_quads;
};
struct UpdateArguments {
  UpdateProblem problems[kMaxLayerUpdates];
  int count;
  OptimizerRef optimizer;
};

__device__ __forceinline__ void move_bias(const OptimizerRef& o, const StepFactors& f, const ParamRef& p, int col, float db) {
  if (f.skip) return;
  const Moved now = moved(o, f, p.decays, {p.w[col], p.m ? p.m[col] : 0.f, p.v ? p.v[col] : 0.f}, db);
  p.w[col] = now.w;
  if (p.m) p.m[col] = now.m;
  if (p.v) p.v[col] = now.v;
  if (p.shadow) store(Ref{static_cast<char*>(p.shadow.data), p.shadow.type}, col, now.w);
}

__device__ __forceinline__ void ask_for_line(const float* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// One line of 128 bytes a thread, of the tile's weights and moments.
template <class Shape>
__device__ __forceinline__ void ask_for_tile(const ParamRef& p, int row0, int col0, int m, int n) {
  constexpr int per_row = Shape::BN / 32;
  const int row = row0 + threadIdx.x / per_row, col = col0 + threadIdx.x % per_row * 32;
  if (threadIdx.x >= Shape::BM * per_row || row >= m || col >= n) return;
  const int64_t at = static_cast<int64_t>(row) * n + col;
  ask_for_line(p.w + at);
  if (p.m) ask_for_line(p.m + at);
  if (p.v) ask_for_line(p.v + at);
}

template <Math M, class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::BN == 64 ? 2 : 1) void grad_update_kernel(const __grid_constant__ UpdateArguments u) {
  using Product = TileProduct<M, true, false, Shape>;
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  int which = 0;
  while (which + 1 < u.count && static_cast<int>(blockIdx.x) >= u.problems[which + 1].first_tile) ++which;
  const UpdateProblem& p = u.problems[which];
  const int tile = blockIdx.x - p.first_tile;
  const int row0 = tile / p.tiles_n * Shape::BM, col0 = tile % p.tiles_n * Shape::BN;
  const int m = static_cast<int>(p.a.cols), n = static_cast<int>(p.dz.cols);
  const auto left = [&](int2 q) { return q.x < Shape::BM && row0 + q.x < m ? min(4, n - col0 - q.y) : 0; };

  // The weights are asked for early and arrive while the product is made: in registers when a thread has few of them, else
  // as far as the L2 cache.
  constexpr bool early = Product::quads_per_thread == 1;
  Four weights{};
  const auto load_quad = [&](int i) {
    const int2 q = Product::quad_at(i);
    const int64_t at = static_cast<int64_t>(row0 + q.x) * n + col0 + q.y;
    return left(q) > 0 ? load_four(p.w, at, left(q), p.whole_quads) : Four{};
  };
  if constexpr (early) weights = load_quad(0);
  else ask_for_tile<Shape>(p.w, row0, col0, m, n);
  const StepFactors factors = step_factors(u.optimizer);
  Product product(memory);
  ColumnSums<Product> columns;
  const bool sum_columns = p.bias.w && row0 == 0;
  product.run(operand(p.a, p.vector_a), operand(p.dz, p.vector_b), row0, col0, static_cast<int>(p.a.rows),
              [&](const auto* b, int k0) {
                if (sum_columns) columns(b, k0);
              });
  product.meet();
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    const int64_t at = static_cast<int64_t>(row0 + q.x) * n + col0 + q.y;
    if constexpr (!early) weights = load_quad(i);
    if (left(q) > 0)
      move_four(u.optimizer, factors, p.w, at, weights, product.quad(q.x, q.y), left(q), p.whole_quads);
  }
  if (!sum_columns) return;
  const float db = columns.joined(reinterpret_cast<float*>(memory));
  const int col = col0 + threadIdx.x;
  if (threadIdx.x < Shape::BN && col < n) move_bias(u.optimizer, factors, p.bias, col, db);
}

inline UpdateProblem update_problem(const LayerUpdate& l, Optimizer kind) {
  UpdateProblem p{l.a, l.dz, for_optimizer(l.w, kind), for_optimizer(l.bias, kind)};
  p.vector_a = packs(l.a, 16 / size_of(l.a.type));
  p.vector_b = packs(l.dz, 16 / size_of(l.dz.type));
  const Tensor w{l.w.w, DType::F32, l.a.cols, l.dz.cols};
  const auto fits = [&](const float* moment) {
    return packs(Tensor{const_cast<float*>(moment), DType::F32, w.rows, w.cols}, 4);
  };
  p.whole_quads = packs(w, 4) && fits(p.w.m) && fits(p.w.v) &&
                  packs(Tensor{l.w.shadow.data, l.w.shadow.type, w.rows, w.cols}, 4);
  return p;
}

template <Math M, class Shape>
void launch_update(Queue queue, UpdateArguments u) {
  const auto kernel = grad_update_kernel<M, Shape>;
  int tiles = 0;
  for (int i = 0; i < u.count; ++i) {
    UpdateProblem& p = u.problems[i];
    p.first_tile = tiles;
    p.tiles_n = static_cast<int>(ceil_div(p.dz.cols, Shape::BN));
    tiles += static_cast<int>(ceil_div(p.a.cols, Shape::BM)) * p.tiles_n;
  }
  const size_t shared = TileProduct<M, true, false, Shape>::shared_bytes(u.problems[0].a.rows);
  allow_shared(kernel, shared);
  launch(queue, kernel, tiles, Shape::threads, shared, u);
}

template <Math M>
void grad_update_of(Queue queue, const OptimizerRef& optimizer, std::span<const LayerUpdate> layers) {
  UpdateArguments u{};
  u.optimizer = optimizer;
  int64_t large_tiles = 0;
  for (const LayerUpdate& l : layers) {
    u.problems[u.count++] = update_problem(l, optimizer.kind);
    large_tiles += ceil_div(l.a.cols, 64) * ceil_div(l.dz.cols, 64);
  }
  if (large_tiles >= 2 * kMultiprocessors)
    launch_update<M, UpdateTile64>(queue, u);
  else
    launch_update<M, UpdateTile32>(queue, u);
}

}  // namespace ws::cuda
