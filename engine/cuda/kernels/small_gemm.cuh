// Our own matrix products for the shapes of small networks.
#pragma once
#include "engine/cuda/kernels/small_gemm.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

// Computes c = epilogue(op(a)·op(b)); m, n and k are the sizes after transposing. Small, because every launch copies
// it.
struct GemmArguments {
  const void *a, *b, *bias;
  void *c, *saved;
  float* bias_grad;
  const StepClock* clock;  // the clock of a
  int64_t view_row;        // row offset of a from the clock's row
  int m, n, k, tiles_n;
  Epilogue epilogue;
  Activation activation;
  DType c_type, bias_type, saved_type;
  bool settled;  // b may be read before the previous kernel has ended
  bool writes_rows;  // no epilogue: warpgroups write whole rows of 16 bits
};

template <bool Whole>
__device__ __forceinline__ Pack<4> load_quad(Ref r, int64_t i, int count) {
  if constexpr (Whole) return load_pack<4>(r, i);
  return load_some<4>(r, i, count, false);
}

template <bool Whole>
__device__ __forceinline__ void store_quad(Ref r, int64_t i, const Pack<4>& v, int count) {
  if constexpr (Whole) return store_pack<4>(r, i, v);
  store_some<4>(r, i, v, count, false);
}

template <bool Whole>
__device__ __forceinline__ void finish_quad(const GemmArguments& g, int row, int col, Pack<4> v, const Pack<4>& bias) {
  const int count = min(4, g.n - col);
  if (row >= g.m || count <= 0) return;
  const int64_t at = static_cast<int64_t>(row) * g.n + col;
  const Ref saved_at{static_cast<char*>(g.saved), g.saved_type};
  if (g.epilogue == Epilogue::ActivateGrad) {
    const Pack<4> slope = activation_slope(g.activation, load_quad<Whole>(saved_at, at, count));
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] *= slope.v[j];
  } else if (g.epilogue != Epilogue::None) {
#pragma unroll
    for (int j = 0; j < 4; ++j) v.v[j] += bias.v[j];
    if (g.saved) store_quad<Whole>(saved_at, at, v, count);
    v = activated(g.activation, v);
  }
  store_quad<Whole>(Ref{static_cast<char*>(g.c), g.c_type}, at, v, count);
}

// All groups of four of a thread lie in the same columns, so one early load brings all its bias values.
template <bool Whole, class Product>
__device__ __forceinline__ Pack<4> early_bias(const GemmArguments& g, int col0) {
  const int col = col0 + Product::quad_at(0).y;
  if (!g.bias || col >= g.n) return Pack<4>{};
  return load_quad<Whole>(Ref{static_cast<char*>(const_cast<void*>(g.bias)), g.bias_type}, col, min(4, g.n - col));
}

template <Math M, bool TA, bool TB, class Shape, bool Whole>
__global__ __launch_bounds__(Shape::threads) void small_gemm_kernel(const __grid_constant__ GemmArguments g) {
  using Product = TileProduct<M, TA, TB, Shape, Whole>;
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  const int row0 = blockIdx.x / g.tiles_n * Shape::BM, col0 = blockIdx.x % g.tiles_n * Shape::BN;
  Product product(memory);
  const Operand<T> b{static_cast<const T*>(g.b), TB ? g.n : g.k, TB ? g.k : g.n};
  if (g.settled) product.begin_b(b, col0, g.k);
  wait_for_previous();
  if (!g.settled) product.begin_b(b, col0, g.k);
  Operand<T> a{static_cast<const T*>(g.a), TA ? g.k : g.m, TA ? g.m : g.k};
  if (g.clock) a.data += (g.clock->row + g.view_row) * a.cols;
  product.begin_a(a, row0, g.k);
  const Pack<4> bias = early_bias<Whole, Product>(g, col0);
  ColumnSums<Product> columns;
  const bool sum_columns = TA && g.bias_grad && row0 == 0;
  product.run(a, b, row0, col0, g.k, [&](const T* piece, int k0) {
    if constexpr (TA)
      if (sum_columns) columns(piece, k0);
  });
  product.meet();
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    if (q.x < Shape::BM) finish_quad<Whole>(g, row0 + q.x, col0 + q.y, product.quad(q.x, q.y), bias);
  }
  if constexpr (TA) {
    if (!sum_columns) return;
    const float db = columns.joined(reinterpret_cast<float*>(memory));
    const int col = col0 + threadIdx.x;
    if (threadIdx.x < Shape::BN && col < g.n) g.bias_grad[col] = db;
  }
}

