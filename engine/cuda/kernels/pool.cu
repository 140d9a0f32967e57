// Max and average pools with their gradients, and the join of weight gradients. Shapes: x (n·h·w, c), y (n·oh·ow, c).
// Each thread has eight adjacent channels of a pixel.
#include "engine/cuda/kernels/packs.cuh"
#include "engine/cuda/kernels/patches.h"

namespace ws::cuda {
namespace {

constexpr int kPoolThreads = 256, kChannels = 8;

// A window of the picture, cut at its edges.
struct Span {
  int begin, end;
};

struct PoolArguments {
  Ref x, y, dx, dy;
  int64_t view_row, view_cols;  // of x
  const StepClock* clock;
  int h, w, c, oh, ow, kh, kw, stride, pad, packs;
  int64_t threads;
  Divisor by_packs, by_width, by_height;  // of the pixels that threads are for
  Activation activation;

  __device__ Span rows(int oy) const { return {max(oy * stride - pad, 0), min(oy * stride - pad + kh, h)}; }
  __device__ Span columns(int ox) const { return {max(ox * stride - pad, 0), min(ox * stride - pad + kw, w)}; }
  // The windows that contain row iy.
  __device__ Span windows_of_row(int iy) const {
    const int first = iy + pad - kh;
    return {first < 0 ? 0 : first / stride + 1, min((iy + pad) / stride + 1, oh)};
  }
  __device__ Span windows_of_column(int ix) const {
    const int first = ix + pad - kw;
    return {first < 0 ? 0 : first / stride + 1, min((ix + pad) / stride + 1, ow)};
  }
};

struct Place {
  int64_t picture;
  int y, x, channel, count;
};

// This thread's pixel and channels; count 0: none.
__device__ __forceinline__ Place place(const PoolArguments& p, int height, int width) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.threads) return {0, 0, 0, 0, 0};
  const int index = static_cast<int>(i), pixel = p.by_packs.divide(index), channel = (index - pixel * p.packs) * kChannels;
  const int row = p.by_width.divide(pixel), picture = p.by_height.divide(row);
  return {picture, row - picture * height, pixel - row * width, channel, min(kChannels, p.c - channel)};
}

__device__ __forceinline__ Ref view_of_x(const PoolArguments& p) {
  Ref x = p.x;
  if (p.clock) x.data += (p.clock->row + p.view_row) * p.view_cols * width(x.type);
  return x;
}

template <class T>
__device__ __forceinline__ Eight<T> at(const PoolArguments& p, Ref r, const Place& t, int height, int width, int y,
                                       int x) {
  return Eight<T>(r, ((t.picture * height + y) * width + x) * p.c + t.channel, t.count);
}

__device__ __forceinline__ bool replaces(float v, float best) { return v > best || v != v; }

// The maxima of a window, and which pixels of the picture hold them.
struct Winners {
  Pack<kChannels> value;
  int pixel[kChannels];
  __device__ __forceinline__ void meet(const Pack<kChannels>& v, int at, bool first) {
#pragma unroll
    for (int j = 0; j < kChannels; ++j)
      if (first || replaces(v.v[j], value.v[j])) value.v[j] = v.v[j], pixel[j] = at;
  }
};

template <class T>
__device__ __forceinline__ Winners winners_of_any(const PoolArguments& p, Ref from, const Place& t, int oy, int ox) {
  Winners best{};
  const Span rows = p.rows(oy), columns = p.columns(ox);
  for (int y = rows.begin; y < rows.end; ++y)
    for (int x = columns.begin; x < columns.end; ++x)
      best.meet(at<T>(p, from, t, p.h, p.w, y, x).floats(), y * p.w + x, y == rows.begin && x == columns.begin);
  return best;
}

// Requests the four elements of a 2 × 2 window before it compares them.
template <class T>
__device__ __forceinline__ Winners winners_of_four(const PoolArguments& p, Ref from, const Place& t, int oy, int ox) {
  Eight<T> v[4];
  const int y = oy * p.stride, x = ox * p.stride;
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = at<T>(p, from, t, p.h, p.w, y + i / 2, x + i % 2);
  Winners best{};
#pragma unroll
  for (int i = 0; i < 4; ++i) best.meet(v[i].floats(), (y + i / 2) * p.w + x + i % 2, i == 0);
  return best;
}

template <class T, bool Four>
__device__ __forceinline__ Winners winners(const PoolArguments& p, Ref from, const Place& t, int oy, int ox) {
  if constexpr (Four) return winners_of_four<T>(p, from, t, oy, ox);
  return winners_of_any<T>(p, from, t, oy, ox);
}

