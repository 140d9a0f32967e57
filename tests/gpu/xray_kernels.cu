#include <cstdint>

#include "tests/gpu/xray_kernels.h"

// Each kernel has its line behind HERE, which the table below repeats.
namespace ws::xray {
namespace {

constexpr int kNumbers = 1 << 26, kSms = 132;
int* g_next = nullptr;      // a chain through all of its places
float *g_in = nullptr, *g_out = nullptr;
unsigned* g_counters = nullptr;

#define HERE(kernel, lines) constexpr int kernel##_line = __LINE__ + (lines);

__global__ void make_chain(int* next) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < kNumbers; i += static_cast<int>(gridDim.x * blockDim.x))
    next[i] = static_cast<int>((static_cast<unsigned>(i) * 1664525u + 1013904223u) % kNumbers);
}

// clang-format off
HERE(global_chain, 3)
__global__ void global_chain(const int* next, float* out, int rounds) {
  int at = static_cast<int>(blockIdx.x * 977 + threadIdx.x * 131071) & (kNumbers - 1);
  for (int i = 0; i < rounds; ++i) at = next[at];
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(at);
}

HERE(global_stream, 4)
__global__ void global_stream(const float* in, float* out, int rounds) {
  float sum = 0;
  const int step = static_cast<int>(gridDim.x * blockDim.x), first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = first; i < rounds * step; i += step) sum += in[i & (kNumbers - 1)];
  out[first] = sum;
}

HERE(global_columns, 4)
__global__ void global_columns(const float* in, float* out, int rounds) {
  float sum = 0;
  const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = 0; i < rounds; ++i) sum += in[(first * 4096 + i * 64) & (kNumbers - 1)];
  out[first] = sum;
}

HERE(global_atomic, 3)
__global__ void global_atomic(unsigned* counters, float* out, int rounds) {
  unsigned got = threadIdx.x;
  for (int i = 0; i < rounds; ++i) got = atomicAdd(&counters[(got + threadIdx.x * 37) & 0xfffff], 1u);
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(got);
}

HERE(scattered_writes, 2)
__global__ void scattered_writes(float* out, int rounds) {
  for (int i = 0; i < rounds; ++i) out[((blockIdx.x * blockDim.x + threadIdx.x) * 4099u + static_cast<unsigned>(i) * 131071u) & (kNumbers - 1)] = static_cast<float>(i);
}

HERE(shared_conflict, 7)
__global__ void shared_conflict(float* out, int rounds) {
  __shared__ float tile[32][32];
  const int lane = static_cast<int>(threadIdx.x & 31);
  tile[threadIdx.x / 32][lane] = static_cast<float>(lane);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < rounds; ++i) sum += tile[lane][i & 31];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

HERE(shared_chain, 6)
__global__ void shared_chain(float* out, int rounds) {
  __shared__ int next[1024];
  next[threadIdx.x] = static_cast<int>((threadIdx.x * 33 + 7) & 1023);
  __syncthreads();
  int at = static_cast<int>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) at = next[at];
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(at);
}

HERE(shared_atomic, 5)
__global__ void shared_atomic(float* out, int rounds) {
  __shared__ unsigned sums[32];
  if (threadIdx.x < 32) sums[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < rounds; ++i) atomicAdd(&sums[i & 3], threadIdx.x);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(sums[threadIdx.x & 31]);
}

HERE(shuffle_chain, 3)
__global__ void shuffle_chain(float* out, int rounds) {
  int value = static_cast<int>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) value = __shfl_sync(0xffffffffu, value, value + i);
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(value);
}

HERE(uneven_barrier, 6)
__global__ void uneven_barrier(float* out, int rounds) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x < 32)
      for (int k = 0; k < 200; ++k) value = value * 1.0001f + 0.5f;
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

HERE(many_barriers, 2)
__global__ void many_barriers(float* out, int rounds) {
  for (int i = 0; i < rounds; ++i) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

HERE(float_chain, 3)
__global__ void float_chain(float* out, int rounds) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) value = value * 1.0001f + 0.5f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

HERE(double_chain, 3)
__global__ void double_chain(float* out, int rounds) {
  double value = threadIdx.x;
  for (int i = 0; i < rounds; ++i) value = value * 1.0001 + 0.5;
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(value);
}

HERE(integer_chain, 3)
__global__ void integer_chain(float* out, int rounds) {
  unsigned value = threadIdx.x;
  for (int i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(value);
}

HERE(special_chain, 3)
__global__ void special_chain(float* out, int rounds) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) value = __sinf(value);
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

HERE(special_unit, 3)
__global__ void special_unit(float* out, int rounds) {
  float a = static_cast<float>(threadIdx.x), b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < rounds; ++i) a = __expf(a), b = __expf(b), c = __expf(c), d = __expf(d);
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

HERE(bit_counts, 3)
__global__ void bit_counts(float* out, int rounds) {
  unsigned a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < rounds; ++i) a = __popc(a) + 77777u, b = __popc(b) + 77777u, c = __popc(c) + 77777u, d = __popc(d) + 77777u;
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(a + b + c + d);
}