// With this much shared memory, a multiprocessor holds one such block and one block of the next kernel.
inline size_t bytes_of_a_lone_block() {
  static const size_t bytes = [] {
    int device = 0, all = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    return static_cast<size_t>(all) / 3 * 2;
  }();
  return bytes;
}

template <Math M, bool TA, bool TB, class Shape, bool Whole>
void launch_gemm(Queue queue, GemmArguments g) {
  const auto kernel = small_gemm_kernel<M, TA, TB, Shape, Whole>;
  size_t shared = TileProduct<M, TA, TB, Shape, Whole>::shared_bytes(g.k);
  g.tiles_n = static_cast<int>(ceil_div(g.n, Shape::BN));
  const int64_t blocks = ceil_div(g.m, Shape::BM) * g.tiles_n;
  // If there are enough multiprocessors, no two blocks share one. On an H200 this takes 10 % off a step of
  // 784-784-784-784-784-10 and 13 % off a step of 784-128-128-128-10.
  if (blocks <= kMultiprocessors) shared = std::max(shared, bytes_of_a_lone_block());
  allow_shared(kernel, shared);
  launch(queue, kernel, blocks, Shape::threads, shared, g);
}

template <Math M, bool TA, bool TB>
void launch_shaped(Queue queue, const GemmArguments& g, bool whole) {
  const SmallTile tile = small_tile(g.m, g.n);
  if (!whole) return launch_gemm<M, TA, TB, Tile16, false>(queue, g);  // odd shapes: correct, and fast enough
  switch (tile) {
    case SmallTile::T64:
      return launch_gemm<M, TA, TB, Tile64, true>(queue, g);
    case SmallTile::T32:
      return launch_gemm<M, TA, TB, Tile32, true>(queue, g);
    case SmallTile::T32x16:
      return launch_gemm<M, TA, TB, Tile32x16, true>(queue, g);
    case SmallTile::T16:
      return launch_gemm<M, TA, TB, Tile16, true>(queue, g);
  }
}

inline GemmArguments gemm_arguments(const Product& p) {
  GemmArguments g{};
  g.a = p.a.data, g.b = p.b.data, g.bias = p.bias.data, g.c = p.c.data, g.saved = p.saved.data;
  g.bias_grad = static_cast<float*>(p.bias_grad.data);
  g.clock = p.a.clock;
  g.view_row = p.a.view_offset * p.a.rows;
  g.m = static_cast<int>(p.c.rows);
  g.n = static_cast<int>(p.c.cols);
  g.k = static_cast<int>(p.transpose_a ? p.a.rows : p.a.cols);
  g.epilogue = p.epilogue, g.activation = p.activation;
  g.c_type = p.c.type, g.bias_type = p.bias.type, g.saved_type = p.saved.type;
  g.settled = p.b_is_settled;
  return g;
}

template <Math M>
void small_gemm_of(Queue queue, const Product& p) {
  const GemmArguments g = gemm_arguments(p);
  const bool whole = packs(p.a, 16 / size_of(p.a.type)) && packs(p.b, 16 / size_of(p.b.type)) && packs(p.c, 4) &&
                     packs(p.saved, 4) && packs(p.bias, 4);
  if (p.transpose_a) return launch_shaped<M, true, false>(queue, g, whole);
  if (p.transpose_b) return launch_shaped<M, false, true>(queue, g, whole);
  launch_shaped<M, false, false>(queue, g, whole);
}

}  // namespace ws::cuda
