// Causal self-attention without a score matrix in memory: forward with an online softmax, and the gradient, which
// computes the scores again.
//
// A block has 64 rows of one head, 16 for each of its four warps, and goes through tiles of the other side. A warp
// keeps its scores in registers, where they already lie as the tensor cores want them for the second product.
#pragma once
#include "engine/cuda/kernels/attention_launch.h"
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

constexpr int kHeadThreads = 128, kHeadRows = 64;
constexpr float kLog2E = 1.4426950408889634f;

struct AttentionArguments {
  const void *qkv, *dout, *out_read;
  void *out, *dqkv;
  float *lse, *column_sums;
  int time, heads, head_width;
  int tiles;    // of 64 rows in a sequence
  int sets;     // sequences times heads
  float scale;  // of the scores
  bool whole;   // every row of a head begins at a multiple of 16 bytes
};

// The rows of one head in a matrix: q, k, v, an output or a gradient.
template <class T>
struct HeadRows {
  T* data;
  int stride;
  __device__ __forceinline__ T* row(int r) const { return data + static_cast<int64_t>(r) * stride; }
};

// Shared memory holds rows of `Width` numbers, zero beyond the head's width. 16 bytes of padding keep the tensor cores'
// loads free of bank conflicts.
template <Math M, int Width>
struct HeadTile {
  using T = typename Number<M>::type;
  static constexpr int part = 16 / sizeof(T), stride = Width + part;
  static constexpr int k_step = sizeof(T) == 4 ? 8 : 16;
  // Rows of a tile that the gradient goes through. Wide heads need the registers for their sums.
  static constexpr int grad_rows = sizeof(T) == 4 && Width > 32 ? 16 : 32;
  static constexpr int grad_stages = sizeof(T) == 4 ? 1 : 2;
  // Blocks that a multiprocessor should hold.
  static constexpr int grad_blocks = Width == 128 || sizeof(T) == 4 ? 2 : Width == 64 ? 3 : 4;
  static constexpr int few_steps =
      sizeof(T) == 4 || Width == 64 ? 1 : 2;  // unrolled, because more of them take registers for loads

  // Copies rows row0 to row0 + Rows - 1, with zeros from row `time` on.
  template <int Rows>
  __device__ static __forceinline__ void bring(T* shared, const HeadRows<const T>& from, int row0,
                                               const AttentionArguments& a) {
    if (a.whole) {
      constexpr int per_row = Width / part;
#pragma unroll 1
      for (int i = threadIdx.x; i < Rows * per_row; i += kHeadThreads) {
        const int r = i / per_row, c = i % per_row * part;
        const bool inside = row0 + r < a.time && c < a.head_width;
        copy_async<16>(shared + r * stride + c, inside ? from.row(row0 + r) + c : from.data, inside);
      }
      return;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < Rows * Width; i += kHeadThreads) {
      const int r = i / Width, c = i % Width;
      const bool inside = row0 + r < a.time && c < a.head_width;
      shared[r * stride + c] = inside ? from.row(row0 + r)[c] : T(0.f);
    }
  }

