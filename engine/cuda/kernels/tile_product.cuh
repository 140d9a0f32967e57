// A block's tile of a matrix product. Operands are copied to shared memory in asynchronous stages. Warps share the tile
// and split the sum over k. Tensor cores (or plain fp32) multiply, and the partial sums are added in shared memory in a
// fixed order.
//
// Shapes: a (m, k), b (k, n), c (m, n), stored row-major. With TA and TB they are stored transposed: a as (k, m), b as
// (n, k).
#pragma once
#include "engine/cuda/kernels/device_code.cuh"
#include "engine/cuda/kernels/tile_layout.h"

namespace ws::cuda {

// How numbers are multiplied. All sums are in fp32, except for Half16.
enum class Math : uint8_t { Fp32, Tf32, Bf16, Fp16, Half16 };

// Calls work<M>() with the numbers of a precision.
template <class Work>
void with_math(Precision precision, const Work& work) {
  switch (precision) {
    case Precision::Fp32:
      return work.template operator()<Math::Fp32>();
    case Precision::Tf32:
      return work.template operator()<Math::Tf32>();
    case Precision::Bf16:
      return work.template operator()<Math::Bf16>();
    case Precision::Fp16:
      return work.template operator()<Math::Fp16>();
  }
}

template <Math M>
struct Number {
  using type = float;
};
template <>
struct Number<Math::Bf16> {
  using type = __nv_bfloat16;
};
template <>
struct Number<Math::Fp16> {
  using type = __half;
};
template <>
struct Number<Math::Half16> {
  using type = __half;
};

// One operand of the product as it is stored.
template <class T>
struct Operand {
  const T* data;
  int rows, cols;
};

template <int Bytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool inside) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = inside ? Bytes : 0;  // the rest is filled with zeros
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(bytes));
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int Left>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left));
}

// Copies the ROWS × COLS piece at (row0, col0) to shared memory, with zeros outside the matrix. Whole: its rows begin
// at 16-byte boundaries.
template <bool Whole, class Lies, class T, int ROWS, int COLS, int THREADS>
__device__ __forceinline__ void bring_piece(T* shared, const Operand<T>& from, int row0, int col0) {
  const T* data = from.data;
  if constexpr (Whole) {
    constexpr int n = 16 / sizeof(T), per_row = COLS / n;
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * per_row; i += THREADS) {
      const int r = i / per_row, c = i % per_row * n;
      const bool inside = row0 + r < from.rows && col0 + c < from.cols;
      const int64_t at = inside ? static_cast<int64_t>(row0 + r) * from.cols + col0 + c : 0;
      copy_async<16>(shared + Lies::at(r, c), data + at, inside);
    }
  } else {
#pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
      const int r = i / COLS, c = i % COLS;
      const bool inside = row0 + r < from.rows && col0 + c < from.cols;
      const int64_t at = inside ? static_cast<int64_t>(row0 + r) * from.cols + col0 + c : 0;
      if constexpr (sizeof(T) == 4)
        copy_async<4>(shared + Lies::at(r, c), data + at, inside);
      else
        shared[Lies::at(r, c)] = inside ? data[at] : T(0.f);
    }
  }
}

__device__ __forceinline__ uint32_t to_tf32(float v) {
  uint32_t out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(v));
  return out;
}

// Two numbers rounded to 16 bits, the first in the low half.
template <Math M>
__device__ __forceinline__ uint32_t pair_of(float low, float high) {
  if constexpr (M == Math::Bf16) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  } else {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  }
}

// Loads four 8×8 matrices of 16-bit numbers, with one row address per lane.
template <bool Transposed>
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const void* row) {
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
}

template <Math M>
__device__ __forceinline__ void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (M == Math::Tf32)
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (M == Math::Bf16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else if constexpr (M == Math::Fp16)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else {  // Half16: the sum is kept in fp16, as on units without fp32 accumulators
    const __half2 low = __floats2half2_rn(c[0], c[1]), high = __floats2half2_rn(c[2], c[3]);
    uint32_t d0 = *reinterpret_cast<const uint32_t*>(&low), d1 = *reinterpret_cast<const uint32_t*>(&high);
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
        : "+r"(d0), "+r"(d1)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    const float2 l = __half22float2(*reinterpret_cast<__half2*>(&d0)),
                 h = __half22float2(*reinterpret_cast<__half2*>(&d1));
    c[0] = l.x, c[1] = l.y, c[2] = h.x, c[3] = h.y;
  }
}

