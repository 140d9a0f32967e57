// The last layer in one kernel: product, bias, loss, its gradient, and the gradient for the layer before it. Each block
// has one row, because these layers have few outputs. Shapes: h (n, in), w (in, out), z and dz (n, out).
#include "engine/cuda/kernels/output_layer.cuh"

namespace ws::cuda {
namespace {

constexpr int kMaxThreads = 512, kMaxWarps = kMaxThreads / 32;

// Calls f(output, weight) for each weight in a row of W; `w` points to the row.
template <class T, int N, class F>
__device__ __forceinline__ void each_weight(const T* w, int out, F f) {
#pragma unroll
  for (int o = 0; o < N; ++o)
    if (o < out) f(o, static_cast<float>(w[o]));
}

// The weights of Each inputs per thread, blockDim.x apart: kept for all rows if they are all weights.
template <int N, int Each>
struct Kept {
  float w[Each][N] = {};
  bool all = false;

  template <class T>
  __device__ __forceinline__ void load(const OutputArguments& l) {
    all = l.in <= Each * static_cast<int>(blockDim.x);
    if (!all) return;
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      const int input = static_cast<int>(threadIdx.x + i * blockDim.x);
      if (input < l.in)
        each_weight<T, N>(static_cast<const T*>(l.w) + input * l.out, l.out, [&](int o, float weight) { w[i][o] = weight; });
    }
  }
  // Calls f(input, its weights) for this thread's inputs.
  template <class F>
  __device__ __forceinline__ void each(int in, F f) const {
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      const int input = static_cast<int>(threadIdx.x + i * blockDim.x);
      if (input < in) f(input, w[i]);
    }
  }
};

