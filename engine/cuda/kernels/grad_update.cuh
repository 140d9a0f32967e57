// Weight gradients that the same kernel passes to the optimizer, for several layers in one launch.
// Shapes: a (rows, in), dz (rows, out), w (in, out).
#pragma once
#include "engine/cuda/kernels/optimizer.cuh"
#include "engine/cuda/kernels/small_gemm.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

struct Moving {
  float *w, *m, *v;
  void* shadow;
};

struct UpdateProblem {
  const void *a, *dz;
  Moving weight, bias;
  int in, out, tiles_n;
  bool clocked, whole, whole_a;
};

struct UpdateArguments {
  int first_tile[kMaxLayerUpdates + 1];
  int count, rows;
  const StepClock* clock;
  int64_t view_row;
  OptimizerRef optimizer;
  JoinLosses join;  // needs one more block if there are losses to add up
  DType shadow_type;
  UpdateProblem problems[kMaxLayerUpdates];
};

__device__ __forceinline__ int problem_of(const UpdateArguments& u, int tile) {
  int which = 0;
  while (which + 1 < u.count && tile >= u.first_tile[which + 1]) ++which;
  return which;
}

__device__ __forceinline__ Ref floats(float* p) { return {reinterpret_cast<char*>(p), DType::F32}; }

// Updates the bias of one column.
__device__ __forceinline__ void move_bias(const UpdateArguments& u, const StepFactors& f, const Moving& p, int col,
                                          float db) {
  if (f.skip) return;
  const Moved now = moved(u.optimizer, f, false, {p.w[col], p.m ? p.m[col] : 0.f, p.v ? p.v[col] : 0.f}, db);
  p.w[col] = now.w;
  if (p.m) p.m[col] = now.m;
  if (p.v) p.v[col] = now.v;
  if (p.shadow) store(Ref{static_cast<char*>(p.shadow), u.shadow_type}, col, now.w);
}

template <class T>
__device__ __forceinline__ Operand<T> rows_of(const UpdateArguments& u, const UpdateProblem& p) {
  Operand<T> a{static_cast<const T*>(p.a), u.rows, p.in};
  if (p.clocked) a.data += (u.clock->row + u.view_row) * p.in;
  return a;
}

// ---- narrow ----
template <bool Whole>
__device__ __forceinline__ Four load_moving(const Moving& p, int64_t at, int count) {
  Four out{};
  out.w = load_some<4>(floats(p.w), at, count, Whole);
  if (p.m) out.m = load_some<4>(floats(p.m), at, count, Whole);
  if (p.v) out.v = load_some<4>(floats(p.v), at, count, Whole);
  return out;
}

template <bool Whole>
__device__ __forceinline__ void move_quad(const UpdateArguments& u, const StepFactors& f, const Moving& p, int64_t at,
                                          const Four& from, const Pack<4>& grad, int count) {
  if (f.skip) return;
  Pack<4> w, m, v;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const Moved now = moved(u.optimizer, f, true, {from.w.v[j], from.m.v[j], from.v.v[j]}, grad.v[j]);
    w.v[j] = now.w, m.v[j] = now.m, v.v[j] = now.v;
  }
  store_some<4>(floats(p.w), at, w, count, Whole);
  if (p.m) store_some<4>(floats(p.m), at, m, count, Whole);
  if (p.v) store_some<4>(floats(p.v), at, v, count, Whole);
  if (p.shadow) store_some<4>(Ref{static_cast<char*>(p.shadow), u.shadow_type}, at, w, count, Whole);
}