template <Math M, bool TA, bool TB, class Shape, bool WholeA, bool WholeB = WholeA>
struct TileProduct {
  using T = typename Number<M>::type;
  static constexpr Math math = M;
  static constexpr bool whole_a = WholeA, whole_b = WholeB, by_warpgroups = false;
  static constexpr bool alone = Shape::BM * Shape::BN > 128 * 128;  // on its multiprocessor
  static constexpr int BM = Shape::BM, BN = Shape::BN, WK = Shape::WK, threads = Shape::threads, stages = Shape::stages;
  static constexpr int BK = Shape::template BK<T>;
  static constexpr int warp_m = BM / Shape::WM, warp_n = BN / Shape::WN, warp_k = BK / WK;
  static constexpr int MF = warp_m / 16, NF = warp_n / 8;  // fragments of 16 × 8 per warp
  static constexpr int k_step = sizeof(T) == 4 ? 8 : 16;
  using Pieces = TilePieces<T, TA, TB, Shape>;
  using A = typename Pieces::A;
  using B = typename Pieces::B;
  using C = typename Pieces::C;
  static constexpr int a_size = Pieces::a_rows * A::stride, stage_size = a_size + Pieces::b_rows * B::stride;
  static constexpr int sum_size = BM * C::stride;
  static_assert(MF >= 1 && NF >= 2 && NF % 2 == 0 && warp_k % k_step == 0);

  static size_t shared_bytes(int64_t k) {
    const int64_t used = std::min<int64_t>(stages, ceil_div(k, BK));
    return std::max<size_t>(used * stage_size * sizeof(T), WK * sum_size * sizeof(float));
  }

  float sum[MF][NF][4] = {};
  T* shared;
  int wm, wn, wk, lane;

  __device__ explicit TileProduct(void* memory) : shared(static_cast<T*>(memory)) {
    const int warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;
    wk = warp % WK;
    wn = warp / WK % Shape::WN;
    wm = warp / WK / Shape::WN;
  }

  // An operand is a matrix in memory, or anything else that has an overload of bring_piece.
  template <class From>
  __device__ __forceinline__ void bring_a(From& a, int row0, int step) {
    bring_piece<WholeA, A, T, Pieces::a_rows, Pieces::a_cols, threads>(shared + step % stages * stage_size, a,
                                                                       TA ? step * BK : row0, TA ? row0 : step * BK);
  }
  template <class From>
  __device__ __forceinline__ void bring_b(From& b, int col0, int step) {
    bring_piece<WholeB, B, T, Pieces::b_rows, Pieces::b_cols, threads>(shared + step % stages * stage_size + a_size, b,
                                                                       TB ? col0 : step * BK, TB ? step * BK : col0);
  }