  // ---- fragments: `lane` holds what the tensor cores want ----
  __device__ static __forceinline__ void load_a(uint32_t (&r)[4], const T* tile, int row0, int k0) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        r[e] = __float_as_uint(tile[(row0 + lane / 4 + e % 2 * 8) * stride + k0 + lane % 4 + e / 2 * 4]);
    } else {
      load_matrices<false>(r, tile + (row0 + lane % 16) * stride + k0 + lane / 16 * 8);
    }
  }

  // b(k, n) = tile[n][k]: two adjacent fragments of 8 columns n.
  __device__ static __forceinline__ void load_b_across(uint32_t (&r)[4], const T* tile, int n0, int k0) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        r[e] = __float_as_uint(tile[(n0 + e / 2 * 8 + lane / 4) * stride + k0 + lane % 4 + e % 2 * 4]);
    } else {
      load_matrices<false>(r, tile + (n0 + lane / 16 * 8 + lane % 8) * stride + k0 + lane / 8 % 2 * 8);
    }
  }

  // b(k, n) = tile[k][n]. 4-byte numbers take the rows in the order in which a_of_sums has its columns.
  __device__ static __forceinline__ void load_b_along(uint32_t (&r)[4], const T* tile, int k0, int n0) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        r[e] = __float_as_uint(tile[(k0 + lane % 4 * 2 + e % 2) * stride + n0 + e / 2 * 8 + lane / 4]);
    } else {
      load_matrices<true>(r, tile + (k0 + lane % 16) * stride + n0 + lane / 16 * 8);
    }
  }

  // Columns k0 to k0 + k_step - 1 of sums that this warp holds, as a first operand.
  template <int Fragments>
  __device__ static __forceinline__ void a_of_sums(uint32_t (&r)[4], const float (&sums)[Fragments][4], int k0) {
    const float(&left)[4] = sums[k0 / 8];
    if constexpr (sizeof(T) == 4) {
      r[0] = __float_as_uint(left[0]), r[1] = __float_as_uint(left[2]);
      r[2] = __float_as_uint(left[1]), r[3] = __float_as_uint(left[3]);
    } else {
      const float(&right)[4] = sums[k0 / 8 + 1];
      r[0] = pair_of<M>(left[0], left[1]), r[1] = pair_of<M>(left[2], left[3]);
      r[2] = pair_of<M>(right[0], right[1]), r[3] = pair_of<M>(right[2], right[3]);
    }
  }

  // In fp32 a number is the sum of two tf32 numbers, and three products of them keep fp32's accuracy.
  __device__ static __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (sizeof(T) == 2) {
      multiply_add<M>(c, a, b0, b1);
    } else {
      uint32_t high[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) high[e] = to_tf32(__uint_as_float(a[e]));
      const uint32_t h0 = to_tf32(__uint_as_float(b0)), h1 = to_tf32(__uint_as_float(b1));
      if constexpr (M == Math::Fp32) {
        uint32_t low[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) low[e] = rest(a[e], high[e]);
        multiply_add<Math::Tf32>(c, low, h0, h1);
        multiply_add<Math::Tf32>(c, high, rest(b0, h0), rest(b1, h1));
      }
      multiply_add<Math::Tf32>(c, high, h0, h1);
    }
  }
  __device__ static __forceinline__ uint32_t rest(uint32_t whole, uint32_t high) {
    return to_tf32(__uint_as_float(whole) - __uint_as_float(high));
  }

  // sums = x·yᵀ: the 16 rows of x from row0 on with Rows rows of y.
  template <int Rows>
  __device__ static __forceinline__ void scores(float (&sums)[Rows / 8][4], const T* x, int row0, const T* y) {
#pragma unroll
    for (int j = 0; j < Rows / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[j][e] = 0.f;
#pragma unroll few_steps
    for (int k = 0; k < Width; k += k_step) {
      uint32_t a[4];
      load_a(a, x, row0, k);
#pragma unroll
      for (int n = 0; n < Rows; n += 16) {
        uint32_t b[4];
        load_b_across(b, y, n, k);
        multiply(sums[n / 8], a, b[0], b[1]);
        multiply(sums[n / 8 + 1], a, b[2], b[3]);
      }
    }
  }

  // sums += p·y: p (16, Rows) in registers, y Rows rows in shared memory.
  template <int Rows>
  __device__ static __forceinline__ void add_product(float (&sums)[Width / 8][4], const float (&p)[Rows / 8][4],
                                                     const T* y) {
#pragma unroll
    for (int k = 0; k < Rows; k += k_step) {
      uint32_t a[4];
      a_of_sums(a, p, k);
#pragma unroll
      for (int n = 0; n < Width; n += 16) {
        // Two limits on registers: later loads wait, and the parts of a are computed again.
        if (n % (M == Math::Fp32 ? 32 : Width) == 0) __syncwarp();
        if (M == Math::Fp32) asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
        uint32_t b[4];
        load_b_along(b, y, k, n);
        multiply(sums[n / 8], a, b[0], b[1]);
        multiply(sums[n / 8 + 1], a, b[2], b[3]);
      }
    }
  }

  // Writes the warp's 16 rows. `tile` is shared memory whose rows row0 to row0 + 15 only this warp still uses.
  __device__ static __forceinline__ void write(const float (&sums)[Width / 8][4], float upper, float lower, T* tile,
                                               int row0, const HeadRows<T>& to, int first,
                                               const AttentionArguments& a) {
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < Width / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        tile[(row0 + lane / 4 + e / 2 * 8) * stride + j * 8 + lane % 4 * 2 + e % 2] =
            T(sums[j][e] * (e < 2 ? upper : lower));
    __syncwarp();
    constexpr int per_row = Width / part;
    if (a.whole) {
#pragma unroll 1
      for (int i = lane; i < 16 * per_row; i += 32) {
        const int r = row0 + i / per_row, c = i % per_row * part;
        if (first + r < a.time && c < a.head_width)
          *reinterpret_cast<uint4*>(to.row(first + r) + c) = *reinterpret_cast<const uint4*>(tile + r * stride + c);
      }
      return;
    }
#pragma unroll 1
    for (int i = lane; i < 16 * Width; i += 32) {
      const int r = row0 + i / Width, c = i % Width;
      if (first + r < a.time && c < a.head_width) to.row(first + r)[c] = tile[r * stride + c];
    }
  }
};

