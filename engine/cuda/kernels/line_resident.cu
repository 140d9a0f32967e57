// Fits a line through millions of points, with many steps in one launch. Registers and shared memory of all
// multiprocessors hold the points, so only the first step reads them. In every step each block publishes its sums and
// all other blocks wait for them.
#include <cuda_pipeline.h>

#include <cstdint>

#include "engine/cuda/kernels/line.cuh"

namespace ws::cuda {
namespace {

constexpr int kResidentThreads = 512, kResidentWarps = kResidentThreads / 32;
constexpr int kInRegisters = 8;  // packs of four points per thread; the rest is in shared memory
constexpr int kMostBlocks = 160;
constexpr int64_t kPackBytes = 2 * sizeof(float4);

// Three sums, each next to the number of its step. Eight bytes are read and written together, so a sum with the right
// number is complete.
struct alignas(16) Slot {
  float squares;
  uint32_t first;
  float slope;
  uint32_t second;
  float offset;
  uint32_t third;
  uint32_t unused[2];
};
// Two sets of slots: a block may be one step ahead of a block that still reads.
struct Board {
  Slot slots[2][kMostBlocks];
  uint32_t steps_before;  // over all launches; step numbers continue from it
};
static_assert(sizeof(Board) <= kExchangeBytes);

__device__ __forceinline__ void write_slot(Slot* to, const LineSums& s, uint32_t number) {
  const auto bits = [](float v) { return __float_as_uint(v); };
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bits(s.squares)), "r"(number),
               "r"(bits(s.slope)), "r"(number)
               : "memory");
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(&to->offset), "r"(bits(s.offset)), "r"(number)
               : "memory");
}

__device__ __forceinline__ LineSums wait_for_slot(const Slot* from, uint32_t number) {
  uint32_t squares, first, slope, second, offset, third;
  do {
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(squares), "=r"(first), "=r"(slope), "=r"(second)
                 : "l"(from)
                 : "memory");
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(offset), "=r"(third)
                 : "l"(&from->offset)
                 : "memory");
  } while (first != number || second != number || third != number);
  return {__uint_as_float(squares), __uint_as_float(slope), __uint_as_float(offset)};
}

// A thread's share: packs of four points, one from each round over all threads of the grid, and perhaps one of the up
// to three remaining points.
struct Share {
  FourPoints packs[kInRegisters];
  float4 *x_shared, *y_shared;
  int count = 0;
  float x = 0, y = 0;
  bool one_more = false;

  __device__ Share(const Points& points, float4* memory, int rounds_shared)
      : x_shared(memory + threadIdx.x), y_shared(x_shared + rounds_shared * kResidentThreads) {
    const int64_t mine = blockIdx.x * kResidentThreads + threadIdx.x, all = points.n / 4, left_over = 4 * all + mine;
    const int64_t round = static_cast<int64_t>(gridDim.x) * kResidentThreads;
    if (mine < all) count = static_cast<int>((all - 1 - mine) / round) + 1;
    const auto* x_packs = reinterpret_cast<const float4*>(points.x);
    const auto* y_packs = reinterpret_cast<const float4*>(points.y);
    for (int j = kInRegisters; j < count; ++j) {
      __pipeline_memcpy_async(x_shared + (j - kInRegisters) * kResidentThreads, x_packs + mine + j * round, 16);
      __pipeline_memcpy_async(y_shared + (j - kInRegisters) * kResidentThreads, y_packs + mine + j * round, 16);
    }
    __pipeline_commit();
#pragma unroll
    for (int j = 0; j < kInRegisters; ++j)
      if (j < count) packs[j] = points.four(mine + j * round);
    one_more = left_over < points.n;
    if (one_more) x = points.x[left_over], y = points.y[left_over];
    __pipeline_wait_prior(0);
  }