template <class T, bool Four>
__global__ void max_pool_kernel(const __grid_constant__ PoolArguments p) {
  wait_for_previous();
  const Place t = place(p, p.oh, p.ow);
  if (t.count == 0) return;
  const Winners best = winners<T, Four>(p, view_of_x(p), t, t.y, t.x);
  Eight<T>::store(p.y, ((t.picture * p.oh + t.y) * p.ow + t.x) * p.c + t.channel, best.value, t.count);
}

// One thread for a window, if the windows tile the picture: each element belongs to one window.
template <class T, bool Four>
__global__ void max_pool_grad_tiled_kernel(const __grid_constant__ PoolArguments p) {
  wait_for_previous();
  const Place t = place(p, p.oh, p.ow);
  if (t.count == 0) return;
  const Winners best = winners<T, Four>(p, p.x, t, t.y, t.x);
  Pack<kChannels> dy = at<T>(p, p.dy, t, p.oh, p.ow, t.y, t.x).floats();
  if (p.activation != Activation::None) {
    const Pack<kChannels> slope = activation_slope(p.activation, best.value);
#pragma unroll
    for (int j = 0; j < kChannels; ++j) dy.v[j] *= slope.v[j];
  }
  const int kh = Four ? 2 : p.kh, kw = Four ? 2 : p.kw;
#pragma unroll
  for (int r = 0; r < kh; ++r)
#pragma unroll
    for (int s = 0; s < kw; ++s) {
      const int y = t.y * p.stride + r, x = t.x * p.stride + s;
      Pack<kChannels> dx;
#pragma unroll
      for (int j = 0; j < kChannels; ++j) dx.v[j] = best.pixel[j] == y * p.w + x ? dy.v[j] : 0.f;
      Eight<T>::store(p.dx, ((t.picture * p.h + y) * p.w + x) * p.c + t.channel, dx, t.count);
    }
}

// One thread for an element, which may belong to any number of windows.
template <class T>
__global__ void max_pool_grad_kernel(const __grid_constant__ PoolArguments p) {
  wait_for_previous();
  const Place t = place(p, p.h, p.w);
  if (t.count == 0) return;
  Pack<kChannels> dx{};
  const Span rows = p.windows_of_row(t.y), columns = p.windows_of_column(t.x);
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox) {
      const Winners best = winners_of_any<T>(p, p.x, t, oy, ox);
      const Pack<kChannels> dy = at<T>(p, p.dy, t, p.oh, p.ow, oy, ox).floats();
#pragma unroll
      for (int j = 0; j < kChannels; ++j) dx.v[j] += best.pixel[j] == t.y * p.w + t.x ? dy.v[j] : 0.f;
    }
  const int64_t to = ((t.picture * p.h + t.y) * p.w + t.x) * p.c + t.channel;
  if (p.activation != Activation::None) {
    const Pack<kChannels> slope = activation_slope(p.activation, Eight<T>(p.x, to, t.count).floats());
#pragma unroll
    for (int j = 0; j < kChannels; ++j) dx.v[j] *= slope.v[j];
  }
  Eight<T>::store(p.dx, to, dx, t.count);
}