// The block's head in the operands.
struct HeadAt {
  const AttentionArguments& a;
  int sequence, head;
  __device__ HeadAt(const AttentionArguments& args, int set) : a(args), sequence(set / a.heads), head(set % a.heads) {}
  __device__ __forceinline__ int64_t first_row() const { return static_cast<int64_t>(sequence) * a.time; }
  __device__ __forceinline__ int width() const { return a.heads * a.head_width; }
  // part: 0 q, 1 k, 2 v.
  template <class U>
  __device__ __forceinline__ HeadRows<U> in_qkv(U* data, int part) const {
    return {data + first_row() * 3 * width() + part * width() + head * a.head_width, 3 * width()};
  }
  template <class U>
  __device__ __forceinline__ HeadRows<U> in_out(U* data) const {
    return {data + first_row() * width() + head * a.head_width, width()};
  }
  __device__ __forceinline__ float* lse() const {
    return a.lse + (static_cast<int64_t>(sequence) * a.heads + head) * a.time;
  }
};

__device__ __forceinline__ float quad_sum(float v) {
  v += __shfl_xor_sync(0xffffffffu, v, 1);
  return v + __shfl_xor_sync(0xffffffffu, v, 2);
}
__device__ __forceinline__ float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

// 2^v in one instruction; results below 2^-126 are zero.
__device__ __forceinline__ float power_of_2(float v) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(v));
  return out;
}

// ---- forward ----
// Index h of the arrays: the upper (lane / 4) and the lower (lane / 4 + 8) of the two rows that a lane has.
struct OnlineSoftmax {
  float best[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f};

  // Turns scores into weights relative to the best score so far, and returns the factors for earlier sums.
  template <int Fragments>
  __device__ __forceinline__ float2 weigh(float (&s)[Fragments][4], float scale) {
    float shrink[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = best[h];
#pragma unroll
      for (int j = 0; j < Fragments; ++j) top = fmaxf(top, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
      top = quad_max(top);
      shrink[h] = power_of_2((best[h] - top) * scale);
      best[h] = top;
      sum[h] *= shrink[h];
      const float offset = top * scale;
#pragma unroll
      for (int j = 0; j < Fragments; ++j)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          s[j][e] = power_of_2(fmaf(s[j][e], scale, -offset));
          sum[h] += s[j][e];
        }
    }
    return {shrink[0], shrink[1]};
  }
};

// Removes the keys that lie behind a query. Row and column 0 are the same position of the text.
template <int Fragments>
__device__ __forceinline__ void hide_later(float (&s)[Fragments][4], int row0) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < Fragments; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (j * 8 + lane % 4 * 2 + e % 2 > row0 + lane / 4 + e / 2 * 8) s[j][e] = -INFINITY;
}

