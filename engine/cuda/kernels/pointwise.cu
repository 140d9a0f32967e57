// Ops on single elements, and the column sum: as single ops, and bias with activation in one pass.
#include <climits>

#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kThreads = 256, kPack = 8;
constexpr int64_t kMostStrips = 512;  // limit for a column sum: few enough for the join, enough for a single column

// Calls f(first element, count) for this thread's eight adjacent elements, of which `count` exist.
template <class F>
__device__ __forceinline__ void for_pack(int64_t elements, F f) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  if (i < elements) f(i, static_cast<int>(min(elements - i, static_cast<int64_t>(kPack))));
}

int64_t pack_blocks(const Tensor& t) { return ceil_div(t.elements(), kThreads * kPack); }

bool aligned(const Tensor& t) {
  if (!t) return true;
  const bool view_moves_well = !t.clock || t.cols * size_of(t.type) % 16 == 0;
  return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && view_moves_well;
}

// Returns the bias of element i and the following ones. The end of a row may lie among them.
__device__ Pack<kPack> bias_at(Ref bias, int64_t i, int64_t cols) {
  const bool whole = cols % kPack == 0 && reinterpret_cast<uintptr_t>(bias.data) % 16 == 0;
  if (whole && i < INT_MAX) return load_pack<kPack>(bias, static_cast<int>(i) % static_cast<int>(cols));
  Pack<kPack> out;
  int64_t col = i % cols;
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    out.v[j] = load(bias, col);
    col = col + 1 == cols ? 0 : col + 1;
  }
  return out;
}

// Sums a strip of rows for 32 columns. Warps take rows in turn, then their sums are added in order.
__global__ void column_sum_kernel(Tensor dz, int rows_each, int64_t column_blocks, float* parts, Tensor db) {
  __shared__ float sums[8][33];
  wait_for_previous();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t strip = blockIdx.x / column_blocks, col = blockIdx.x % column_blocks * 32 + lane;
  const int64_t end = min(dz.rows, (strip + 1) * rows_each);
  const Ref from = resolve(dz);
  float sum = 0;
  if (col < dz.cols) {
#pragma unroll 8
    for (int64_t r = strip * rows_each + warp; r < end; r += 8) sum += load(from, r * dz.cols + col);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= dz.cols) return;
  for (int w = 1; w < 8; ++w) sum += sums[w][lane];
  if (parts)
    parts[strip * dz.cols + col] = sum;
  else
    store(resolve(db), col, sum);
}

// The same for wide rows of whole packs: a lane has eight adjacent columns, so a warp reads 512 or 1024 bytes at once.
template <DType Type>
__global__ __launch_bounds__(kThreads) void wide_column_sum_kernel(Tensor dz, int rows_each, int64_t column_blocks,
                                                                   float* parts, Tensor db) {
  constexpr int warps = kThreads / 32, across = 32 * kPack;
  __shared__ __align__(16) float sums[warps][across];
  wait_for_previous();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t strip = blockIdx.x / column_blocks, first = blockIdx.x % column_blocks * across;
  const int64_t end = min(dz.rows, (strip + 1) * rows_each), col = first + lane * kPack;
  const Ref from{resolve(dz).data, Type};
  Pack<kPack> sum{};
  if (col < dz.cols) {
#pragma unroll 4
    for (int64_t r = strip * rows_each + warp; r < end; r += warps) {
      const Pack<kPack> v = load_pack<kPack>(from, r * dz.cols + col);
#pragma unroll
      for (int j = 0; j < kPack; ++j) sum.v[j] += v.v[j];
    }
  }
  store_pack<kPack>(Ref{reinterpret_cast<char*>(&sums[warp][0]), DType::F32}, lane * kPack, sum);
  __syncthreads();
  if (first + threadIdx.x >= dz.cols) return;
  float total = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) total += sums[w][threadIdx.x];
  if (parts)
    parts[strip * dz.cols + first + threadIdx.x] = total;
  else
    store(resolve(db), first + threadIdx.x, total);
}
static_assert(kThreads == 32 * kPack);  // one thread for each column of a block