HERE(fence, 4)
__global__ void fence(float* out, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    out[(blockIdx.x * blockDim.x + threadIdx.x) * 32u + (static_cast<unsigned>(i) & 31u)] = static_cast<float>(i);
    __threadfence();
  }
}

HERE(sleeping, 2)
__global__ void sleeping(float* out, int rounds) {
  for (int i = 0; i < rounds; ++i) __nanosleep(500);
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__device__ __noinline__ unsigned one(unsigned v) { return v * 3u + 1u; }
__device__ __noinline__ unsigned two(unsigned v) { return v ^ 0x5bd1e995u; }
__device__ __noinline__ unsigned three(unsigned v) { return v + 0x9e3779b9u; }
__device__ __noinline__ unsigned four(unsigned v) { return v - 12345u; }
using Step = unsigned (*)(unsigned);
__device__ Step g_steps[4] = {one, two, three, four};

HERE(divergence, 4)
__global__ void divergence(float* out, int rounds) {
  const Step steps[4] = {g_steps[0], g_steps[1], g_steps[2], g_steps[3]};
  unsigned value = threadIdx.x;
  for (int i = 0; i < rounds; ++i) value = (value & 2u ? (value & 1u ? steps[0] : steps[1]) : (value & 1u ? steps[2] : steps[3]))(value);
  out[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(value);
}
// clang-format on

__global__ void small(float* out) { out[threadIdx.x] = 1; }

#define LAUNCH(blocks, threads, kernel, factor, ...) \
  [](cudaStream_t stream, int rounds) { kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__, rounds * (factor)); }

const Planted kPlanted[] = {
    {"global_chain", "global memory", global_chain_line, LAUNCH(kSms, 64, global_chain, 1, g_next, g_out)},
    {"global_stream", "global memory", global_stream_line, LAUNCH(kSms * 4, 256, global_stream, 2, g_in, g_out)},
    {"global_columns", "global memory|global memory queue", global_columns_line, LAUNCH(kSms * 2, 256, global_columns, 1, g_in, g_out)},
    {"global_atomic", "global memory|global memory queue", global_atomic_line, LAUNCH(kSms, 128, global_atomic, 1, g_counters, g_out)},
    {"scattered_writes", "global memory queue|global memory|last writes", scattered_writes_line, LAUNCH(kSms * 2, 512, scattered_writes, 1, g_out)},
    {"shared_conflict", "shared memory or special function|shared memory queue", shared_conflict_line, LAUNCH(kSms, 1024, shared_conflict, 4, g_out)},
    {"shared_chain", "shared memory or special function|shared memory queue", shared_chain_line, LAUNCH(kSms, 1024, shared_chain, 4, g_out)},
    {"shared_atomic", "shared memory queue|shared memory or special function", shared_atomic_line, LAUNCH(kSms, 1024, shared_atomic, 2, g_out)},
    {"shuffle_chain", "shared memory or special function|shared memory queue", shuffle_chain_line, LAUNCH(kSms, 128, shuffle_chain, 8, g_out)},
    {"uneven_barrier", "barrier", uneven_barrier_line, LAUNCH(kSms, 1024, uneven_barrier, 1, g_out)},
    {"many_barriers", "barrier", many_barriers_line, LAUNCH(kSms, 1024, many_barriers, 8, g_out)},
    {"float_chain", "result of the instruction before", float_chain_line, LAUNCH(kSms, 32, float_chain, 32, g_out)},
    {"double_chain", "result of the instruction before", double_chain_line, LAUNCH(kSms, 32, double_chain, 16, g_out)},
    {"integer_chain", "result of the instruction before", integer_chain_line, LAUNCH(kSms, 32, integer_chain, 32, g_out)},
    {"special_chain", "shared memory or special function", special_chain_line, LAUNCH(kSms, 32, special_chain, 8, g_out)},
    {"special_unit", "busy math unit|shared memory queue|shared memory or special function", special_unit_line, LAUNCH(kSms, 1024, special_unit, 8, g_out)},
    {"bit_counts", "busy math unit|shared memory queue|shared memory or special function", bit_counts_line, LAUNCH(kSms, 1024, bit_counts, 16, g_out)},
    {"fence", "memory fence|global memory", fence_line, LAUNCH(kSms, 128, fence, 1, g_out)},
    {"sleeping", "sleep", sleeping_line, LAUNCH(kSms, 128, sleeping, 1, g_out)},
    {"divergence", "branch|instruction fetch", divergence_line, LAUNCH(kSms, 32, divergence, 4, g_out)},
};

}  // namespace

std::span<const Planted> planted() { return kPlanted; }

void prepare() {
  cudaMalloc(&g_next, kNumbers * sizeof(int));
  cudaMalloc(&g_in, kNumbers * sizeof(float));
  cudaMalloc(&g_out, kNumbers * sizeof(float));
  cudaMalloc(&g_counters, (1 << 20) * sizeof(unsigned));
  cudaMemset(g_in, 0, kNumbers * sizeof(float)), cudaMemset(g_counters, 0, (1 << 20) * sizeof(unsigned));
  make_chain<<<1024, 256>>>(g_next);
  cudaDeviceSynchronize();
}

void launch_small(cudaStream_t stream) { small<<<1, 32, 0, stream>>>(g_out); }

}  // namespace ws::xray