template <Math M, int Width>
__global__ __launch_bounds__(kHeadThreads) void attention_kernel(const __grid_constant__ AttentionArguments a) {
  using Tile = HeadTile<M, Width>;
  using T = typename Tile::T;
  extern __shared__ __align__(16) char memory[];
  T *q = reinterpret_cast<T*>(memory), *k = q + kHeadRows * Tile::stride, *v = k + kHeadRows * Tile::stride;
  wait_for_previous();
  const int tile = a.tiles - 1 - static_cast<int>(blockIdx.x) / a.sets;  // those with the most keys first
  const HeadAt head(a, static_cast<int>(blockIdx.x) % a.sets);
  const T* qkv = static_cast<const T*>(a.qkv);
  const auto queries = head.in_qkv(qkv, 0), keys = head.in_qkv(qkv, 1), values = head.in_qkv(qkv, 2);
  const int row0 = threadIdx.x / 32 * 16;
  Tile::template bring<kHeadRows>(q, queries, tile * kHeadRows, a);
  Tile::template bring<kHeadRows>(k, keys, 0, a);
  commit_copies();
  Tile::template bring<kHeadRows>(v, values, 0, a);
  commit_copies();
  OnlineSoftmax softmax;
  float sums[Width / 8][4] = {};
#pragma unroll 1
  for (int j = 0; j <= tile; ++j) {
    float s[kHeadRows / 8][4];
    wait_for_copies<1>();
    __syncthreads();
    Tile::template scores<kHeadRows>(s, q, row0, k);
    __syncthreads();
    if (j < tile) Tile::template bring<kHeadRows>(k, keys, (j + 1) * kHeadRows, a);
    commit_copies();
    if (j == tile) hide_later(s, row0);
    const float2 shrink = softmax.weigh(s, a.scale * kLog2E);
#pragma unroll
    for (int n = 0; n < Width / 8; ++n)
      sums[n][0] *= shrink.x, sums[n][1] *= shrink.x, sums[n][2] *= shrink.y, sums[n][3] *= shrink.y;
    wait_for_copies<1>();
    __syncthreads();
    Tile::template add_product<kHeadRows>(sums, s, v);
    __syncthreads();
    if (j < tile) Tile::template bring<kHeadRows>(v, values, (j + 1) * kHeadRows, a);
    commit_copies();
  }
  const float total[2] = {quad_sum(softmax.sum[0]), quad_sum(softmax.sum[1])};
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = tile * kHeadRows + row0 + lane / 4 + 8 * h;
    if (lane % 4 == 0 && row < a.time) head.lse()[row] = softmax.best[h] * a.scale + logf(total[h]);
  }
  Tile::write(sums, 1.f / total[0], 1.f / total[1], q, row0, head.in_out(static_cast<T*>(a.out)), tile * kHeadRows, a);
}

// ---- gradient ----
// Σ out·dout over a row, shared by the four lanes of a quad.
template <class T>
__device__ __forceinline__ float quad_dot(const T* x, const T* y, const AttentionArguments& a) {
  constexpr int part = 16 / sizeof(T);
  const int t = threadIdx.x % 4;
  float sum = 0;
  if (a.whole) {
#pragma unroll 1
    for (int c = t * part; c < a.head_width; c += 4 * part) {
      alignas(16) T left[part], right[part];
      *reinterpret_cast<uint4*>(left) = *reinterpret_cast<const uint4*>(x + c);
      *reinterpret_cast<uint4*>(right) = *reinterpret_cast<const uint4*>(y + c);
#pragma unroll
      for (int e = 0; e < part; ++e) sum = fmaf(static_cast<float>(left[e]), static_cast<float>(right[e]), sum);
    }
  } else {
#pragma unroll 1
    for (int c = t; c < a.head_width; c += 4) sum = fmaf(static_cast<float>(x[c]), static_cast<float>(y[c]), sum);
  }
  return quad_sum(sum);
}

// What the gradient needs of a query: the logarithm (base 2) of its softmax's sum, and Σ out·dout.
struct QueryFacts {
  float lse, dot;
};
__device__ __forceinline__ QueryFacts no_query() { return {INFINITY, 0.f}; }  // its weights are zero

// A block's share of the gradient. With Keys it has 64 keys and goes through the queries: dk and dv. Without, it has 64
// queries and goes through the keys: dq.
template <Math M, int Width, bool Keys>
struct GradientBlock {
  using Tile = HeadTile<M, Width>;
  using T = typename Tile::T;
  static constexpr int rows = Tile::grad_rows, stages = Tile::grad_stages;
  static constexpr int fixed = kHeadRows * Tile::stride, moving = rows * Tile::stride;

  const AttentionArguments& a;
  HeadAt head;
  int first;  // first row of the block
  T *fixed1, *fixed2, *tiles;
  float* lse_tiles;
  QueryFacts* facts;  // of the moving queries

  __device__ GradientBlock(const AttentionArguments& args, char* memory, int tile, int set)
      : a(args), head(args, set), first(tile * kHeadRows) {
    fixed1 = reinterpret_cast<T*>(memory);
    fixed2 = fixed1 + fixed;
    tiles = fixed2 + fixed;
    lse_tiles = reinterpret_cast<float*>(tiles + 3 * stages * moving);
    facts = reinterpret_cast<QueryFacts*>(lse_tiles + stages * rows);
  }
  static size_t bytes() { return (2 * fixed + 3 * stages * moving) * sizeof(T) + (stages + 2) * rows * sizeof(float); }

