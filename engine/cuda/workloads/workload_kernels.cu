// The laboratory's elementwise operations, sum and row softmax. They run at memory speed if memory is the limit.
#include <algorithm>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/workloads/workload_kernels.h"

namespace ws::cuda::lab {
namespace {

constexpr int kThreads = 256;

int blocks_for(int64_t items) {
  constexpr int64_t kMost = 132 * 16;  // enough to fill the largest chips; the loops work with any grid
  return static_cast<int>(std::clamp<int64_t>((items + kThreads - 1) / kThreads, 1, kMost));
}

enum class Fn { Copy, Add, Sine };

template <Fn fn>
__device__ __forceinline__ float value(float a, float b) {
  if constexpr (fn == Fn::Add) return a + b;
  if constexpr (fn == Fn::Sine) return sinf(a);
  return a;
}

__device__ __forceinline__ float4 four_at(const float* from, int64_t i) { return *reinterpret_cast<const float4*>(from + i); }

// Four elements per thread and no loop: 5 % faster on long arrays than a grid-stride loop. Functions of one operand get it twice.
template <Fn fn>
__global__ void elementwise_kernel(const float* a, const float* b, float* out, int64_t n) {
  const int64_t i = 4 * (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x);
  if (i + 4 <= n) {
    const float4 x = four_at(a, i), y = fn == Fn::Add ? four_at(b, i) : x;
    *reinterpret_cast<float4*>(out + i) =
        make_float4(value<fn>(x.x, y.x), value<fn>(x.y, y.y), value<fn>(x.z, y.z), value<fn>(x.w, y.w));
  } else {
    for (int64_t j = i; j < n; ++j) out[j] = value<fn>(a[j], b[j]);
  }
}

__device__ __forceinline__ float block_sum(float v) {
  __shared__ float warps[32];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
  if (threadIdx.x < 32)
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  return v;  // valid in thread 0
}

// Few blocks with many loads in flight: measured faster than many blocks with one load.
constexpr int kAhead = 8, kBlocksEach = 4;  // kBlocksEach: per multiprocessor

__global__ void partial_sums(const float* __restrict__ a, float* __restrict__ partials, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x,
                first = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  float sums[kAhead] = {};
  const float4* wide = reinterpret_cast<const float4*>(a);
  for (int64_t i = first; i < n / 4; i += kAhead * stride) {
    float4 v[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) v[j] = i + j * stride < n / 4 ? wide[i + j * stride] : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < kAhead; ++j) sums[j] += (v[j].x + v[j].y) + (v[j].z + v[j].w);
  }
  float rest = 0;
#pragma unroll
  for (int j = 0; j < kAhead; ++j) rest += sums[j];
  if (first < n % 4) rest += a[n / 4 * 4 + first];
  const float total = block_sum(rest);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

__global__ void last_sum(const float* __restrict__ partials, int count, float* __restrict__ out) {
  double sum = 0;  // few values: double costs nothing here and keeps the precision of the first stage
  for (int i = threadIdx.x; i < count; i += 32) sum += partials[i];
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x == 0) *out = static_cast<float>(sum);
}

// One warp per row of up to 1024 values, with 16-byte accesses. The row stays in registers between maximum, sum and
// division, and no warp waits for another.
constexpr int kSoftmaxRow = 1024, kSoftmaxWarps = 4;

__global__ void __launch_bounds__(32 * kSoftmaxWarps)
    softmax_kernel(const float* __restrict__ a, float* __restrict__ out, int64_t n) {
  constexpr int kEach = kSoftmaxRow / 4 / 32;
  const int64_t row = (blockIdx.x * int64_t{kSoftmaxWarps} + threadIdx.x / 32) * kSoftmaxRow;
  const int64_t at = row + 4 * (threadIdx.x % 32);
  float v[kEach][4];
  const bool whole = row + kSoftmaxRow <= n;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t i = at + 128 * j;
    if (whole) {
      const float4 four = __ldcs(reinterpret_cast<const float4*>(a + i));
      v[j][0] = four.x, v[j][1] = four.y, v[j][2] = four.z, v[j][3] = four.w;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) v[j][k] = i + k < n ? a[i + k] : -INFINITY;
    }
  }
  float most = -INFINITY;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
#pragma unroll
    for (int k = 0; k < 4; ++k) most = fmaxf(most, v[j][k]);
  for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += v[j][k] = expf(v[j][k] - most);
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  const float share = 1.0f / sum;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t i = at + 128 * j;
    if (whole) {
      __stcs(reinterpret_cast<float4*>(out + i),
             make_float4(v[j][0] * share, v[j][1] * share, v[j][2] * share, v[j][3] * share));
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k < n) out[i + k] = v[j][k] * share;
    }
  }
}

// The best approximation of (sin x - x) / x³ in x² over |x| <= 1.0001, relative error under 1e-9: within two units in the last
// place, and without the reduction of an argument of any size.
__device__ __forceinline__ float short_sine(float x) {
  const float t = x * x;
  return fmaf(x * t, fmaf(fmaf(fmaf(2.69530074e-06f, t, -0.000198362104f), t, 0.008333317f), t, -0.166666672f), x);
}