  // Copies the first stages of b (begin_b) and of a (begin_a). They are separate because b may be known earlier than a.
  template <class From>
  __device__ __forceinline__ void begin_b(From& b, int col0, int k_size) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < stages - 1 && s < steps; ++s) bring_b(b, col0, s);
  }
  template <class From>
  __device__ __forceinline__ void begin_a(From& a, int row0, int k_size) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < stages - 1; ++s) {
      if (s < steps) bring_a(a, row0, s);
      commit_copies();
    }
  }

  // Call after begin_b and begin_a. Calls `each_stage(b piece of k × n in shared memory, k0)` when a stage has arrived.
  template <class FromA, class FromB, class EachStage>
  __device__ __forceinline__ void run(FromA& a, FromB& b, int row0, int col0, int k_size,
                                      EachStage each_stage) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < steps; ++s) {
      wait_for_copies<stages - 2>();
      __syncthreads();
      const int next = s + stages - 1;
      if (next < steps) {
        bring_b(b, col0, next);
        bring_a(a, row0, next);
      }
      commit_copies();
      const T* at = shared + s % stages * stage_size;
      multiply(at, at + a_size);
      each_stage(at + a_size, s * BK);
    }
  }

  __device__ void multiply(const T* a, const T* b) {
#pragma unroll
    for (int k = 0; k < warp_k; k += k_step) {
      const int k0 = wk * warp_k + k;
      if constexpr (M == Math::Fp32)
        multiply_plain(a, b, k0);
      else
        multiply_tensor(a, b, k0);
    }
  }

  // Each lane owns the elements of the tensor-core layout: rows g and g + 8, columns 2t and 2t + 1 of each fragment.
  __device__ void multiply_plain(const T* a, const T* b, int k0) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll 4
    for (int k = k0; k < k0 + k_step; ++k) {
      float x[2 * MF], y[2 * NF];
#pragma unroll
      for (int i = 0; i < 2 * MF; ++i) {
        const int m = wm * warp_m + i * 8 + g;
        x[i] = static_cast<float>(a[TA ? A::at(k, m) : A::at(m, k)]);
      }
#pragma unroll
      for (int j = 0; j < 2 * NF; ++j) {
        const int n = wn * warp_n + j / 2 * 8 + 2 * t + j % 2;
        y[j] = static_cast<float>(b[TB ? B::at(n, k) : B::at(k, n)]);
      }
#pragma unroll
      for (int i = 0; i < MF; ++i)
#pragma unroll
        for (int j = 0; j < NF; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) sum[i][j][e] = fmaf(x[2 * i + e / 2], y[2 * j + e % 2], sum[i][j][e]);
    }
  }

  __device__ void multiply_tensor(const T* a, const T* b, int k0) {
    uint32_t x[MF][4], y[NF][2];
#pragma unroll
    for (int i = 0; i < MF; ++i) load_a(x[i], a, wm * warp_m + i * 16, k0);
#pragma unroll
    for (int j = 0; j < NF; j += 2) load_b(y[j], y[j + 1], b, k0, wn * warp_n + j * 8);
#pragma unroll
    for (int i = 0; i < MF; ++i)
#pragma unroll
      for (int j = 0; j < NF; ++j) multiply_add<M>(sum[i][j], x[i], y[j][0], y[j][1]);
  }

  __device__ void load_a(uint32_t (&r)[4], const T* a, int m0, int k0) const {
    if constexpr (sizeof(T) == 4) {
      const int g = lane / 4, t = lane % 4;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int m = m0 + g + e % 2 * 8, k = k0 + t + e / 2 * 4;
        r[e] = to_tf32(a[TA ? A::at(k, m) : A::at(m, k)]);
      }
    } else if constexpr (TA) {
      load_matrices<true>(r, a + A::at(k0 + lane / 16 * 8 + lane % 8, m0 + lane / 8 % 2 * 8));
    } else {
      load_matrices<false>(r, a + A::at(m0 + lane % 16, k0 + lane / 16 * 8));
    }
  }

  // Loads two adjacent fragments of 8 columns.
  __device__ void load_b(uint32_t (&left)[2], uint32_t (&right)[2], const T* b, int k0, int n0) const {
    if constexpr (sizeof(T) == 4) {
      const int g = lane / 4, t = lane % 4;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int k = k0 + t + e * 4;
        left[e] = to_tf32(b[TB ? B::at(n0 + g, k) : B::at(k, n0 + g)]);
        right[e] = to_tf32(b[TB ? B::at(n0 + 8 + g, k) : B::at(k, n0 + 8 + g)]);
      }
    } else {
      uint32_t r[4];
      if constexpr (TB)
        load_matrices<false>(r, b + B::at(n0 + lane / 16 * 8 + lane % 8, k0 + lane / 8 % 2 * 8));
      else
        load_matrices<true>(r, b + B::at(k0 + lane % 16, n0 + lane / 16 * 8));
      left[0] = r[0], left[1] = r[1], right[0] = r[2], right[1] = r[3];
    }
  }

  // Call after run: writes the warps' parts to shared memory. Then quad(row, col) adds them, warp 0 first.
  __device__ void meet() {
    wait_for_copies<0>();
    __syncthreads();
    float* to = reinterpret_cast<float*>(shared) + wk * sum_size;
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MF; ++i)
#pragma unroll
      for (int j = 0; j < NF; ++j) {
        const int row = wm * warp_m + i * 16 + g, col = wn * warp_n + j * 8 + 2 * t;
        *reinterpret_cast<float2*>(to + C::at(row, col)) = make_float2(sum[i][j][0], sum[i][j][1]);
        *reinterpret_cast<float2*>(to + C::at(row + 8, col)) = make_float2(sum[i][j][2], sum[i][j][3]);
      }
    __syncthreads();
  }

  static constexpr int quads = BM * BN / 4 / threads;  // per thread
  static_assert(BM * BN % (4 * threads) == 0 || BM * BN < 4 * threads);
  static constexpr int quads_per_thread = quads > 0 ? quads : 1;

  // Returns the position of the thread's i-th group of four elements in the tile. Row BM: no such group.
  __device__ static int2 quad_at(int i) {
    const int q = threadIdx.x + i * threads;
    return make_int2(q / (BN / 4), q % (BN / 4) * 4);
  }

  __device__ Pack<4> quad(int row, int col) const {
    const float* from = reinterpret_cast<const float*>(shared) + C::at(row, col);
    Pack<4> out = *reinterpret_cast<const Pack<4>*>(from);
#pragma unroll
    for (int w = 1; w < WK; ++w) {
      const float4 more = *reinterpret_cast<const float4*>(from + w * sum_size);
      out.v[0] += more.x, out.v[1] += more.y, out.v[2] += more.z, out.v[3] += more.w;
    }
    return out;
  }
};

