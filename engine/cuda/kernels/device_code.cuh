// Shared by all kernel files: typed access to tensors, sums in a fixed order, and the launch.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <utility>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {

// ---- launch ----
template <class... Parameters, class... Arguments>
void launch_in_clusters(Queue queue, void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared,
                        int cluster, Arguments&&... arguments) {
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (queue.overlap) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::max<int64_t>(blocks, 1)));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = queue.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...));
}

// Clusters of so many blocks that the GPU runs at once. They lie within a group of multiprocessors, which they may not fill.
template <class Kernel>
int clusters_at_once(Kernel* kernel, int threads, size_t shared, int cluster) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(cluster));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int count = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, kernel, &config));
  return count;
}

template <class... Parameters, class... Arguments>
void launch(Queue queue, void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared,
            Arguments&&... arguments) {
  launch_in_clusters(queue, kernel, blocks, threads, shared, 1, std::forward<Arguments>(arguments)...);
}

// Launches all blocks at once (cooperative launch), so that blocks may wait for each other.
template <class... Parameters, class... Arguments>
void launch_together(Queue queue, void (*kernel)(Parameters...), int blocks, int threads, size_t shared,
                     Arguments&&... arguments) {
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = queue.stream;
  config.attrs = &together;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, Parameters(std::forward<Arguments>(arguments))...));
}

// A kernel must request more than 48 KiB of shared memory once. Fixed arrays of some KiB count too, hence 44.
template <class Kernel>
void allow_shared(Kernel* kernel, size_t bytes) {
  if (bytes > 44 * 1024)
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
}

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int kMultiprocessors = 132;  // only sizes grids; any device runs any grid

// Must be the first statement of every kernel that may overlap. Afterwards the results of the previous kernel are
// visible, and the next kernel may use the multiprocessors that this one leaves free.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// ---- tensors ----
// A tensor's device memory with its view resolved.
struct Ref {
  char* data;
  DType type;
};

__device__ __forceinline__ int64_t width(DType type) { return type == DType::F16 || type == DType::Bf16 ? 2 : 4; }

__device__ __forceinline__ Ref resolve(const Tensor& t) {
  char* data = static_cast<char*>(t.data);
  if (t.clock) data += (t.clock->row + t.view_offset * t.rows) * t.cols * width(t.type);
  return {data, t.type};
}

__device__ __forceinline__ float load(Ref r, int64_t i) {
  switch (r.type) {
    case DType::F16:
      return __half2float(reinterpret_cast<const __half*>(r.data)[i]);
    case DType::Bf16:
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(r.data)[i]);
    case DType::I32:
      return static_cast<float>(reinterpret_cast<const int32_t*>(r.data)[i]);
    default:
      return reinterpret_cast<const float*>(r.data)[i];
  }
}

__device__ __forceinline__ void store(Ref r, int64_t i, float value) {
  switch (r.type) {
    case DType::F16:
      reinterpret_cast<__half*>(r.data)[i] = __float2half_rn(value);
      break;
    case DType::Bf16:
      reinterpret_cast<__nv_bfloat16*>(r.data)[i] = __float2bfloat16_rn(value);
      break;
    case DType::I32:
      reinterpret_cast<int32_t*>(r.data)[i] = static_cast<int32_t>(value);
      break;
    default:
      reinterpret_cast<float*>(r.data)[i] = value;
  }
}

// N = 4 or 8 adjacent elements, beginning at a multiple of N.
template <int N>
struct Pack {
  float v[N];
};

template <int N>
__device__ __forceinline__ Pack<N> load_pack(Ref r, int64_t i) {
  Pack<N> out;
  if (r.type == DType::F32) {
#pragma unroll
    for (int j = 0; j < N; j += 4)
      *reinterpret_cast<float4*>(out.v + j) = *reinterpret_cast<const float4*>(r.data + (i + j) * 4);
    return out;
  }
  uint32_t words[N / 2];
  if constexpr (N == 8)
    *reinterpret_cast<uint4*>(words) = *reinterpret_cast<const uint4*>(r.data + i * 2);
  else
    *reinterpret_cast<uint2*>(words) = *reinterpret_cast<const uint2*>(r.data + i * 2);
#pragma unroll
  for (int j = 0; j < N / 2; ++j) {
    const float2 pair = r.type == DType::F16 ? __half22float2(*reinterpret_cast<const __half2*>(&words[j]))
                                             : __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&words[j]));
    out.v[2 * j] = pair.x;
    out.v[2 * j + 1] = pair.y;
  }
  return out;
}

