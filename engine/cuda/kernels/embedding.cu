// Rows of a table chosen by symbols, plus a row for each position; and the gradient, which adds up in a fixed order.
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kEach = 4, kAcross = 32 * kEach;
constexpr int kWarpRows = 256;                 // rows that a warp searches at once
constexpr int kSearched = kWarps * kWarpRows;  // rows that a block searches at once
constexpr int kRowsOfAStrip = 512;             // short enough for one symbol to be common
constexpr int kCounters = kCounterBytes / 4;

struct EmbedArguments {
  Tensor symbols, table, positions, h;
  int64_t rows;
  int time, width;
  bool whole;
};

__device__ __forceinline__ const int32_t* symbols_of(const Tensor& t) {
  return reinterpret_cast<const int32_t*>(resolve(t).data);
}

// One thread for each four columns.
__global__ __launch_bounds__(kThreads) void embed_kernel(const __grid_constant__ EmbedArguments a) {
  wait_for_previous();
  const int per_row = (a.width + kEach - 1) / kEach;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, row = i / per_row;
  if (row >= a.rows) return;
  const int col = static_cast<int>(i % per_row) * kEach, count = a.width - col;
  const int64_t symbol = symbols_of(a.symbols)[row];
  Pack<kEach> v = load_some<kEach>(resolve(a.table), symbol * a.width + col, count, a.whole);
  if (a.positions) {
    const Pack<kEach> p = load_some<kEach>(resolve(a.positions), row % a.time * a.width + col, count, a.whole);
#pragma unroll
    for (int j = 0; j < kEach; ++j) v.v[j] += p.v[j];
  }
  store_some<kEach>(resolve(a.h), row * a.width + col, v, count, a.whole);
}

// Blocks of the gradient: one for each symbol, strip of rows and 128 columns; then one for each position and 128
// columns.
struct EmbedGradArguments {
  Tensor symbols, dh, dtable, dpositions;
  int64_t rows, rows_each, texts;  // rows_each: of a strip
  int time, width, count, strips, chunks;
  bool whole;
};

// A warp's sum of rows of dh, four columns a lane.
template <DType Type>
struct RowSum {
  Pack<kEach> sum{};
  __device__ __forceinline__ void add(const EmbedGradArguments& a, int64_t row, int col) {
    const Ref dh{static_cast<char*>(a.dh.data), Type};
    const Pack<kEach> v = load_some<kEach>(dh, row * a.width + col, a.width - col, a.whole);
#pragma unroll
    for (int j = 0; j < kEach; ++j) sum.v[j] += v.v[j];
  }
};

// The warp's rows with this symbol, in order.
__device__ __forceinline__ int find_rows(const int32_t* symbols, int symbol, int64_t begin, int count,
                                         uint16_t* found) {
  const int lane = threadIdx.x % 32;
  int total = 0;
#pragma unroll 4
  for (int r = lane; r - lane < count; r += 32) {
    const bool hit = r < count && symbols[begin + r] == symbol;
    const unsigned hits = __ballot_sync(0xffffffffu, hit);
    if (hit) found[total + __popc(hits & ((1u << lane) - 1))] = static_cast<uint16_t>(r);
    total += __popc(hits);
  }
  __syncwarp();
  return total;
}

template <DType Type>
__device__ __forceinline__ void add_symbol(const EmbedGradArguments& a, RowSum<Type>& sum, int symbol, int strip,
                                           int col, uint16_t* found) {
  const int32_t* symbols = symbols_of(a.symbols);
  const int64_t begin = strip * a.rows_each, end = min(a.rows, begin + a.rows_each);
  const int warp = threadIdx.x / 32;
  for (int64_t first = begin; first < end; first += kSearched) {
    const int all = static_cast<int>(min(end - first, static_cast<int64_t>(kSearched)));
    const int each = (all + kWarps - 1) / kWarps;
    const int64_t mine = first + warp * each;
    const int count =
        static_cast<int>(max(min(first + all - mine, static_cast<int64_t>(each)), static_cast<int64_t>(0)));
    const int hits = find_rows(symbols, symbol, mine, count, found);
    if (col < a.width) {
#pragma unroll 4
      for (int i = 0; i < hits; ++i) sum.add(a, mine + found[i], col);
    }
    __syncwarp();
  }
}

// Adds the warps' sums. Thread c gets column c of the block's 128 columns.
__device__ __forceinline__ float block_columns(const Pack<kEach>& sum, float (*shared)[kAcross]) {
  *reinterpret_cast<Pack<kEach>*>(&shared[threadIdx.x / 32][threadIdx.x % 32 * kEach]) = sum;
  __syncthreads();
  float total = 0;
  if (threadIdx.x < kAcross)
    for (int w = 0; w < kWarps; ++w) total += shared[w][threadIdx.x];
  return total;
}

