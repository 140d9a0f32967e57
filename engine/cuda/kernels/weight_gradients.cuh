// Weight gradients of several layers in one launch. One .cu file per number type includes this file. Shapes: a (rows, in),
// dz (rows, out), dw (in, out).
#pragma once
#include "engine/cuda/kernels/small_gemm.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

struct GradientProblem {
  const void *a, *dz;
  float *dw, *db;
  int in, out, tiles_n;
};

struct GradientArguments {
  int first_tile[kMaxWeightGradients + 1];
  int count, rows;
  GradientProblem problems[kMaxWeightGradients];
};

// Whole: all rows begin at multiples of 16 bytes.
template <Math M, bool Whole>
__global__ __launch_bounds__(Tile64::threads) void weight_gradients_kernel(
    const __grid_constant__ GradientArguments g) {
  using Product = TileProduct<M, true, false, Tile64, Whole>;
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  int which = 0;
  while (which + 1 < g.count && static_cast<int>(blockIdx.x) >= g.first_tile[which + 1]) ++which;
  const GradientProblem& p = g.problems[which];
  const int tile = static_cast<int>(blockIdx.x) - g.first_tile[which];
  const int row0 = tile / p.tiles_n * Tile64::BM, col0 = tile % p.tiles_n * Tile64::BN;
  Product product(memory);
  const Operand<T> a{static_cast<const T*>(p.a), g.rows, p.in}, dz{static_cast<const T*>(p.dz), g.rows, p.out};
  product.begin_b(dz, col0, g.rows);
  product.begin_a(a, row0, g.rows);
  ColumnSums<Product> columns;
  const bool sum_columns = p.db && row0 == 0;
  product.run(a, dz, row0, col0, g.rows, [&](const T* piece, int k0) {
    if (sum_columns) columns(piece, k0);
  });
  product.meet();
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    const int row = row0 + q.x, col = col0 + q.y, count = min(4, p.out - col);
    if (row >= p.in || count <= 0) continue;
    const Ref to{reinterpret_cast<char*>(p.dw), DType::F32};
    store_some<4>(to, static_cast<int64_t>(row) * p.out + col, product.quad(q.x, q.y), count, Whole);
  }
  if (!sum_columns) return;
  const float db = columns.joined(reinterpret_cast<float*>(memory));
  const int col = col0 + static_cast<int>(threadIdx.x);
  if (threadIdx.x < Tile64::BN && col < p.out) p.db[col] = db;
}

template <Math M, bool Whole>
void launch_weight_gradients(Queue queue, const GradientArguments& g) {
  const auto kernel = weight_gradients_kernel<M, Whole>;
  const size_t shared = TileProduct<M, true, false, Tile64, Whole>::shared_bytes(g.rows);
  allow_shared(kernel, shared);
  launch(queue, kernel, g.first_tile[g.count], Tile64::threads, shared, g);
}

template <Math M>
void weight_gradients_of(Queue queue, std::span<const WeightGradient> layers) {
  GradientArguments g{};
  g.rows = static_cast<int>(layers.front().dz.rows);
  bool whole = true;
  for (const WeightGradient& l : layers) {
    GradientProblem& p = g.problems[g.count];
    p = {l.a.data, l.dz.data, static_cast<float*>(l.dw.data), static_cast<float*>(l.db.data)};
    p.in = static_cast<int>(l.a.cols), p.out = static_cast<int>(l.dz.cols);
    p.tiles_n = static_cast<int>(ceil_div(p.out, Tile64::BN));
    g.first_tile[g.count + 1] = g.first_tile[g.count] + static_cast<int>(ceil_div(p.in, Tile64::BM)) * p.tiles_n;
    ++g.count;
    whole = whole && packs(l.a, 16 / size_of(l.a.type)) && packs(l.dz, 16 / size_of(l.dz.type)) && packs(l.dw, 4);
  }
  whole ? launch_weight_gradients<M, true>(queue, g) : launch_weight_gradients<M, false>(queue, g);
}

}  // namespace ws::cuda