template <int N>
__device__ __forceinline__ void store_pack(Ref r, int64_t i, const Pack<N>& in) {
  if (r.type == DType::F32) {
#pragma unroll
    for (int j = 0; j < N; j += 4)
      *reinterpret_cast<float4*>(r.data + (i + j) * 4) = *reinterpret_cast<const float4*>(in.v + j);
    return;
  }
  uint32_t words[N / 2];
#pragma unroll
  for (int j = 0; j < N / 2; ++j) {
    if (r.type == DType::F16)
      *reinterpret_cast<__half2*>(&words[j]) = __floats2half2_rn(in.v[2 * j], in.v[2 * j + 1]);
    else
      *reinterpret_cast<__nv_bfloat162*>(&words[j]) = __floats2bfloat162_rn(in.v[2 * j], in.v[2 * j + 1]);
  }
  if constexpr (N == 8)
    *reinterpret_cast<uint4*>(r.data + i * 2) = *reinterpret_cast<const uint4*>(words);
  else
    *reinterpret_cast<uint2*>(r.data + i * 2) = *reinterpret_cast<const uint2*>(words);
}

// Like load_pack, but only `count` of the N elements may exist and they need not be aligned.
template <int N>
__device__ __forceinline__ Pack<N> load_some(Ref r, int64_t i, int count, bool whole) {
  if (whole && count >= N) return load_pack<N>(r, i);
  Pack<N> out;
#pragma unroll
  for (int j = 0; j < N; ++j) out.v[j] = j < count ? load(r, i + j) : 0.f;
  return out;
}

template <int N>
__device__ __forceinline__ void store_some(Ref r, int64_t i, const Pack<N>& in, int count, bool whole) {
  if (whole && count >= N) return store_pack<N>(r, i, in);
#pragma unroll
  for (int j = 0; j < N; ++j)
    if (j < count) store(r, i + j, in.v[j]);
}

// True if every row of `t` begins at an address that allows packs of n elements.
inline bool packs(const Tensor& t, int64_t n) {
  const int64_t bytes = n * size_of(t.type);
  const int64_t step = std::min<int64_t>(bytes, 16);
  return !t ||
         (reinterpret_cast<uintptr_t>(t.data) % step == 0 && t.cols * size_of(t.type) % step == 0 && t.cols % n == 0);
}

// ---- activations ----
constexpr float kGeluA = 0.7978845608028654f, kGeluB = 0.044715f;  // tanh form

// (1 + tanh(u)) / 2 for gelu's u, in a third of tanhf's instructions and as exact as fp32 allows.
__device__ __forceinline__ float gelu_share(float z) {
  const float u = kGeluA * (z + kGeluB * z * z * z);
  return __fdividef(1.f, 1.f + __expf(fminf(-2.f * u, 80.f)));  // beyond 2^126 the division returns zero anyway
}

__device__ __forceinline__ float activated(Activation kind, float z) {
  switch (kind) {
    case Activation::Relu:
      return z > 0.f ? z : (z != z ? z : 0.f);
    case Activation::Sigmoid:
      return 1.f / (1.f + expf(-z));
    case Activation::Tanh:
      return tanhf(z);
    case Activation::Gelu:
      return z * gelu_share(z);
    default:
      return z;
  }
}

// Returns f'(z). It is computed from h = f(z) for relu, sigmoid and tanh, and from z for gelu.
__device__ __forceinline__ float gelu_slope(float z) {
  const float share = gelu_share(z);
  return share + 2.f * z * share * (1.f - share) * kGeluA * (1.f + 3.f * kGeluB * z * z);
}

__device__ __forceinline__ float activation_slope(Activation kind, float saved) {
  switch (kind) {
    case Activation::Relu:
      return saved > 0.f ? 1.f : 0.f;
    case Activation::Sigmoid:
      return saved * (1.f - saved);
    case Activation::Tanh:
      return 1.f - saved * saved;
    case Activation::Gelu:
      return gelu_slope(saved);
    default:
      return 1.f;
  }
}