  __device__ __forceinline__ HeadRows<const T> part(int which) const {
    return head.in_qkv(static_cast<const T*>(a.qkv), which);
  }
  __device__ __forceinline__ HeadRows<const T> dout() const { return head.in_out(static_cast<const T*>(a.dout)); }
  __device__ __forceinline__ HeadRows<const T> out() const { return head.in_out(static_cast<const T*>(a.out_read)); }

  __device__ __forceinline__ T* tile_at(int j) const { return tiles + j % stages * 3 * moving; }
  __device__ __forceinline__ void bring(int j) const {
    T* to = tile_at(j);
    const int row0 = j * rows;
    const T *qkv = static_cast<const T*>(a.qkv), *dout = static_cast<const T*>(a.dout);
    Tile::template bring<rows>(to, head.in_qkv(qkv, Keys ? 0 : 1), row0, a);
    Tile::template bring<rows>(to + moving, Keys ? head.in_out(dout) : head.in_qkv(qkv, 2), row0, a);
    if constexpr (Keys) {
      Tile::template bring<rows>(to + 2 * moving, head.in_out(static_cast<const T*>(a.out_read)), row0, a);
      if (threadIdx.x < rows) {
        const bool inside = row0 + static_cast<int>(threadIdx.x) < a.time;
        copy_async<4>(lse_tiles + j % stages * rows + threadIdx.x, head.lse() + (inside ? row0 + threadIdx.x : 0),
                      inside);
      }
    }
    commit_copies();
  }

  __device__ __forceinline__ void learn_queries(int j) const {
    const T *dout_tile = tile_at(j) + moving, *out_tile = dout_tile + moving;
#pragma unroll
    for (int r = threadIdx.x / 4; r < rows; r += kHeadThreads / 4) {
      const float dot = quad_dot(out_tile + r * Tile::stride, dout_tile + r * Tile::stride, a);
      const bool inside = j * rows + r < a.time;
      if (threadIdx.x % 4 == 0)
        facts[r] = inside ? QueryFacts{lse_tiles[j % stages * rows + r] * kLog2E, dot} : no_query();
    }
    __syncthreads();
  }

  __device__ __forceinline__ QueryFacts query(int row) const {
    const int inside = min(row, a.time - 1);
    const float dot = quad_dot(out().row(inside), dout().row(inside), a);
    return row < a.time ? QueryFacts{head.lse()[row] * kLog2E, dot} : no_query();
  }

  // Turns scores and x2·y2ᵀ into weights and the gradient of the scores. Cut: some keys lie behind their query.
  template <bool Cut>
  __device__ __forceinline__ void weigh(float (&p)[rows / 8][4], float (&ds)[rows / 8][4], int row0, int j,
                                        const QueryFacts (&own)[2]) const {
    const int lane = threadIdx.x % 32, x0 = first + row0 + lane / 4, y0 = j * rows + lane % 4 * 2;
    const float scale = a.scale * kLog2E;
#pragma unroll
    for (int n = 0; n < rows / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int x = x0 + e / 2 * 8, y = y0 + n * 8 + e % 2;
        const QueryFacts of = Keys ? facts[n * 8 + lane % 4 * 2 + e % 2] : own[e / 2];
        const bool hidden = Cut && (Keys ? x > y : y > x);
        p[n][e] = hidden ? 0.f : power_of_2(fmaf(p[n][e], scale, -of.lse));
        ds[n][e] = hidden ? 0.f : p[n][e] * (ds[n][e] - of.dot);
      }
    }
  }

  __device__ __forceinline__ void run() const {
    const int row0 = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
    const int tiles_all = (a.time + rows - 1) / rows;
    const int begin = Keys ? first / rows : 0;
    const int end = Keys ? tiles_all : min(tiles_all, (first + kHeadRows - 1) / rows + 1);
    Tile::template bring<kHeadRows>(fixed1, Keys ? part(1) : part(0), first, a);
    Tile::template bring<kHeadRows>(fixed2, Keys ? part(2) : dout(), first, a);
    bring(begin);
    QueryFacts own[2] = {};
    if constexpr (!Keys) own[0] = query(first + row0 + lane / 4), own[1] = query(first + row0 + lane / 4 + 8);
    float sums1[Width / 8][4] = {};
    [[maybe_unused]] float sums2[Width / 8][4] = {};
#pragma unroll 1
    for (int j = begin; j < end; ++j) {
      if constexpr (stages == 1) {
        if (j > begin) bring(j);
        wait_for_copies<0>();
      } else {
        if (j + 1 < end)
          bring(j + 1);
        else
          commit_copies();
        wait_for_copies<1>();
      }
      __syncthreads();
      if constexpr (Keys) learn_queries(j);
      const T *y1 = tile_at(j), *y2 = y1 + moving;
      float p[rows / 8][4], ds[rows / 8][4];
      Tile::template scores<rows>(p, fixed1, row0, y1);
      Tile::template scores<rows>(ds, fixed2, row0, y2);
      if (Keys ? j * rows < first + kHeadRows : (j + 1) * rows > first)
        weigh<true>(p, ds, row0, j, own);
      else
        weigh<false>(p, ds, row0, j, own);
      if constexpr (Keys) Tile::template add_product<rows>(sums2, p, y2);
      Tile::template add_product<rows>(sums1, ds, y1);
      __syncthreads();
    }
    T* dqkv = static_cast<T*>(a.dqkv);
    Tile::write(sums1, a.scale, a.scale, fixed1, row0, head.in_qkv(dqkv, Keys ? 1 : 0), first, a);
    if constexpr (Keys) Tile::write(sums2, 1.f, 1.f, fixed2, row0, head.in_qkv(dqkv, 2), first, a);
  }
};