__device__ __forceinline__ float share_of(const Span& rows, const Span& columns) {
  return 1.f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <class T>
__global__ void avg_pool_kernel(const __grid_constant__ PoolArguments p) {
  wait_for_previous();
  const Place t = place(p, p.oh, p.ow);
  if (t.count == 0) return;
  const Ref from = view_of_x(p);
  const Span rows = p.rows(t.y), columns = p.columns(t.x);
  Pack<kChannels> sum{};
  for (int y = rows.begin; y < rows.end; ++y)
    for (int x = columns.begin; x < columns.end; ++x) {
      const Pack<kChannels> v = at<T>(p, from, t, p.h, p.w, y, x).floats();
#pragma unroll
      for (int j = 0; j < kChannels; ++j) sum.v[j] += v.v[j];
    }
  const float share = share_of(rows, columns);
#pragma unroll
  for (int j = 0; j < kChannels; ++j) sum.v[j] *= share;
  Eight<T>::store(p.y, ((t.picture * p.oh + t.y) * p.ow + t.x) * p.c + t.channel, sum, t.count);
}

template <class T>
__global__ void avg_pool_grad_kernel(const __grid_constant__ PoolArguments p) {
  wait_for_previous();
  const Place t = place(p, p.h, p.w);
  if (t.count == 0) return;
  Pack<kChannels> dx{};
  const Span rows = p.windows_of_row(t.y), columns = p.windows_of_column(t.x);
  for (int oy = rows.begin; oy < rows.end; ++oy)
    for (int ox = columns.begin; ox < columns.end; ++ox) {
      const Pack<kChannels> dy = at<T>(p, p.dy, t, p.oh, p.ow, oy, ox).floats();
      const float share = share_of(p.rows(oy), p.columns(ox));
#pragma unroll
      for (int j = 0; j < kChannels; ++j) dx.v[j] += dy.v[j] * share;
    }
  Eight<T>::store(p.dx, ((t.picture * p.h + t.y) * p.w + t.x) * p.c + t.channel, dx, t.count);
}

// Up to eight warps share the sum of 32 columns; each adds a run of splits, and their sums are added in order.
__global__ void join_weight_grads_kernel(const float* parts, int splits, int64_t step, int64_t weights, float* dw,
                                         float* db, int64_t biases) {
  __shared__ float sums[8][32];
  wait_for_previous();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int64_t col = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  const bool inside = col < weights + biases;
  const int each = (splits + warps - 1) / warps, end = min(splits, (warp + 1) * each);
  float sum = 0;
  if (inside) {
#pragma unroll 8
    for (int s = warp * each; s < end; ++s) sum += parts[s * step + col];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || !inside) return;
  for (int i = 1; i < warps; ++i) sum += sums[i][lane];
  if (col < weights)
    dw[col] = sum;
  else
    db[col - weights] = sum;
}

bool has_four(const Window& v) { return v.kh == 2 && v.kw == 2 && v.pad == 0; }
Ref ref_of(const Tensor& t) { return {static_cast<char*>(t.data), t.type}; }

// `of_results`: one thread for each pixel of y, else of x.
PoolArguments arguments(const Window& v, bool of_results) {
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  PoolArguments p{};
  p.h = number(v.h), p.w = number(v.w), p.c = number(v.c), p.oh = number(v.oh), p.ow = number(v.ow);
  p.kh = number(v.kh), p.kw = number(v.kw), p.stride = number(v.stride), p.pad = number(v.pad);
  p.packs = number(ceil_div(v.c, kChannels));
  const int64_t height = of_results ? v.oh : v.h, width = of_results ? v.ow : v.w;
  p.threads = v.n * height * width * p.packs;
  p.by_packs = Divisor(p.packs), p.by_width = Divisor(width), p.by_height = Divisor(height);
  return p;
}

PoolArguments forward(const Window& v, const Tensor& x, const Tensor& y) {
  PoolArguments p = arguments(v, true);
  p.x = ref_of(x), p.y = ref_of(y);
  p.clock = x.clock, p.view_row = x.view_offset * x.rows, p.view_cols = x.cols;
  return p;
}

template <class Kernel>
void launch_pool(Queue queue, Kernel* kernel, const PoolArguments& p) {
  launch(queue, kernel, ceil_div(p.threads, kPoolThreads), kPoolThreads, 0, p);
}

}  // namespace

void max_pool(Queue queue, const Window& v, const Tensor& x, const Tensor& y) {
  with_type(v.c, {x, y}, [&]<class T>(T) {
    launch_pool(queue, has_four(v) ? max_pool_kernel<T, true> : max_pool_kernel<T, false>, forward(v, x, y));
  });
}

void max_pool_grad(Queue queue, const Window& v, Activation activation, const Tensor& dy, const Tensor& x,
                   const Tensor& dx) {
  const bool tiled =
      v.pad == 0 && v.kh == v.stride && v.kw == v.stride && v.h == v.oh * v.stride && v.w == v.ow * v.stride;
  PoolArguments p = arguments(v, tiled);
  p.x = ref_of(x), p.dy = ref_of(dy), p.dx = ref_of(dx), p.activation = activation;
  with_type(v.c, {x, dy, dx}, [&]<class T>(T) {
    const auto of_windows = has_four(v) ? max_pool_grad_tiled_kernel<T, true> : max_pool_grad_tiled_kernel<T, false>;
    launch_pool(queue, tiled ? of_windows : max_pool_grad_kernel<T>, p);
  });
}

void avg_pool(Queue queue, const Window& v, const Tensor& x, const Tensor& y) {
  with_type(v.c, {x, y}, [&]<class T>(T) { launch_pool(queue, avg_pool_kernel<T>, forward(v, x, y)); });
}

void avg_pool_grad(Queue queue, const Window& v, const Tensor& dy, const Tensor& dx) {
  PoolArguments p = arguments(v, false);
  p.dy = ref_of(dy), p.dx = ref_of(dx);
  with_type(v.c, {dy, dx}, [&]<class T>(T) { launch_pool(queue, avg_pool_grad_kernel<T>, p); });
}

void join_weight_grads(Queue queue, const float* parts, int splits, int64_t step, const Tensor& dw, const Tensor& db) {
  const int warps = splits >= 16 ? 8 : splits >= 4 ? 2 : 1;
  launch(queue, join_weight_grads_kernel, ceil_div(dw.elements() + db.elements(), 32), warps * 32, 0, parts, splits,
         step, dw.elements(), static_cast<float*>(dw.data), static_cast<float*>(db.data), db.elements());
}

}  // namespace ws::cuda