// Applies f to each of four numbers. The loop is not unrolled and rotates the numbers, so a long f is in the code only
// once. A kernel runs through its code once, and unused code is fetched too.
template <class F>
__device__ __forceinline__ Pack<4> in_turn(Pack<4> v, F f) {
#pragma unroll 1
  for (int j = 0; j < 4; ++j) {
    const float out = f(v.v[0]);
    v.v[0] = v.v[1], v.v[1] = v.v[2], v.v[2] = v.v[3], v.v[3] = out;
  }
  return v;
}

__device__ __forceinline__ Pack<4> activated(Activation kind, const Pack<4>& z) {
  if (kind == Activation::None) return z;
  if (kind != Activation::Relu) return in_turn(z, [&](float v) { return activated(kind, v); });
  Pack<4> out;
#pragma unroll
  for (int j = 0; j < 4; ++j) out.v[j] = activated(Activation::Relu, z.v[j]);
  return out;
}

__device__ __forceinline__ Pack<4> activation_slope(Activation kind, const Pack<4>& saved) {
  if (kind != Activation::Relu) return in_turn(saved, [&](float v) { return activation_slope(kind, v); });
  Pack<4> out;
#pragma unroll
  for (int j = 0; j < 4; ++j) out.v[j] = activation_slope(Activation::Relu, saved.v[j]);
  return out;
}

// ---- sums in a fixed order ----
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

struct Sums {
  float loss = 0, correct = 0, rows = 0;
};

__device__ __forceinline__ Sums warp_sum(Sums s) { return {warp_sum(s.loss), warp_sum(s.correct), warp_sum(s.rows)}; }

// Returns the block's sum in thread 0. `shared` holds one entry per warp.
__device__ __forceinline__ Sums block_sum(Sums s, Sums* shared) {
  s = warp_sum(s);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  __syncthreads();
  if (lane == 0) shared[warp] = s;
  __syncthreads();
  if (warp == 0) s = warp_sum(lane < warps ? shared[lane] : Sums{});
  return s;
}

__device__ __forceinline__ unsigned* counter(Scratch s) { return static_cast<unsigned*>(s.data); }
template <class T>
__device__ __forceinline__ T* partials(Scratch s) {
  return reinterpret_cast<T*>(static_cast<char*>(s.data) + kCounterBytes);
}

// The end of the scratch, through which blocks of one launch exchange data. Nothing else writes there.
constexpr int kExchangeBytes = 16 << 10;
__device__ __forceinline__ char* exchange(Scratch s) {
  return static_cast<char*>(s.data) + kScratchBytes - kExchangeBytes;
}

// True in every thread of the last of `blocks` blocks. All writes of the other blocks are visible there.
__device__ __forceinline__ bool is_last_block(unsigned* count, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(count, 1) == blocks - 1;
    if (last) *count = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

__device__ __forceinline__ bool is_last_block(unsigned* count) { return is_last_block(count, gridDim.x); }

// Loss and correctness of single rows, which the output layer leaves for a later kernel to add up. They lie in the
// second half of the scratch.
__device__ __forceinline__ float2* row_losses(Scratch s) {
  return reinterpret_cast<float2*>(static_cast<char*>(s.data) + kScratchBytes / 2);
}

// ---- metrics ----
__device__ __forceinline__ int64_t table_row(const StepAt& at) { return (at.clock->step + at.offset) % at.capacity; }

__device__ __forceinline__ void write_metrics_row(const StepAt& at, int64_t table_row, const Sums& s) {
  float* row = at.metrics + 3 * table_row;
  row[0] = s.loss;
  row[1] = s.correct;
  row[2] = s.rows;
}

__device__ __forceinline__ void write_metrics(const StepAt& at, const Sums& s) {
  write_metrics_row(at, table_row(at), s);
}

// Each block passes its sums (in thread 0). The last block adds all of them, block 0 first, and returns true in thread
// 0.
__device__ __forceinline__ bool grid_sum(Scratch scratch, Sums mine, Sums& total, Sums* shared) {
  Sums* all = partials<Sums>(scratch);
  if (gridDim.x == 1) {
    total = mine;
    return threadIdx.x == 0;
  }
  if (threadIdx.x == 0) all[blockIdx.x] = mine;
  if (!is_last_block(counter(scratch))) return false;
  Sums s;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x) {
    const Sums other = {__ldcg(&all[b].loss), __ldcg(&all[b].correct), __ldcg(&all[b].rows)};
    s = {s.loss + other.loss, s.correct + other.correct, s.rows + other.rows};
  }
  total = block_sum(s, shared);
  return threadIdx.x == 0;
}

}  // namespace ws::cuda