__global__ void join_column_sums_kernel(GradientParts parts, Tensor db) {
  wait_for_previous();
  const int64_t col = static_cast<int64_t>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;  // one column per warp
  if (col >= db.cols) return;
  float sum = 0;
#pragma unroll 4
  for (int s = static_cast<int>(threadIdx.x) % 32; s < parts.count; s += 32) sum += parts.data[s * parts.step + col];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) store(resolve(db), col, sum);
}

// `whole`: every operand begins at a multiple of 16 bytes.
__global__ void broadcast_bias_kernel(Tensor bias, Tensor out, bool whole) {
  wait_for_previous();
  for_pack(out.elements(), [&](int64_t i, int count) {
    store_some<kPack>(resolve(out), i, bias_at(resolve(bias), i, out.cols), count, whole);
  });
}

__global__ void add_kernel(Tensor a, Tensor b, Tensor out, bool whole) {
  wait_for_previous();
  for_pack(out.elements(), [&](int64_t i, int count) {
    Pack<kPack> sum = load_some<kPack>(resolve(a), i, count, whole);
    const Pack<kPack> more = load_some<kPack>(resolve(b), i, count, whole);
#pragma unroll
    for (int j = 0; j < kPack; ++j) sum.v[j] += more.v[j];
    store_some<kPack>(resolve(out), i, sum, count, whole);
  });
}

__global__ void activate_kernel(Activation kind, Tensor z, Tensor h, bool whole) {
  wait_for_previous();
  for_pack(z.elements(), [&](int64_t i, int count) {
    Pack<kPack> v = load_some<kPack>(resolve(z), i, count, whole);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.v[j] = activated(kind, v.v[j]);
    store_some<kPack>(resolve(h), i, v, count, whole);
  });
}

__global__ void activate_grad_kernel(Activation kind, Tensor dh, Tensor saved, Tensor dz, bool whole) {
  wait_for_previous();
  for_pack(dz.elements(), [&](int64_t i, int count) {
    Pack<kPack> v = load_some<kPack>(resolve(dh), i, count, whole);
    const Pack<kPack> s = load_some<kPack>(resolve(saved), i, count, whole);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.v[j] *= activation_slope(kind, s.v[j]);
    store_some<kPack>(resolve(dz), i, v, count, whole);
  });
}

__global__ void bias_activate_kernel(Activation kind, Tensor z, Tensor bias, Tensor h, Tensor saved, bool whole) {
  wait_for_previous();
  for_pack(z.elements(), [&](int64_t i, int count) {
    Pack<kPack> v = load_some<kPack>(resolve(z), i, count, whole);
    const Pack<kPack> b = bias ? bias_at(resolve(bias), i, z.cols) : Pack<kPack>{};
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.v[j] += b.v[j];
    if (saved) store_some<kPack>(resolve(saved), i, v, count, whole);
#pragma unroll
    for (int j = 0; j < kPack; ++j) v.v[j] = activated(kind, v.v[j]);
    store_some<kPack>(resolve(h), i, v, count, whole);
  });
}

__global__ void convert_kernel(Tensor in, Tensor out, bool whole) {
  wait_for_previous();
  for_pack(out.elements(), [&](int64_t i, int count) {
    store_some<kPack>(resolve(out), i, load_some<kPack>(resolve(in), i, count, whole), count, whole);
  });
}

}  // namespace

void broadcast_bias(Queue queue, const Tensor& bias, const Tensor& out) {
  launch(queue, broadcast_bias_kernel, pack_blocks(out), kThreads, 0, bias, out, aligned(out));
}

void add(Queue queue, const Tensor& a, const Tensor& b, const Tensor& out) {
  launch(queue, add_kernel, pack_blocks(out), kThreads, 0, a, b, out, aligned(a) && aligned(b) && aligned(out));
}

void activate(Queue queue, Activation kind, const Tensor& z, const Tensor& h) {
  launch(queue, activate_kernel, pack_blocks(z), kThreads, 0, kind, z, h, aligned(z) && aligned(h));
}