  __device__ LineSums sums(float w, float b) const {
    LineSums s;
#pragma unroll
    for (int j = 0; j < kInRegisters; ++j)
      if (j < count) add_four(s, packs[j], w, b);
#pragma unroll 2
    for (int j = 0; j < count - kInRegisters; ++j) add_four(s, {x_shared[j * kResidentThreads], y_shared[j * kResidentThreads]}, w, b);
    if (one_more) s.add(x, y, w, b);
    return s;
  }
};

struct Parts {
  LineSums warps[kResidentWarps];
  LineSums blocks[kMostBlocks / 32];
};

// Sums over the grid: first within the block, then over all blocks, which the first warps wait for.
__device__ __forceinline__ LineSums sum_over_grid(LineSums s, Slot* slots, uint32_t number, Parts& parts) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, blocks = static_cast<int>(gridDim.x);
  s = sum_over<32>(s);
  if (lane == 0) parts.warps[warp] = s;
  __syncthreads();
  if (warp == 0) {
    s = sum_over<kResidentWarps>(parts.warps[lane % kResidentWarps]);
    if (lane == 0) write_slot(slots + blockIdx.x, s, number);
  }
  if (warp * 32 < blocks) {
    const int block = static_cast<int>(threadIdx.x);
    s = sum_over<32>(block < blocks ? wait_for_slot(slots + block, number) : LineSums{});
    if (lane == 0) parts.blocks[warp] = s;
  }
  __syncthreads();
  LineSums total = parts.blocks[0];
  for (int i = 1; i * 32 < blocks; ++i) total = add(total, parts.blocks[i]);
  return total;
}

__global__ __launch_bounds__(kResidentThreads, 1) void line_resident_kernel(const __grid_constant__ LineArguments a,
                                                                    Scratch scratch, int rounds_shared) {
  extern __shared__ float4 memory[];
  __shared__ Parts parts;
  Board& board = *reinterpret_cast<Board*>(exchange(scratch));
  const uint32_t before = __ldcg(&board.steps_before);
  const Share share(points_of(a), memory, rounds_shared);
  const auto sums = [&](float w, float b) { return share.sums(w, b); };
  run_steps(a, sums, [&](const LineSums& mine, int i) {
    return sum_over_grid(mine, board.slots[i % 2], before + static_cast<uint32_t>(i) + 1, parts);
  });
  if (blockIdx.x == 0 && threadIdx.x == 0) board.steps_before = before + static_cast<uint32_t>(a.step.steps);
}

struct Residency {
  int blocks = 0;  // 0 if the device cannot run all of them at once
  int64_t rounds_shared = 0;
};

const Residency& residency() {
  static const Residency found = [] {
    const auto ask = [](cudaDeviceAttr what) {
      int value = 0;
      if (cudaDeviceGetAttribute(&value, what, 0) != cudaSuccess) cudaGetLastError();
      return value;
    };
    if (!ask(cudaDevAttrCooperativeLaunch)) return Residency{};
    const int64_t own = sizeof(Parts) + 1024;
    const int64_t bytes = std::max<int64_t>(0, ask(cudaDevAttrMaxSharedMemoryPerBlockOptin) - own);
    return Residency{std::min(ask(cudaDevAttrMultiProcessorCount), kMostBlocks), bytes / (kResidentThreads * kPackBytes)};
  }();
  return found;
}

}  // namespace

int64_t most_resident_points() { return 4 * kResidentThreads * residency().blocks * (kInRegisters + residency().rounds_shared); }

void linear_steps_resident(Queue queue, Scratch scratch, const LineArguments& a) {
  const int64_t rounds = ceil_div(a.step.x.rows / 4, int64_t{kResidentThreads} * residency().blocks);
  const int shared = static_cast<int>(std::max<int64_t>(0, rounds - kInRegisters));
  const size_t bytes = static_cast<size_t>(shared * kResidentThreads * kPackBytes);
  allow_shared(line_resident_kernel, bytes);
  launch_together(queue, line_resident_kernel, residency().blocks, kResidentThreads, bytes, a, scratch, shared);
}

}  // namespace ws::cuda