template <Math M, int Width>
__global__ __launch_bounds__(kHeadThreads, HeadTile<M, Width>::grad_blocks) void attention_grad_kernel(
    const __grid_constant__ AttentionArguments a) {
  extern __shared__ __align__(16) char memory[];
  wait_for_previous();
  // The blocks with the most work come first: the first keys and the last queries.
  const int slot = static_cast<int>(blockIdx.x) / a.sets, set = static_cast<int>(blockIdx.x) % a.sets;
  if (slot % 2 == 0)
    GradientBlock<M, Width, true>(a, memory, slot / 2, set).run();
  else
    GradientBlock<M, Width, false>(a, memory, a.tiles - 1 - slot / 2, set).run();
}

// ---- launch ----
template <Math M, int Width>
void launch_attention(Queue queue, const AttentionArguments& a) {
  using Tile = HeadTile<M, Width>;
  const auto kernel = attention_kernel<M, Width>;
  const size_t shared = 3 * kHeadRows * Tile::stride * sizeof(typename Tile::T);
  allow_shared(kernel, shared);
  launch(queue, kernel, static_cast<int64_t>(a.tiles) * a.sets, kHeadThreads, shared, a);
}

template <Math M, int Width>
void launch_attention_grad(Queue queue, const AttentionArguments& a) {
  const auto kernel = attention_grad_kernel<M, Width>;
  const size_t shared = GradientBlock<M, Width, true>::bytes();
  allow_shared(kernel, shared);
  launch(queue, kernel, int64_t{2} * a.tiles * a.sets, kHeadThreads, shared, a);
}

inline AttentionArguments attention_arguments(const AttentionCall& call) {
  AttentionArguments a{};
  a.qkv = call.qkv.data, a.out = call.out.data, a.out_read = call.out.data;
  a.dout = call.dout.data, a.dqkv = call.dqkv.data;
  a.lse = static_cast<float*>(call.lse.data), a.column_sums = call.column_sums;
  a.time = static_cast<int>(call.heads.time);
  a.heads = static_cast<int>(call.heads.heads);
  a.head_width = static_cast<int>(call.heads.head_width);
  a.tiles = static_cast<int>(ceil_div(call.heads.time, kHeadRows));
  a.sets = static_cast<int>(call.qkv.rows / call.heads.time * call.heads.heads);
  a.scale = 1.f / sqrtf(static_cast<float>(a.head_width));
  const auto fits = [&](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && call.heads.head_width * size_of(t.type) % 16 == 0;
  };
  a.whole = fits(call.qkv) && fits(call.out) && fits(call.dout) && fits(call.dqkv);
  return a;
}

template <Math M>
void attention_of(Queue queue, const AttentionCall& call) {
  const AttentionArguments a = attention_arguments(call);
  const bool forward = !call.dqkv;
  if (a.head_width <= 32) return forward ? launch_attention<M, 32>(queue, a) : launch_attention_grad<M, 32>(queue, a);
  if (a.head_width <= 64) return forward ? launch_attention<M, 64>(queue, a) : launch_attention_grad<M, 64>(queue, a);
  forward ? launch_attention<M, 128>(queue, a) : launch_attention_grad<M, 128>(queue, a);
}

}  // namespace ws::cuda
