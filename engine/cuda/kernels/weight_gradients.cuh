// Weight gradients of several layers in one launch. Shapes: a (rows, in), dz (rows, out), dw (in, out).
//
// Large tiles read a and dz seldom enough for the cache's bandwidth. A cluster of blocks shares the rows of a tile, and
// each block adds the parts of its share of the tile, first block first.
#pragma once
#include <cooperative_groups.h>

#include "engine/cuda/kernels/small_gemm.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

// Plain fp32 needs more registers for each product.
template <Math M>
using GradientTileOf = std::conditional_t<M == Math::Fp32, TileShape<64, 128, 2, 4, 1, 32, 32, 3>,
                                          TileShape<128, 128, 2, 4, 1, 32, 64, 3>>;
constexpr int kMostRowParts = 8;  // blocks that share the rows of a tile

struct GradientProblem {
  const void *a, *dz;
  float *dw, *db;
  int in, out, tiles_n;
};

struct GradientArguments {
  int first_tile[kMaxWeightGradients + 1];
  int count, rows, parts, rows_each;
  GradientProblem problems[kMaxWeightGradients];
};

// The blocks that share a tile. Before compute capability 9.0 there is one.
struct RowParts {
  __device__ static __forceinline__ void sync() {
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().sync();
#else
    __syncthreads();
#endif
  }
  // The same place in the shared memory of another block.
  template <class T>
  __device__ static __forceinline__ const T* at(const T* mine, [[maybe_unused]] int part) {
#if __CUDA_ARCH__ >= 900
    return cooperative_groups::this_cluster().map_shared_rank(mine, static_cast<unsigned>(part));
#else
    return mine;
#endif
  }
};

// Adds the parts of four adjacent elements of the tile, which all blocks have in shared memory.
template <class Product>
__device__ __forceinline__ Pack<4> joined_quad(const GradientArguments& g, const float* tile, int2 q) {
  Pack<4> sum{};
  for (int part = 0; part < g.parts; ++part) {
    const float4 more = *reinterpret_cast<const float4*>(RowParts::at(tile + Product::C::at(q.x, q.y), part));
    sum.v[0] += more.x, sum.v[1] += more.y, sum.v[2] += more.z, sum.v[3] += more.w;
  }
  return sum;
}

// Blocks of a multiprocessor.
template <class Product>
constexpr int gradient_slots() {
  return Product::by_warpgroups ? 2 : 1;
}

// Whole: all rows begin at multiples of 16 bytes.
template <class Product, bool Whole>
__global__ __launch_bounds__(Product::threads, gradient_slots<Product>()) void weight_gradients_kernel(
    const __grid_constant__ GradientArguments g) {
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  const int item = static_cast<int>(blockIdx.x) / g.parts, part = static_cast<int>(blockIdx.x) % g.parts;
  int which = 0;
  while (which + 1 < g.count && item >= g.first_tile[which + 1]) ++which;
  const GradientProblem& p = g.problems[which];
  const int tile = item - g.first_tile[which];
  const int row0 = tile / p.tiles_n * Product::BM, col0 = tile % p.tiles_n * Product::BN;
  const int first = min(g.rows, part * g.rows_each), rows = min(g.rows, first + g.rows_each) - first;
  Product product(memory);
  const Operand<T> a{static_cast<const T*>(p.a) + static_cast<int64_t>(first) * p.in, rows, p.in};
  const Operand<T> dz{static_cast<const T*>(p.dz) + static_cast<int64_t>(first) * p.out, rows, p.out};
  product.begin_b(dz, col0, rows);
  product.begin_a(a, row0, rows);
  ColumnSums<Product> columns;
  const bool sum_columns = p.db && row0 == 0;
  product.run(a, dz, row0, col0, rows, [&](const T* piece, int k0) {
    if (sum_columns) columns(piece, k0);
  });
  product.meet();
  RowParts::sync();
  const float* sums = reinterpret_cast<const float*>(product.shared);
  for (int i = part; i < Product::quads_per_thread; i += g.parts) {
    const int2 q = Product::quad_at(i);
    const int row = row0 + q.x, col = col0 + q.y, count = min(4, p.out - col);
    if (row >= p.in || count <= 0) continue;
    const Ref to{reinterpret_cast<char*>(p.dw), DType::F32};
    store_some<4>(to, static_cast<int64_t>(row) * p.out + col, joined_quad<Product>(g, sums, q), count, Whole);
  }
  RowParts::sync();  // the other blocks have read this one's part
  if (!sum_columns) return;
  float* column = reinterpret_cast<float*>(memory);
  const float mine = columns.joined(column);
  __syncthreads();
  if (threadIdx.x < Product::BN) column[threadIdx.x] = mine;
  RowParts::sync();
  const int col = col0 + static_cast<int>(threadIdx.x);
  if (part == 0 && threadIdx.x < Product::BN && col < p.out) {
    float db = 0;
    for (int k = 0; k < g.parts; ++k) db += *RowParts::at(column + threadIdx.x, k);
    p.db[col] = db;
  }
  RowParts::sync();
}