template <Math M, bool Whole, bool WholeA>
__device__ __forceinline__ void narrow_tile(const UpdateArguments& u, const UpdateProblem& p, int tile, char* memory) {
  using Shape = NarrowTile;
  using Product = TileProduct<M, true, false, Shape, WholeA, Whole>;
  using T = typename Product::T;
  const int row0 = tile / p.tiles_n * Shape::BM, col0 = tile % p.tiles_n * Shape::BN;
  Product product(memory);
  const Operand<T> dz{static_cast<const T*>(p.dz), u.rows, p.out}, a = rows_of<T>(u, p);
  product.begin_b(dz, col0, u.rows);
  product.begin_a(a, row0, u.rows);
  const int2 q = Product::quad_at(0);
  const int64_t at = static_cast<int64_t>(row0 + q.x) * p.out + col0 + q.y;
  const int count = row0 + q.x < p.in ? min(4, p.out - col0 - q.y) : 0;
  const Four weights = count > 0 ? load_moving<Whole>(p.weight, at, count) : Four{};
  const StepFactors factors = step_factors(u.optimizer);
  ColumnSums<Product> columns;
  const bool sum_columns = p.bias.w && row0 == 0;
  product.run(a, dz, row0, col0, u.rows, [&](const T* piece, int k0) {
    if (sum_columns) columns(piece, k0);
  });
  product.meet();
  if (count > 0) move_quad<Whole>(u, factors, p.weight, at, weights, product.quad(q.x, q.y), count);
  if (!sum_columns) return;
  const float db = columns.joined(reinterpret_cast<float*>(memory));
  const int col = col0 + threadIdx.x;
  if (threadIdx.x < Shape::BN && col < p.out) move_bias(u, factors, p.bias, col, db);
}

template <Math M>
__global__ __launch_bounds__(NarrowTile::threads) void grad_update_kernel(const __grid_constant__ UpdateArguments u) {
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  if (static_cast<int>(blockIdx.x) == u.first_tile[u.count]) return join_losses(u.join, u.optimizer.at);
  const int which = problem_of(u, blockIdx.x);
  const UpdateProblem& p = u.problems[which];
  const int tile = blockIdx.x - u.first_tile[which];
  if (p.whole) return narrow_tile<M, true, true>(u, p, tile, memory);
  if (p.whole_a) return narrow_tile<M, false, true>(u, p, tile, memory);
  narrow_tile<M, false, false>(u, p, tile, memory);
}

// ---- wide ----
// Four lanes hold 16 adjacent elements of a row, two in each of two groups of eight. They exchange elements, so each
// lane gets four adjacent ones and accesses 16 bytes at once.
__device__ __forceinline__ float4 trade(const float* left, const float* right) {
  const int t = threadIdx.x % 4, from = threadIdx.x % 32 - t + t * 2 % 4;
  const auto pick = [&](int e, int lane) {
    const float l = __shfl_sync(0xffffffffu, left[e], lane), r = __shfl_sync(0xffffffffu, right[e], lane);
    return t < 2 ? l : r;
  };
  return make_float4(pick(0, from), pick(1, from), pick(0, from + 1), pick(1, from + 1));
}

// The weights that a thread updates, four adjacent ones at a time. Index: fragment row, upper or lower half, pair of
// fragments.
template <class Product>
struct Quads {
  float4 v[Product::MF][2][Product::NF / 2];

  template <class F>
  __device__ static __forceinline__ void each(const Product& product, const UpdateProblem& p, int row0, int col0, F f) {
    const int row = row0 + product.wm * Product::warp_m + product.lane / 4;
    const int col = col0 + product.wn * Product::warp_n + product.lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < Product::MF; ++i)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int r = row + i * 16 + e * 8;
        const int64_t at = static_cast<int64_t>(r) * p.out + col;
#pragma unroll
        for (int j = 0; j < Product::NF / 2; ++j) f(i, e, j, at + j * 16, r < p.in && col + j * 16 < p.out);
      }
  }
  // Loads fragment rows First to Last - 1.
  template <int First, int Last>
  __device__ __forceinline__ void load(const Product& product, const UpdateProblem& p, const float* from, int row0,
                                       int col0) {
    each(product, p, row0, col0, [&](int i, int e, int j, int64_t at, bool inside) {
      if (inside && i >= First && i < Last) v[i][e][j] = *reinterpret_cast<const float4*>(from + at);
    });
  }
};

