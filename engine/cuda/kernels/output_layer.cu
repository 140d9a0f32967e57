// The last layer in one kernel: product, bias, loss, its gradient, and the gradient that enters the layer before. A block
// has a row; these layers have few outputs.
#include "engine/cuda/kernels/device.cuh"

namespace ws::cuda {
namespace {

constexpr int kMaxThreads = 256, kMaxWarps = kMaxThreads / 32;

template <class T>
__device__ __forceinline__ float number(const T* p) {
  return static_cast<float>(*p);
}

// The row's logits, one a lane of warp 0. `parts` holds one row of outputs a warp.
template <class T, int N>
__device__ __forceinline__ float logits(const OutputLayer& l, int64_t row, int in, int out, float (*parts)[N]) {
  const T* h = reinterpret_cast<const T*>(resolve(l.h).data) + row * in;
  const T* w = static_cast<const T*>(l.w.data);
  float sum[N] = {};
  for (int i = threadIdx.x; i < in; i += blockDim.x) {
    const float v = number(h + i);
#pragma unroll
    for (int o = 0; o < N; ++o)
      if (o < out) sum[o] = fmaf(v, number(w + i * out + o), sum[o]);
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
  for (int o = 0; o < N; ++o) {
    if (o >= out) continue;
    const float total = warp_sum(sum[o]);
    if (lane == 0) parts[warp][o] = total;
  }
  __syncthreads();
  if (warp != 0 || lane >= out) return 0.f;
  float z = l.bias ? load(resolve(l.bias), lane) : 0.f;
  for (int p = 0; p < warps; ++p) z += parts[p][lane];
  return z;
}

struct RowLoss {
  float dz;
  Sums sums;  // complete in lane 0
};

__device__ __forceinline__ RowLoss cross_entropy_row(const OutputLayer& l, float z, int64_t row, int out, float factor) {
  const int lane = threadIdx.x % 32;
  const float value = lane < out ? z : -INFINITY;
  const float max = warp_max(value);
  const unsigned best = __ballot_sync(0xffffffffu, lane < out && value == max);
  const float e = lane < out ? expf(value - max) : 0.f;
  const float sum = warp_sum(e);
  const int label = reinterpret_cast<const int32_t*>(resolve(l.y).data)[row];
  const float chosen = __shfl_sync(0xffffffffu, z, label);
  RowLoss r;
  r.dz = (e / sum - (lane == label ? 1.f : 0.f)) * factor;
  r.sums = {logf(sum) + max - chosen, __ffs(best) - 1 == label ? 1.f : 0.f, 1.f};
  return r;
}

__device__ __forceinline__ RowLoss squared_error_row(const OutputLayer& l, float z, int64_t row, int out, float factor) {
  const int lane = threadIdx.x % 32;
  const float difference = lane < out ? z - load(resolve(l.y), row * out + lane) : 0.f;
  RowLoss r;
  r.dz = 2.f * difference * factor / static_cast<float>(out);
  r.sums = {warp_sum(difference * difference) / static_cast<float>(out), 0.f, 1.f};
  return r;
}

// dz·Wᵀ ∘ f'(saved), one input a thread.
template <class T, int N>
__device__ __forceinline__ void gradient_before(const OutputLayer& l, int64_t row, int in, int out, const float* dz) {
  const T* w = static_cast<const T*>(l.w.data);
  const Ref saved = resolve(l.saved), to = resolve(l.dz_before);
  for (int i = threadIdx.x; i < in; i += blockDim.x) {
    float sum = 0;
#pragma unroll
    for (int o = 0; o < N; ++o)
      if (o < out) sum = fmaf(dz[o], number(w + i * out + o), sum);
    const float slope = l.activation == Activation::None ? 1.f : activation_slope(l.activation, load(saved, row * in + i));
    store(to, row * in + i, sum * slope);
  }
}

template <class T, int N>
__global__ __launch_bounds__(kMaxThreads) void output_layer_kernel(const __grid_constant__ OutputLayer l, Scratch scratch) {
  __shared__ float parts[kMaxWarps][N];
  __shared__ float dz[N];
  __shared__ Sums shared[kMaxWarps];
  wait_for_previous();
  const int in = static_cast<int>(l.h.cols), out = static_cast<int>(l.dz.cols), lane = threadIdx.x % 32;
  const float factor = (l.scale ? l.scale->scale : 1.f) / static_cast<float>(l.h.rows);
  Sums mine;
  for (int64_t row = blockIdx.x; row < l.h.rows; row += gridDim.x) {
    const float z = logits<T, N>(l, row, in, out, parts);
    if (threadIdx.x < 32) {
      const RowLoss r = l.loss == LossKind::CrossEntropy ? cross_entropy_row(l, z, row, out, factor)
                                                         : squared_error_row(l, z, row, out, factor);
      if (lane < out) {
        dz[lane] = r.dz;
        store(resolve(l.dz), row * out + lane, r.dz);
      }
      mine = {mine.loss + r.sums.loss, mine.correct + r.sums.correct, mine.rows + r.sums.rows};
    }
    __syncthreads();
    if (l.dz_before) gradient_before<T, N>(l, row, in, out, dz);
  }
  Sums total;
  if (grid_sum(scratch, mine, total, shared)) write_metrics(l.at, total);
}

template <class T>
void launch_output_layer(Queue queue, Scratch scratch, const OutputLayer& l) {
  const int64_t blocks = std::min<int64_t>(l.h.rows, 8192);
  const int threads = static_cast<int>(std::clamp<int64_t>(ceil_div(l.h.cols, 32) * 32, 32, kMaxThreads));
  const auto kernel = l.dz.cols <= 16 ? output_layer_kernel<T, 16> : output_layer_kernel<T, 32>;
  launch(queue, kernel, blocks, threads, 0, l, scratch);
}

}  // namespace

bool output_layer_fits(int64_t, int64_t out) { return out <= kMaxFusedOutputs; }

void output_layer(Queue queue, Scratch scratch, const OutputLayer& l) {
  switch (l.w.type) {
    case DType::F16: return launch_output_layer<__half>(queue, scratch, l);
    case DType::Bf16: return launch_output_layer<__nv_bfloat16>(queue, scratch, l);
    default: return launch_output_layer<float>(queue, scratch, l);
  }
}

}  // namespace ws::cuda