// Computes the row's logits, one per lane of warp 0. `parts` holds one row of outputs per warp.
template <class T, int N, int Each>
__device__ __forceinline__ float logits(const OutputArguments& l, const T* h, const Kept<N, Each>& kept, float bias,
                                        float (*parts)[N]) {
  const T* w = static_cast<const T*>(l.w);
  float sum[N] = {};
  if (kept.all) {
    kept.each(l.in, [&](int input, const float (&w_of_input)[N]) {
      const float v = static_cast<float>(h[input]);
#pragma unroll
      for (int o = 0; o < N; ++o) sum[o] = fmaf(v, w_of_input[o], sum[o]);
    });
  } else {
    for (int i = threadIdx.x; i < l.in; i += blockDim.x) {
      const float v = static_cast<float>(h[i]);
      each_weight<T, N>(w + i * l.out, l.out, [&](int o, float weight) { sum[o] = fmaf(v, weight, sum[o]); });
    }
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
#pragma unroll
  for (int o = 0; o < N; ++o) {
    if (o >= l.out) break;
    const float total = warp_sum(sum[o]);
    if (lane == 0) parts[warp][o] = total;
  }
  __syncthreads();
  if (warp != 0 || lane >= l.out) return 0.f;
  float z = bias;
  for (int p = 0; p < warps; ++p) z += parts[p][lane];
  return z;
}

struct RowLoss {
  float dz, loss, correct;  // loss and correct are complete in lane 0
};

__device__ __forceinline__ RowLoss cross_entropy_row(float z, int label, int out, float factor) {
  const int lane = threadIdx.x % 32;
  const float value = lane < out ? z : -INFINITY;
  const float max = warp_max(value);
  const unsigned best = __ballot_sync(0xffffffffu, lane < out && value == max);
  const float e = lane < out ? expf(value - max) : 0.f;
  const float sum = warp_sum(e);
  const float chosen = __shfl_sync(0xffffffffu, z, label);
  return {(e / sum - (lane == label ? 1.f : 0.f)) * factor, logf(sum) + max - chosen,
          __ffs(best) - 1 == label ? 1.f : 0.f};
}

__device__ __forceinline__ RowLoss squared_error_row(float z, float target, int out, float factor) {
  const float difference = threadIdx.x % 32 < out ? z - target : 0.f;
  return {2.f * difference * factor / static_cast<float>(out),
          warp_sum(difference * difference) / static_cast<float>(out), 0.f};
}

// Computes dz·Wᵀ ∘ f'(saved), one input per thread.
template <class T, int N, int Each>
__device__ __forceinline__ void gradient_before(const OutputArguments& l, int64_t row, const Kept<N, Each>& kept,
                                                const float* dz) {
  const T* w = static_cast<const T*>(l.w);
  const Ref saved{static_cast<char*>(const_cast<void*>(l.saved)), l.saved_type},
      to{static_cast<char*>(l.dz_before), l.dz_type};
  if (kept.all) {
    return kept.each(l.in, [&](int input, const float (&w_of_input)[N]) {
      const int64_t at = row * l.in + input;
      float sum = 0;
#pragma unroll
      for (int o = 0; o < N; ++o)
        if (o < l.out) sum = fmaf(dz[o], w_of_input[o], sum);
      store(to, at, l.saved ? sum * activation_slope(l.activation, load(saved, at)) : sum);
    });
  }
  for (int i = threadIdx.x; i < l.in; i += blockDim.x) {
    const float slope = l.saved ? activation_slope(l.activation, load(saved, row * l.in + i)) : 1.f;
    float sum = 0;
    each_weight<T, N>(w + i * l.out, l.out, [&](int o, float weight) { sum = fmaf(dz[o], weight, sum); });
    store(to, row * l.in + i, sum * slope);
  }
}

// What warp 0 needs besides the logits, loaded before the logits are computed.
struct Truth {
  float bias = 0, target = 0;
  int label = 0;
};

__device__ __forceinline__ Truth truth_of(const OutputArguments& l, int64_t y_first, int64_t row) {
  Truth t;
  const int lane = threadIdx.x;
  if (lane >= 32) return t;
  if (l.bias && lane < l.out) t.bias = load(Ref{static_cast<char*>(const_cast<void*>(l.bias)), l.bias_type}, lane);
  if (l.loss == LossKind::CrossEntropy)
    t.label = static_cast<const int32_t*>(l.y)[y_first + row];
  else if (lane < l.out)
    t.target = load(Ref{static_cast<char*>(const_cast<void*>(l.y)), l.y_type}, (y_first + row) * l.out + lane);
  return t;
}

template <class T, int N, int Each>
__global__ __launch_bounds__(kMaxThreads, 1) void output_layer_kernel(const __grid_constant__ OutputArguments l) {
  __shared__ float parts[kMaxWarps][N];
  __shared__ float dz[N];
  __shared__ Sums shared[kMaxWarps];
  Kept<N, Each> kept;
  if (l.w_is_settled) kept.template load<T>(l);
  wait_for_previous();
  if (!l.w_is_settled) kept.template load<T>(l);
  const int64_t first = l.clock ? l.clock->row : 0;
  const int64_t y_first = l.y_is_view ? first + l.y_row : 0, h_first = l.h_row >= 0 ? first + l.h_row : 0;
  const float factor = (l.scale ? l.scale->scale : 1.f) / static_cast<float>(l.rows);
  Sums mine;
  for (int64_t row = blockIdx.x; row < l.rows; row += gridDim.x) {
    const Truth truth = truth_of(l, y_first, row);
    const float z = logits<T>(l, static_cast<const T*>(l.h) + (h_first + row) * l.in, kept, truth.bias, parts);
    if (threadIdx.x < 32) {
      const RowLoss r = l.loss == LossKind::CrossEntropy ? cross_entropy_row(z, truth.label, l.out, factor)
                                                         : squared_error_row(z, truth.target, l.out, factor);
      if (threadIdx.x < l.out) {
        dz[threadIdx.x] = r.dz;
        store(Ref{static_cast<char*>(l.dz), l.dz_type}, row * l.out + threadIdx.x, r.dz);
      }
      if (l.join_later && threadIdx.x == 0) row_losses(l.scratch)[row] = make_float2(r.loss, r.correct);
      mine = {mine.loss + r.loss, mine.correct + r.correct, mine.rows + 1.f};
    }
    __syncthreads();
    if (l.dz_before) gradient_before<T>(l, row, kept, dz);
  }
  if (l.join_later) return;
  Sums total;
  if (grid_sum(l.scratch, mine, total, shared)) write_metrics(l.at, total);
}

OutputArguments output_arguments(const OutputLayer& l, Scratch scratch) {
  OutputArguments a{l.h.data, l.w.data, l.bias.data, l.y.data, l.saved.data, l.dz.data, l.dz_before.data};
  a.dw = static_cast<float*>(l.dw.data), a.db = static_cast<float*>(l.db.data);
  a.db_before = static_cast<float*>(l.db_before.data);
  a.scale = l.scale;
  a.clock = l.y.clock ? l.y.clock : l.h.clock;
  a.h_row = l.h.clock ? l.h.view_offset * l.h.rows : -1;
  a.y_row = l.y.view_offset * l.y.rows;
  a.y_is_view = l.y.clock != nullptr;
  a.rows = l.h.rows;
  a.in = static_cast<int>(l.h.cols), a.out = static_cast<int>(l.dz.cols);
  a.type = l.w.type, a.bias_type = l.bias.type, a.y_type = l.y.type, a.saved_type = l.saved.type, a.dz_type = l.dz.type;
  a.activation = l.activation, a.loss = l.loss, a.join_later = l.join_later, a.w_is_settled = l.w_is_settled;
  a.at = l.at, a.scratch = scratch;
  return a;
}

template <class T>
void launch_output_layer(Queue queue, const OutputArguments& a) {
  const int64_t wanted = a.in <= kMaxThreads / 2 ? a.in : a.in / 2;
  const int threads = static_cast<int>(std::clamp<int64_t>(ceil_div(wanted, 32) * 32, 128, kMaxThreads));
  // A thread that holds the weights of several inputs needs so many registers that its block is alone.
  const bool holds = a.in > threads && a.rows <= kMultiprocessors;
  const auto kernel = a.out > 10        ? output_layer_kernel<T, 32, 1>
                      : holds           ? output_layer_kernel<T, 10, 4>
                                        : output_layer_kernel<T, 10, 1>;
  launch(queue, kernel, std::min<int64_t>(a.rows, 4096), threads, 0, a);
}

}  // namespace

void output_layer(Queue queue, Scratch scratch, const OutputLayer& l) {
  const OutputArguments a = output_arguments(l, scratch);
  if (fits_many_rows(a)) return output_layer_of_many_rows(queue, a);
  if (a.dw) throw Failure("gradients of an output layer: only for small layers with large batches");
  switch (l.w.type) {
    case DType::F16:
      return launch_output_layer<__half>(queue, a);
    case DType::Bf16:
      return launch_output_layer<__nv_bfloat16>(queue, a);
    default:
      return launch_output_layer<float>(queue, a);
  }
}

}  // namespace ws::cuda