// The most parts that give every multiprocessor work, in clusters that all run at once.
template <class Kernel>
int row_parts(Kernel* kernel, int threads, size_t shared, int tiles, int64_t rows, int64_t slots) {
  constexpr int64_t fewest_rows = 128;
  if (!runs_clusters()) return 1;
  int64_t parts = std::clamp<int64_t>(std::min(slots / tiles, rows / fewest_rows), 1, kMostRowParts);
  while (parts > 1 && clusters_at_once(kernel, threads, shared, static_cast<int>(parts)) < tiles) --parts;
  return static_cast<int>(parts);
}

template <class Product, bool Whole>
void launch_weight_gradients(Queue queue, std::span<const WeightGradient> layers) {
  GradientArguments g{};
  g.rows = static_cast<int>(layers.front().dz.rows);
  for (const WeightGradient& l : layers) {
    GradientProblem& p = g.problems[g.count];
    p = {l.a.data, l.dz.data, static_cast<float*>(l.dw.data), static_cast<float*>(l.db.data)};
    p.in = static_cast<int>(l.a.cols), p.out = static_cast<int>(l.dz.cols);
    p.tiles_n = static_cast<int>(ceil_div(p.out, Product::BN));
    g.first_tile[g.count + 1] = g.first_tile[g.count] + static_cast<int>(ceil_div(p.in, Product::BM)) * p.tiles_n;
    ++g.count;
  }
  const auto kernel = weight_gradients_kernel<Product, Whole>;
  const int tiles = g.first_tile[g.count];
  const size_t shared = Product::shared_bytes(g.rows);
  allow_shared(kernel, shared);
  g.parts = row_parts(kernel, Product::threads, shared, tiles, g.rows, gradient_slots<Product>() * kMultiprocessors);
  g.rows_each = static_cast<int>(ceil_div(ceil_div(g.rows, g.parts), Product::BK)) * Product::BK;
  launch_in_clusters(queue, kernel, int64_t{tiles} * g.parts, Product::threads, shared, g.parts, g);
}

template <Math M>
void weight_gradients_of(Queue queue, Precision precision, std::span<const WeightGradient> layers) {
  const bool whole = std::ranges::all_of(layers, [](const WeightGradient& l) {
    return packs(l.a, 16 / size_of(l.a.type)) && packs(l.dz, 16 / size_of(l.dz.type)) && packs(l.dw, 4);
  });
  if (sizeof(typename Number<M>::type) == 2 && whole && runs_warpgroups())
    return weight_gradients_by_warpgroups(queue, precision, layers);
  whole ? launch_weight_gradients<TileProduct<M, true, false, GradientTileOf<M>, true>, true>(queue, layers)
        : launch_weight_gradients<TileProduct<M, true, false, GradientTileOf<M>, false>, false>(queue, layers);
}

}  // namespace ws::cuda
