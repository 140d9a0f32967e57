// A block's tile of a matrix product on Hopper's warpgroup instructions, with the interface of TileProduct: groups of
// four warps, each with 64 rows, multiply operands of 16 bits from shared memory. Shapes as there.
//
// Both layouts in shared memory have lines of 64 elements, 128 bytes, whose 16-byte parts are permuted by the line's
// number modulo 8, as the instructions expect. An operand along k has a line for each row. An operand across k has one
// for each k, and a block of 64 lines for each 64 columns.
#pragma once
#include "engine/cuda/kernels/tile_product.cuh"

namespace ws::cuda {

struct AlongK {
  WS_ANYWHERE static int at(int row, int col) { return row * 64 + (col ^ ((row & 7) * 8)); }
};
struct AcrossK {
  WS_ANYWHERE static int at(int row, int col) { return col / 64 * 4096 + row * 64 + (col % 64 ^ ((row & 7) * 8)); }
};

// Describes an operand that begins at `address` in shared memory: 1024 bytes from eight lines to the next eight, 8192
// from a block of columns to the next.
__device__ __forceinline__ uint64_t operand_descriptor(unsigned address) {
  return uint64_t{(address & 0x3FFFFu) >> 4} | uint64_t{8192 >> 4} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

__device__ __forceinline__ void begin_warpgroup_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_warpgroup_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Left>
__device__ __forceinline__ void wait_for_warpgroup_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}
// Copies that this thread has waited for become visible to the tensor cores.
__device__ __forceinline__ void show_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// clang-format off
// The sums are the first operands of an instruction: WS_NAMES_n their names, WS_SUMS_n the variables. `rest` names what follows.
#define WS_FOUR(s, j) "+f"(s[j][0]), "+f"(s[j][1]), "+f"(s[j][2]), "+f"(s[j][3])
#define WS_SUMS_16(s, j) WS_FOUR(s, j), WS_FOUR(s, j + 1), WS_FOUR(s, j + 2), WS_FOUR(s, j + 3)
#define WS_SUMS_32(s, j) WS_SUMS_16(s, j), WS_SUMS_16(s, j + 4)
#define WS_SUMS_64(s, j) WS_SUMS_32(s, j), WS_SUMS_32(s, j + 8)
#define WS_SUMS_128(s, j) WS_SUMS_64(s, j), WS_SUMS_64(s, j + 16)
#define WS_NAMES_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WS_NAMES_32 WS_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WS_NAMES_64 WS_NAMES_32 \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53" \
    ",%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WS_NAMES_128 WS_NAMES_64 \
    ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85" \
    ",%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107" \
    ",%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define WS_PRODUCT(type, columns, sums, rest, ...)  \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" WS_NAMES_##sums "}, " rest ";"  \
               : WS_SUMS_##sums(s, 0) : __VA_ARGS__)
#define WS_SHARED "l"(a), "l"(b), "n"(int{TA}), "n"(int{TB})
#define WS_PRODUCTS(type)  \
  if constexpr (N == 4) WS_PRODUCT(type, "32", 16, "%16, %17, 1, 1, 1, %18, %19", WS_SHARED);  \
  if constexpr (N == 8) WS_PRODUCT(type, "64", 32, "%32, %33, 1, 1, 1, %34, %35", WS_SHARED);  \
  if constexpr (N == 16) WS_PRODUCT(type, "128", 64, "%64, %65, 1, 1, 1, %66, %67", WS_SHARED);  \
  if constexpr (N == 32) WS_PRODUCT(type, "256", 128, "%128, %129, 1, 1, 1, %130, %131", WS_SHARED)
#define WS_REGISTERS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int{TB})
#define WS_ROWS_TIMES(type)  \
  if constexpr (N == 4) WS_PRODUCT(type, "32", 16, "{%16,%17,%18,%19}, %20, 1, 1, 1, %21", WS_REGISTERS);  \
  if constexpr (N == 8) WS_PRODUCT(type, "64", 32, "{%32,%33,%34,%35}, %36, 1, 1, 1, %37", WS_REGISTERS)
// clang-format on

// s += a·b for 16 k and 8·N columns. TA, TB: the operand lies across k.
template <Math M, bool TA, bool TB, int N>
__device__ __forceinline__ void warpgroup_multiply_add(float (&s)[N][4], uint64_t a, uint64_t b) {
  static_assert(N == 4 || N == 8 || N == 16 || N == 32);
  if constexpr (M == Math::Bf16) {
    WS_PRODUCTS("bf16");
  } else {
    WS_PRODUCTS("f16");
  }
}
// The same with a in registers, which lies along k.
template <Math M, bool TB, int N>
__device__ __forceinline__ void warpgroup_multiply_add(float (&s)[N][4], const uint32_t (&a)[4], uint64_t b) {
  static_assert(N == 4 || N == 8);
  if constexpr (M == Math::Bf16) {
    WS_ROWS_TIMES("bf16");
  } else {
    WS_ROWS_TIMES("f16");
  }
}
#undef WS_FOUR
#undef WS_SUMS_16
#undef WS_SUMS_32
#undef WS_SUMS_64
#undef WS_SUMS_128
#undef WS_NAMES_16
#undef WS_NAMES_32
#undef WS_NAMES_64
#undef WS_NAMES_128
#undef WS_PRODUCT
#undef WS_SHARED
#undef WS_PRODUCTS
#undef WS_REGISTERS
#undef WS_ROWS_TIMES

template <Math M, bool TA, bool TB, int Columns, int Groups = 2>
struct WarpgroupProduct {
  using T = typename Number<M>::type;
  static_assert(sizeof(T) == 2);
  static constexpr Math math = M;
  static constexpr bool whole_a = true, whole_b = true, by_warpgroups = true;
  static constexpr int BM = 64 * Groups, BN = Columns, BK = 64, threads = 128 * Groups;
  // Two blocks of up to 128 × 128 share a multiprocessor: one multiplies while the other waits. A block of a larger tile
  // has it alone, so it goes on to the next stage while it multiplies.
  static constexpr bool alone = BM + BN > 256;
  static constexpr int stages = alone || BM + BN == 192 ? 4 : BM + BN == 128 ? 6 : 3, ahead = alone ? stages - 2 : stages - 1;
  static constexpr int a_rows = TA ? BK : BM, a_cols = TA ? BM : BK, b_rows = TB ? BN : BK, b_cols = TB ? BK : BN;
  using A = std::conditional_t<TA, AcrossK, AlongK>;
  using B = std::conditional_t<TB, AlongK, AcrossK>;
  using C = Layout<float, BN, 2>;
  static constexpr int a_size = BM * BK, stage_size = a_size + BN * BK, sum_size = BM * C::stride, NF = BN / 8;