template <DType Type>
__global__ __launch_bounds__(kThreads) void embed_grad_kernel(const __grid_constant__ EmbedGradArguments a,
                                                              Scratch scratch) {
  __shared__ __align__(16) float shared[kWarps][kAcross];
  __shared__ uint16_t found[kWarps][kWarpRows];
  wait_for_previous();
  const int chunk = static_cast<int>(blockIdx.x) % a.chunks, which = static_cast<int>(blockIdx.x) / a.chunks;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first_col = chunk * kAcross;
  const int64_t col = first_col + static_cast<int>(threadIdx.x);  // of the thread's total
  const bool has_column = threadIdx.x < kAcross && col < a.width;
  RowSum<Type> sum;
  if (which >= a.count * a.strips) {
    const int position = which - a.count * a.strips;
    if (first_col + lane * kEach < a.width) {
#pragma unroll 4
      for (int64_t n = warp; n < a.texts; n += kWarps) sum.add(a, n * a.time + position, first_col + lane * kEach);
    }
    const float total = block_columns(sum.sum, shared);
    if (has_column) store(resolve(a.dpositions), static_cast<int64_t>(position) * a.width + col, total);
    return;
  }
  const int symbol = which / a.strips, strip = which % a.strips;
  add_symbol(a, sum, symbol, strip, first_col + lane * kEach, found[warp]);
  float total = block_columns(sum.sum, shared);
  if (a.strips > 1) {
    float* parts = partials<float>(scratch) + static_cast<int64_t>(symbol) * a.strips * a.width;
    if (has_column) parts[static_cast<int64_t>(strip) * a.width + col] = total;
    if (!is_last_block(counter(scratch) + symbol * a.chunks + chunk, static_cast<unsigned>(a.strips))) return;
    total = 0;
    if (has_column)
      for (int s = 0; s < a.strips; ++s) total += __ldcg(parts + static_cast<int64_t>(s) * a.width + col);
  }
  if (has_column) store(resolve(a.dtable), static_cast<int64_t>(symbol) * a.width + col, total);
}

// Strips for which there are counters and memory, else 1.
int64_t strips_for(const EmbedGradArguments& a) {
  const int64_t wanted = ceil_div(a.rows, kRowsOfAStrip);
  const int64_t space = (kScratchBytes / 2 - kCounterBytes) / 4 / (static_cast<int64_t>(a.count) * a.width);
  if (static_cast<int64_t>(a.count) * a.chunks > kCounters) return 1;
  return std::clamp<int64_t>(std::min(wanted, space), 1, 32);
}

}  // namespace

void embed(Queue queue, const Tensor& symbols, const Tensor& table, const Tensor& positions, const Tensor& h) {
  const auto width = static_cast<int>(table.cols);
  const int time = positions ? static_cast<int>(positions.rows) : 1;
  EmbedArguments a{symbols, table, positions, h, symbols.elements(), time, width, false};
  a.whole = packs(table, kEach) && packs(positions, kEach) && packs(h, kEach);
  launch(queue, embed_kernel, ceil_div(a.rows * ceil_div(width, kEach), kThreads), kThreads, 0, a);
}

void embed_grad(Queue queue, Scratch scratch, const Tensor& symbols, const Tensor& dh, const Tensor& dtable,
                const Tensor& dpositions) {
  EmbedGradArguments a{symbols, dh, dtable, dpositions, symbols.elements()};
  a.time = dpositions ? static_cast<int>(dpositions.rows) : 1;
  a.texts = a.rows / a.time;
  a.width = static_cast<int>(dtable.cols);
  a.count = static_cast<int>(dtable.rows);
  a.chunks = static_cast<int>(ceil_div(a.width, kAcross));
  a.strips = static_cast<int>(strips_for(a));
  a.rows_each = ceil_div(a.rows, a.strips);
  a.whole = packs(dh, kEach);
  const int64_t blocks = (static_cast<int64_t>(a.count) * a.strips + (dpositions ? a.time : 0)) * a.chunks;
  const auto kernel = dh.type == DType::Bf16  ? embed_grad_kernel<DType::Bf16>
                      : dh.type == DType::F16 ? embed_grad_kernel<DType::F16>
                                              : embed_grad_kernel<DType::F32>;
  launch(queue, kernel, blocks, kThreads, 0, a, scratch);
}

}  // namespace ws::cuda