// What a thread adds to the moments of a tile, see Moments: over its rows, in `Each` adjacent columns. Threads whose numbers
// agree modulo Columns / Each have the same columns.
template <int Columns, int Each, int Threads>
struct ColumnMoments {
  static constexpr int parts = Columns / Each, warps = Threads / 32;
  static_assert(32 % parts == 0);
  Pack<Each> pivot{}, sum{}, squares{};
  __device__ __forceinline__ void add(const Pack<Each>& v) {
#pragma unroll
    for (int e = 0; e < Each; ++e) {
      const float d = v.v[e] - pivot.v[e];
      sum.v[e] += d, squares.v[e] = fmaf(d, d, squares.v[e]);
    }
  }
  // `all`: two rows of columns for each warp, in shared memory that nothing else uses. `moments`: of the tile, n columns.
  __device__ __forceinline__ void write(float* all, float* moments, int n, int col0) {
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
#pragma unroll
    for (int e = 0; e < Each; ++e) {
#pragma unroll
      for (int d = parts; d < 32; d *= 2) {
        sum.v[e] += __shfl_xor_sync(0xffffffffu, sum.v[e], d);
        squares.v[e] += __shfl_xor_sync(0xffffffffu, squares.v[e], d);
      }
      const int col = lane % parts * Each + e;
      if (lane < parts) all[2 * warp * Columns + col] = sum.v[e], all[(2 * warp + 1) * Columns + col] = squares.v[e];
      if (thread < parts && col0 + col < n) moments[2 * n + col0 + col] = pivot.v[e];
    }
    __syncthreads();
    for (int i = thread; i < 2 * Columns; i += Threads) {
      const int which = i / Columns, col = i % Columns;
      float total = 0;
      for (int w = 0; w < warps; ++w) total += all[(2 * w + which) * Columns + col];
      if (col0 + col < n) moments[which * n + col0 + col] = total;
    }
  }
};

// Sums the columns of the k × n operand b, or of a if it is stored as k × m, while they are in shared memory: the bias
// gradient. Threads share columns.
template <class Product, bool OfA = false>
struct ColumnSums {
  static constexpr int columns = OfA ? Product::BM : Product::BN, parts = Product::threads / columns;
  static_assert(Product::threads % columns == 0);
  float sum = 0;
  __device__ void operator()(const typename Product::T* b, int) {
    const int n = threadIdx.x % columns, part = threadIdx.x / columns;
#pragma unroll 4
    for (int k = part; k < Product::BK; k += parts) {
      if constexpr (OfA)
        sum += static_cast<float>(b[Product::A::at(k, n) - Product::a_size]);
      else
        sum += static_cast<float>(b[Product::B::at(k, n)]);
    }
  }
  // Returns the sum of column threadIdx.x, for threads below `columns`. `memory`: one unused float per thread.
  __device__ float joined(float* memory) const {
    __syncthreads();
    memory[threadIdx.x] = sum;
    __syncthreads();
    float total = 0;
    if (threadIdx.x < columns)
      for (int p = 0; p < parts; ++p) total += memory[p * columns + threadIdx.x];
    return total;
  }
};

}  // namespace ws::cuda