__device__ __forceinline__ float& part(float4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

template <Optimizer Kind>
__device__ __forceinline__ void move_four_of(const UpdateArguments& u, const StepFactors& f, const Moving& p,
                                             int64_t at, float4 w, float4 m, float4 grad) {
  float4 v{};
  if constexpr (Kind == Optimizer::Adam) v = *reinterpret_cast<const float4*>(p.v + at);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const Moved now = moved_by<Kind>(u.optimizer, f, true, {part(w, j), part(m, j), part(v, j)}, part(grad, j));
    part(w, j) = now.w, part(m, j) = now.m, part(v, j) = now.v;
  }
  *reinterpret_cast<float4*>(p.w + at) = w;
  if constexpr (Kind != Optimizer::Sgd) *reinterpret_cast<float4*>(p.m + at) = m;
  if constexpr (Kind == Optimizer::Adam) *reinterpret_cast<float4*>(p.v + at) = v;
  if (p.shadow) store_pack<4>(Ref{static_cast<char*>(p.shadow), u.shadow_type}, at, Pack<4>{{w.x, w.y, w.z, w.w}});
}

template <Math M, Optimizer Kind>
__global__ __launch_bounds__(WideTile::threads, Kind == Optimizer::Sgd ? 2 : 1) void grad_update_wide_kernel(
    const __grid_constant__ UpdateArguments u) {
  using Product = TileProduct<M, true, false, WideTile, true>;
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  if (static_cast<int>(blockIdx.x) == u.first_tile[u.count]) return join_losses(u.join, u.optimizer.at);
  const int which = problem_of(u, blockIdx.x);
  const UpdateProblem& p = u.problems[which];
  const int tile = blockIdx.x - u.first_tile[which];
  const int row0 = tile / p.tiles_n * WideTile::BM, col0 = tile % p.tiles_n * WideTile::BN;
  Product product(memory);
  // Loads these while the product is computed, as many as fit into the remaining registers.
  constexpr int early = M == Math::Tf32 || Kind != Optimizer::Sgd ? Product::MF : 1;
  Quads<Product> w;
  [[maybe_unused]] Quads<Product> m;
  w.template load<0, early>(product, p, p.weight.w, row0, col0);
  if constexpr (Kind != Optimizer::Sgd) m.template load<0, early>(product, p, p.weight.m, row0, col0);
  const Operand<T> dz{static_cast<const T*>(p.dz), u.rows, p.out}, a = rows_of<T>(u, p);
  product.begin_b(dz, col0, u.rows);
  product.begin_a(a, row0, u.rows);
  const StepFactors factors = step_factors(u.optimizer);
  ColumnSums<Product> columns;
  const bool sum_columns = p.bias.w && row0 == 0;
  product.run(a, dz, row0, col0, u.rows, [&](const T* piece, int k0) {
    if (sum_columns) columns(piece, k0);
  });
  w.template load<early, Product::MF>(product, p, p.weight.w, row0, col0);
  Quads<Product>::each(product, p, row0, col0, [&](int i, int e, int j, int64_t at, bool inside) {
    const float4 grad = trade(product.sum[i][2 * j] + 2 * e, product.sum[i][2 * j + 1] + 2 * e);
    float4 moment{};
    if constexpr (Kind != Optimizer::Sgd) moment = m.v[i][e][j];
    if (inside && !factors.skip) move_four_of<Kind>(u, factors, p.weight, at, w.v[i][e][j], moment, grad);
  });
  if (!sum_columns) return;
  wait_for_copies<0>();
  const float db = columns.joined(reinterpret_cast<float*>(memory));
  const int col = col0 + threadIdx.x;
  if (threadIdx.x < WideTile::BN && col < p.out) move_bias(u, factors, p.bias, col, db);
}

// ---- launch ----
inline Moving moving(const ParamRef& ref, Optimizer kind) {
  const ParamRef p = for_optimizer(ref, kind);
  return {p.w, p.m, p.v, p.shadow.data};
}