  static size_t shared_bytes(int64_t) {
    return 1024 + std::max<size_t>(stages * stage_size * sizeof(T), sum_size * sizeof(float));
  }

  float sum[NF][4] = {};
  T* shared;

  __device__ explicit WarpgroupProduct(void* memory)
      : shared(reinterpret_cast<T*>(static_cast<char*>(memory) +
                                    (1024 - __cvta_generic_to_shared(memory) % 1024) % 1024)) {}

  template <class From>
  __device__ __forceinline__ void bring_a(From& a, int row0, int step) {
    bring_piece<true, A, T, a_rows, a_cols, threads>(shared + step % stages * stage_size, a, TA ? step * BK : row0,
                                                     TA ? row0 : step * BK);
  }
  template <class From>
  __device__ __forceinline__ void bring_b(From& b, int col0, int step) {
    bring_piece<true, B, T, b_rows, b_cols, threads>(shared + step % stages * stage_size + a_size, b,
                                                     TB ? col0 : step * BK, TB ? step * BK : col0);
  }
  template <class From>
  __device__ __forceinline__ void begin_b(From& b, int col0, int k_size) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < ahead && s < steps; ++s) bring_b(b, col0, s);
  }
  template <class From>
  __device__ __forceinline__ void begin_a(From& a, int row0, int k_size) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < ahead; ++s) {
      if (s < steps) bring_a(a, row0, s);
      commit_copies();
    }
  }

  template <class FromA, class FromB, class EachStage>
  __device__ __forceinline__ void run(FromA& a, FromB& b, int row0, int col0, int k_size,
                                      EachStage each_stage) {
    const int steps = (k_size + BK - 1) / BK;
#pragma unroll 1
    for (int s = 0; s < steps; ++s) {
      wait_for_copies<ahead - 1>();
      show_copies();
      __syncthreads();
      T* at = shared + s % stages * stage_size;
      multiply(at, at + a_size);
      if constexpr (alone) wait_for_warpgroup_products<1>();
      const int next = s + ahead;  // overwrites what step s - 1 read, or if `alone` step s - 2
      if (next < steps) {
        bring_b(b, col0, next);
        bring_a(a, row0, next);
      }
      commit_copies();
      each_stage(at + a_size, s * BK);
      if constexpr (!alone) wait_for_warpgroup_products<0>();
    }
    wait_for_warpgroup_products<0>();
  }

  __device__ __forceinline__ void multiply(const T* a, const T* b) {
    const int group = static_cast<int>(threadIdx.x) / 128;  // its 64 rows are 64 lines, or one block of lines
    const uint64_t first_a = operand_descriptor(static_cast<unsigned>(__cvta_generic_to_shared(a + group * 4096)));
    const uint64_t first_b = operand_descriptor(static_cast<unsigned>(__cvta_generic_to_shared(b)));
    begin_warpgroup_products();
#pragma unroll
    for (int k = 0; k < BK / 16; ++k)  // 16 k: 32 bytes along k, 16 lines across k
      warpgroup_multiply_add<M, TA, !TB>(sum, first_a + k * (TA ? 128 : 2), first_b + k * (TB ? 2 : 128));
    commit_warpgroup_products();
  }

  // Call after run: writes the sums to shared memory, for quad(row, col).
  __device__ void meet() {
    wait_for_copies<0>();
    __syncthreads();
    float* to = reinterpret_cast<float*>(shared);
    const int lane = threadIdx.x % 32, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, col = lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < NF; ++j) {
      *reinterpret_cast<float2*>(to + C::at(row, j * 8 + col)) = make_float2(sum[j][0], sum[j][1]);
      *reinterpret_cast<float2*>(to + C::at(row + 8, j * 8 + col)) = make_float2(sum[j][2], sum[j][3]);
    }
    __syncthreads();
  }

  // Call after run: writes the rounded sums as rows of a matrix with n columns, whole 16 bytes of them. row_of(row of the
  // tile) is the row there, or -1, but not for row 0. Each warp moves its own rows through shared memory. moments: of the
  // tile, see Convolution, or null.
  template <class RowOf>
  __device__ __forceinline__ void write(T* to, int n, int col0, RowOf row_of, float* moments = nullptr) {
    wait_for_copies<0>();
    __syncthreads();
    constexpr int parts = BN / 8;
    const int lane = threadIdx.x % 32, row0 = static_cast<int>(threadIdx.x) / 32 * 16, c = lane % parts * 8;
#pragma unroll
    for (int j = 0; j < NF; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<uint32_t*>(shared + place(row0 + lane / 4 + 8 * h, j * 8 + lane % 4 * 2)) =
            pair_of<M>(sum[j][2 * h], sum[j][2 * h + 1]);
    moments ? __syncthreads() : __syncwarp();
    ColumnMoments<BN, 8, threads> sums;
    if (moments) sums.pivot = eight(shared + place(0, c));
#pragma unroll 4
    for (int i = lane; i < 16 * parts; i += 32) {
      const int r = row0 + i / parts, row = row_of(r);
      if (row < 0 || col0 + c >= n) continue;
      const T* from = shared + place(r, c);
      *reinterpret_cast<uint4*>(to + static_cast<int64_t>(row) * n + col0 + c) = *reinterpret_cast<const uint4*>(from);
      if (moments) sums.add(eight(from));
    }
    if (moments) sums.write(reinterpret_cast<float*>(shared + BM * BN), moments, n, col0);  // behind the tile
  }

  // Where `write` has an element of the tile in shared memory.
  __device__ static __forceinline__ int place(int row, int col) { return col / 64 * (BM * 64) + AlongK::at(row, col % 64); }
  __device__ static __forceinline__ Pack<8> eight(const T* from) {
    return load_pack<8>(Ref{reinterpret_cast<char*>(const_cast<T*>(from)), M == Math::Bf16 ? DType::Bf16 : DType::F16}, 0);
  }

  static constexpr int quads_per_thread = BM * BN / 4 / threads;
  __device__ static int2 quad_at(int i) {
    const int q = static_cast<int>(threadIdx.x) + i * threads;
    return make_int2(q / (BN / 4), q % (BN / 4) * 4);
  }
  __device__ Pack<4> quad(int row, int col) const {
    return *reinterpret_cast<const Pack<4>*>(reinterpret_cast<const float*>(shared) + C::at(row, col));
  }
};

}  // namespace ws::cuda