void activate_grad(Queue queue, Activation kind, const Tensor& dh, const Tensor& saved, const Tensor& dz) {
  const bool whole = aligned(dh) && aligned(saved) && aligned(dz);
  launch(queue, activate_grad_kernel, pack_blocks(dz), kThreads, 0, kind, dh, saved, dz, whole);
}

void bias_activate(Queue queue, Activation kind, const Tensor& z, const Tensor& bias, const Tensor& h,
                   const Tensor& saved) {
  const bool whole = aligned(z) && aligned(h) && aligned(saved);
  launch(queue, bias_activate_kernel, pack_blocks(z), kThreads, 0, kind, z, bias, h, saved, whole);
}

void convert(Queue queue, const Tensor& in, const Tensor& out) {
  const bool whole = aligned(in) && aligned(out) && in.type != DType::I32 && out.type != DType::I32;
  launch(queue, convert_kernel, pack_blocks(out), kThreads, 0, in, out, whole);
}

namespace {

// How the rows of a column sum are divided into strips, whose sums the update or a second launch adds.
struct Strips {
  int64_t count;
  int rows_each;
  bool kept;
  float* parts;  // null: one strip
  Strips(Scratch scratch, const KeptParts* memory, const Tensor& dz, int64_t wanted) {
    constexpr int64_t bytes = kScratchBytes / 2 - kCounterBytes, most_kept = kMultiprocessors;
    const int64_t space = bytes / 4 / std::max<int64_t>(dz.cols, 1);
    count = std::clamp<int64_t>(wanted, 1, std::clamp<int64_t>(space, 1, kMostStrips));
    rows_each = static_cast<int>(ceil_div(dz.rows, count));
    kept = memory && count <= most_kept && memory->memory_left().bytes >= bytes;
    void* const at = kept ? memory->memory_left().data : static_cast<char*>(scratch.data) + kCounterBytes;
    parts = count > 1 ? static_cast<float*>(at) : nullptr;
  }
};

// True for rows that several warps can read in packs.
bool wide(const Tensor& dz) { return dz.cols >= 16 * kPack && packs(dz, kPack) && aligned(dz); }

Strips launch_wide_column_sum(Queue queue, Scratch scratch, const KeptParts* kept, const Tensor& dz, const Tensor& db) {
  const auto kernel = dz.type == DType::Bf16  ? wide_column_sum_kernel<DType::Bf16>
                      : dz.type == DType::F16 ? wide_column_sum_kernel<DType::F16>
                                              : wide_column_sum_kernel<DType::F32>;
  const int64_t blocks = ceil_div(dz.cols, kThreads);
  const Strips s(scratch, kept, dz, std::min(ceil_div(dz.rows, 32), ceil_div(4 * kMultiprocessors, blocks)));
  launch(queue, kernel, s.count * blocks, kThreads, 0, dz, s.rows_each, blocks, s.parts, db);
  return s;
}

Strips launch_column_sum(Queue queue, Scratch scratch, const KeptParts* kept, const Tensor& dz, const Tensor& db) {
  const int64_t blocks = ceil_div(dz.cols, 32);
  const Strips s(scratch, kept, dz, ceil_div(dz.rows, 128));
  launch(queue, column_sum_kernel, s.count * blocks, 256, 0, dz, s.rows_each, blocks, s.parts, db);
  return s;
}

}  // namespace

void column_sum(Queue queue, Scratch scratch, const Tensor& dz, const Tensor& db, KeptParts* kept) {
  const auto launch_sums = wide(dz) ? launch_wide_column_sum : launch_column_sum;
  const Strips s = launch_sums(queue, scratch, kept, dz, db);
  if (!s.parts) return;
  const GradientParts parts{s.parts, dz.cols, static_cast<int>(s.count)};
  s.kept ? kept->keep(db.data, parts) : join_column_sums(queue, parts, db);
}

void join_column_sums(Queue queue, const GradientParts& parts, const Tensor& db) {
  launch(queue, join_column_sums_kernel, ceil_div(db.cols, 4), 128, 0, parts, db);
}

}  // namespace ws::cuda