inline UpdateProblem update_problem(const LayerUpdate& l, Optimizer kind) {
  UpdateProblem p{l.a.data, l.dz.data, moving(l.w, kind), moving(l.bias, kind)};
  p.in = static_cast<int>(l.a.cols);
  p.out = static_cast<int>(l.dz.cols);
  p.clocked = l.a.clock != nullptr;
  const auto rows_fit = [&](const void* data, DType type) {
    return packs(Tensor{const_cast<void*>(data), type, p.in, p.out}, 4);
  };
  p.whole_a = packs(l.a, 16 / size_of(l.a.type));
  p.whole = p.whole_a && packs(l.dz, 16 / size_of(l.dz.type)) && rows_fit(p.weight.w, DType::F32) &&
            rows_fit(p.weight.m, DType::F32) && rows_fit(p.weight.v, DType::F32) &&
            rows_fit(p.weight.shadow, l.w.shadow.type);
  return p;
}

template <class Kernel>
void launch_tiles(Queue queue, Kernel* kernel, UpdateArguments& u, int bm, int bn, int threads, size_t shared) {
  int tiles = 0;
  for (int i = 0; i < u.count; ++i) {
    UpdateProblem& p = u.problems[i];
    u.first_tile[i] = tiles;
    p.tiles_n = static_cast<int>(ceil_div(p.out, bn));
    tiles += static_cast<int>(ceil_div(p.in, bm)) * p.tiles_n;
  }
  u.first_tile[u.count] = tiles;
  allow_shared(kernel, shared);
  launch(queue, kernel, tiles + (u.join.rows > 0), threads, shared, u);
}

template <Math M>
void launch_wide(Queue queue, UpdateArguments& u) {
  const auto kernel = u.optimizer.kind == Optimizer::Sgd        ? grad_update_wide_kernel<M, Optimizer::Sgd>
                      : u.optimizer.kind == Optimizer::Momentum ? grad_update_wide_kernel<M, Optimizer::Momentum>
                                                                : grad_update_wide_kernel<M, Optimizer::Adam>;
  const size_t stages =
      TileProduct<M, true, false, WideTile, true>::stage_size * sizeof(typename Number<M>::type) * WideTile::stages;
  launch_tiles(queue, kernel, u, WideTile::BM, WideTile::BN, WideTile::threads, stages);
}

template <Math M>
void launch_narrow(Queue queue, UpdateArguments& u) {
  launch_tiles(queue, grad_update_kernel<M>, u, NarrowTile::BM, NarrowTile::BN, NarrowTile::threads,
               TileProduct<M, true, false, NarrowTile, true>::shared_bytes(u.rows));
}

template <Math M>
void grad_update_of(Queue queue, const OptimizerRef& optimizer, JoinLosses join, std::span<const LayerUpdate> layers) {
  UpdateArguments narrow{};
  narrow.optimizer = optimizer;
  narrow.rows = static_cast<int>(layers.front().dz.rows);
  narrow.shadow_type = layers.front().w.shadow.type;
  for (const LayerUpdate& l : layers)
    if (l.a.clock) narrow.clock = l.a.clock, narrow.view_row = l.a.view_offset * l.a.rows;
  UpdateArguments wide = narrow;
  constexpr int64_t many = 1 << 18;  // from this many weights per layer on, bandwidth limits their update
  for (const LayerUpdate& l : layers) {
    const UpdateProblem p = update_problem(l, optimizer.kind);
    UpdateArguments& u = p.whole && l.a.cols * l.dz.cols >= many ? wide : narrow;
    u.problems[u.count++] = p;
  }
  (narrow.count > 0 ? narrow : wide).join = join;
  if (wide.count > 0) launch_wide<M>(queue, wide);
  if (narrow.count > 0) launch_narrow<M>(queue, narrow);
}

}  // namespace ws::cuda