template <bool small>
__global__ void sine_kernel(float* out, int64_t n, int repeats) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  float v[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) v[j] = static_cast<float>((i + j) % 1024) * 1e-3f;
  for (int r = 0; r < repeats; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = small ? short_sine(v[j]) : sinf(v[j]);
  if (i < n) out[i] = (v[0] + v[1]) + (v[2] + v[3]);
}

template <int count>
__device__ __forceinline__ void nest(float (&v)[count], int depth) {
#pragma unroll
  for (int j = 0; j < count; ++j) v[j] = sinf(v[j]);
  for (int level = 1; level < depth; ++level)
#pragma unroll
    for (int j = 0; j < count; ++j) v[j] = short_sine(v[j]);
}

// A thread has `each` groups of four elements, and reads them all before the first sine.
template <int each>
__global__ void nested_sine_kernel(const float* __restrict__ a, float* __restrict__ out, int64_t n, int depth) {
  const int64_t groups = n / 4, first = int64_t{each} * blockIdx.x * blockDim.x + threadIdx.x;
  float v[4 * each] = {};
#pragma unroll
  for (int k = 0; k < each; ++k)
    if (const int64_t i = first + k * int64_t{blockDim.x}; i < groups) {
      const float4 four = four_at(a, 4 * i);
      v[4 * k] = four.x, v[4 * k + 1] = four.y, v[4 * k + 2] = four.z, v[4 * k + 3] = four.w;
    }
  nest(v, depth);
#pragma unroll
  for (int k = 0; k < each; ++k)
    if (const int64_t i = first + k * int64_t{blockDim.x}; i < groups)
      reinterpret_cast<float4*>(out)[i] = make_float4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
  if (blockIdx.x == 0 && threadIdx.x < n % 4) {
    float last[1] = {a[4 * groups + threadIdx.x]};
    nest(last, depth);
    out[4 * groups + threadIdx.x] = last[0];
  }
}

template <int each>
void launch_nested_sine(cudaStream_t stream, const float* a, float* out, int64_t n, int depth) {
  constexpr int64_t kBlock = int64_t{kThreads} * 4 * each;
  const int64_t blocks = std::max<int64_t>((n + kBlock - 1) / kBlock, 1);
  nested_sine_kernel<each><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(a, out, n, depth);
  CUDA_CHECK(cudaGetLastError());
}

template <Fn fn>
void launch(cudaStream_t stream, const float* a, const float* b, float* out, int64_t n) {
  const int64_t blocks = std::max<int64_t>((n + 4 * kThreads - 1) / (4 * kThreads), 1);
  elementwise_kernel<fn><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(a, b, out, n);
  CUDA_CHECK(cudaGetLastError());
}

int multiprocessors_of_the_device() {
  int device = 0, count = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

}  // namespace

void add(cudaStream_t stream, const float* a, const float* b, float* out, int64_t n) { launch<Fn::Add>(stream, a, b, out, n); }
void sine(cudaStream_t stream, const float* a, float* out, int64_t n) { launch<Fn::Sine>(stream, a, a, out, n); }
void copy_array(cudaStream_t stream, const float* a, float* out, int64_t n) { launch<Fn::Copy>(stream, a, a, out, n); }

void nested_sine(cudaStream_t stream, const float* a, float* out, int64_t n, int depth) {
  constexpr int64_t kLong = int64_t{1} << 22;
  return n < kLong ? launch_nested_sine<1>(stream, a, out, n, depth) : launch_nested_sine<4>(stream, a, out, n, depth);
}

void reduce(cudaStream_t stream, const float* a, float* partials, float* out, int64_t n) {
  static const int multiprocessors = multiprocessors_of_the_device();
  const int blocks = std::min({blocks_for((n + 3) / 4), kBlocksEach * multiprocessors, kReducePartials});
  partial_sums<<<blocks, kThreads, 0, stream>>>(a, partials, n);
  CUDA_CHECK(cudaGetLastError());
  last_sum<<<1, 32, 0, stream>>>(partials, blocks, out);
  CUDA_CHECK(cudaGetLastError());
}

void softmax_rows(cudaStream_t stream, const float* a, float* out, int64_t n) {
  constexpr int64_t kBlock = int64_t{kSoftmaxWarps} * kSoftmaxRow;
  softmax_kernel<<<static_cast<unsigned>((n + kBlock - 1) / kBlock), 32 * kSoftmaxWarps, 0, stream>>>(a, out, n);
  CUDA_CHECK(cudaGetLastError());
}

namespace {

__global__ void rewrite_kernel(float4* block, int64_t n, int repeats) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int r = 0; r < repeats; ++r)
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
      float4 value = __ldcg(block + i);
      value.x += 1.0f;
      __stcg(block + i, value);
    }
}

}  // namespace

void rewrite_block(cudaStream_t stream, float* block, int64_t n, int repeats) {
  constexpr unsigned kBlocks = 1024;  // more than one block per multiprocessor on any card
  rewrite_kernel<<<kBlocks, kThreads, 0, stream>>>(reinterpret_cast<float4*>(block), n / 4, repeats);
  CUDA_CHECK(cudaGetLastError());
}

void sine_ceiling(cudaStream_t stream, float* out, int64_t n, int repeats, bool small) {
  const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
  if (small)
    sine_kernel<true><<<blocks, kThreads, 0, stream>>>(out, n, repeats);
  else
    sine_kernel<false><<<blocks, kThreads, 0, stream>>>(out, n, repeats);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace ws::cuda::lab
