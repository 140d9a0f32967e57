// Convolutions as matrix products whose left or right side is read from the picture.
// Shapes: x (n·h·w, c), w (k, taps·c), z (n·oh·ow, k).
#pragma once
#include "engine/cuda/kernels/convolution_launch.h"
#include "engine/cuda/kernels/patches.cuh"
#include "engine/cuda/kernels/small_gemm.cuh"

namespace ws::cuda {

// z = patches(x)·wᵀ, or dx = patches(dz)·(w with its taps turned): the result is g.c.
struct ConvArguments {
  GemmArguments g;
  Patches patches;
  int64_t view_cols;  // elements in a row of the view
  int row_length;     // of w
  float* moments;     // of z, or null
};

// dw = dzᵀ·patches(x), summed over a part of the pixels by each split.
struct ConvUpdateArguments {
  const void *x, *dz;
  float *dw, *db;      // of the first split
  int64_t split_step;  // from one split's sums to the next one's, in floats
  const StepClock* clock;
  int64_t view_row, view_cols;
  Patches patches;
  PixelSteps steps;  // of a stage
  int k, tiles_m, tiles_n, split_pixels;
};

template <class T>
__device__ __forceinline__ const T* picture_data(const void* x, const StepClock* clock, int64_t row, int64_t cols) {
  return static_cast<const T*>(x) + (clock ? (clock->row + row) * cols : 0);
}

template <bool Grad, class Product>
__device__ __forceinline__ auto weights_of(const ConvArguments& a, int col0) {
  using T = typename Product::T;
  const T* w = static_cast<const T*>(a.g.b);
  if constexpr (!Grad && Product::whole_b)
    return Lines<T, true, Product::BN, Product::BK, Product::threads>(w, a.g.n, a.g.k, col0, 0);
  else if constexpr (!Grad)
    return Operand<T>{w, a.g.n, a.g.k};
  else if constexpr (Product::by_warpgroups)
    return TurnedTapOfStage<T>{{w, a.g.k, a.g.n, a.row_length, a.patches.by_channels}};
  else
    return TurnedTaps<T>{w, a.g.k, a.g.n, a.row_length, a.patches.by_channels};
}

// The pixels that a forward pass or a data gradient reads. Side: of the window, if a thread reads whole windows.
template <class Product, bool Whole, int Side, int Channels>
__device__ __forceinline__ auto pixels_of(const ConvArguments& a, int row0) {
  using T = typename Product::T;
  const T* x = picture_data<T>(a.g.a, a.g.clock, a.g.view_row, a.view_cols);
  if constexpr (Side > 0)
    return Windows<T, Side, Channels>{x, a.patches, 0, a.patches.rows};
  else
    return StayingPixels<T, Product::BM, Product::BK, Product::threads, !Product::by_warpgroups>(x, a.patches, row0, Whole);
}

// Two blocks share a multiprocessor if their tiles are large. Products in fp32 need too many registers for that.
template <class Product>
constexpr int blocks_for() {
  const bool fits = Product::math != Math::Fp32 && !Product::alone;
  return Product::threads >= 256 && fits ? 2 : 1;
}

// The largest tile of the forward pass in tf32 also holds a bias: with two blocks its registers would spill.
template <class Product, bool Grad>
constexpr int conv_blocks() {
  const bool spills = !Grad && Product::math == Math::Tf32 && Product::BM * Product::BN == 128 * 128;
  return spills ? 1 : blocks_for<Product>();
}

template <class T>
__device__ __forceinline__ Pack<4> rounded(Pack<4> v) {
#pragma unroll
  for (int j = 0; j < 4; ++j) v.v[j] = static_cast<float>(static_cast<T>(v.v[j]));
  return v;
}

__device__ __forceinline__ float* moments_of_tile(float* moments, unsigned tile, int n) {
  return moments ? moments + static_cast<int64_t>(tile) * 3 * n : nullptr;
}

template <class Product, bool Grad, bool Whole, int Side = 0, int Channels = 0>
__global__ __launch_bounds__(Product::threads, conv_blocks<Product, Grad>()) void conv_kernel(
    const __grid_constant__ ConvArguments a) {
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  const GemmArguments& g = a.g;
  const int row0 = blockIdx.x / g.tiles_n * Product::BM, col0 = blockIdx.x % g.tiles_n * Product::BN;
  Product product(memory);
  auto w = weights_of<Grad, Product>(a, col0);
  if (g.settled) product.begin_b(w, col0, g.k);
  wait_for_previous();
  if (!g.settled) product.begin_b(w, col0, g.k);
  auto x = pixels_of<Product, Whole, Side, Channels>(a, row0);
  product.begin_a(x, row0, g.k);
  constexpr bool whole_results = Whole || Side > 0;
  const Pack<4> bias = early_bias<whole_results, Product>(g, col0);
  product.run(x, w, row0, col0, g.k, [](const T*, int) {});
  if constexpr (Product::by_warpgroups)
    if (g.writes_rows) {
      return product.write(static_cast<T*>(g.c), g.n, col0, [&](int r) { return row0 + r < g.m ? row0 + r : -1; },
                           moments_of_tile(a.moments, blockIdx.x / g.tiles_n, g.n));
    }
  product.meet();
  // Short code where a block has many groups of four: it runs through it only once.
  constexpr int at_once = Product::by_warpgroups || Side > 0 ? 4 : Product::quads_per_thread;
  const auto finish = [&](auto each_quad) {
#pragma unroll at_once
    for (int i = 0; i < Product::quads_per_thread; ++i) {
      const int2 q = Product::quad_at(i);
      if (q.x >= Product::BM) continue;
      const Pack<4> v = product.quad(q.x, q.y);
      finish_quad<whole_results>(g, row0 + q.x, col0 + q.y, v, bias);
      if (row0 + q.x < g.m) each_quad(v);
    }
  };
  if constexpr (Side > 0 && sizeof(T) == 2)
    if (float* const moments = moments_of_tile(a.moments, blockIdx.x / g.tiles_n, g.n)) {
      ColumnMoments<Product::BN, 4, Product::threads> sums;
      sums.pivot = rounded<T>(product.quad(0, Product::quad_at(0).y));
      finish([&](const Pack<4>& v) { sums.add(rounded<T>(v)); });
      __syncthreads();  // every thread has read the tile
      return sums.write(reinterpret_cast<float*>(memory), moments, g.n, col0);
    }
  finish([](const Pack<4>&) {});
}

template <class Product, int Side, int Channels>
__device__ __forceinline__ auto moving_pixels_of(const ConvUpdateArguments& a, int first, int end, int col0) {
  using T = typename Product::T;
  const T* x = picture_data<T>(a.x, a.clock, a.view_row, a.view_cols);
  if constexpr (Side > 0)
    return Windows<T, Side, Channels>{x, a.patches, first, end};
  else if constexpr (Product::whole_b)
    return MovingPixels<T, Product::BK, Product::BN, Product::threads>(x, a.patches, a.steps, first, end, col0);
  else
    return MovingElements<T>{x, a.patches, first, end};
}

template <class Product>
__device__ __forceinline__ auto gradients_of(const ConvUpdateArguments& a, int first, int count, int row0) {
  using T = typename Product::T;
  const T* dz = static_cast<const T*>(a.dz) + static_cast<int64_t>(first) * a.k;
  if constexpr (Product::whole_a)
    return Lines<T, false, Product::BK, Product::BM, Product::threads>(dz, count, a.k, 0, row0);
  else
    return Operand<T>{dz, count, a.k};
}

template <class Product, int Side = 0, int Channels = 0>
__global__ __launch_bounds__(Product::threads, blocks_for<Product>()) void conv_weight_grad_kernel(
    const __grid_constant__ ConvUpdateArguments a) {
  using T = typename Product::T;
  extern __shared__ __align__(16) char memory[];
  const int tiles = a.tiles_m * a.tiles_n, split = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int row0 = tile / a.tiles_n * Product::BM, col0 = tile % a.tiles_n * Product::BN;
  const int first = split * a.split_pixels, end = min(a.patches.rows, first + a.split_pixels), count = end - first;
  wait_for_previous();
  Product product(memory);
  auto dz = gradients_of<Product>(a, first, count, row0);
  auto x = moving_pixels_of<Product, Side, Channels>(a, first, end, col0);
  product.begin_b(x, col0, count);
  product.begin_a(dz, row0, count);
  ColumnSums<Product, true> columns;
  const bool sum_columns = a.db && col0 == 0;
  product.run(dz, x, row0, col0, count, [&](const T* piece, int k0) {
    if (sum_columns) columns(piece, k0);
  });
  product.meet();
  const int n = a.patches.cols;
  const Ref dw{reinterpret_cast<char*>(a.dw + split * a.split_step), DType::F32};
#pragma unroll
  for (int i = 0; i < Product::quads_per_thread; ++i) {
    const int2 q = Product::quad_at(i);
    const int row = row0 + q.x, col = col0 + q.y;
    if (q.x < Product::BM && row < a.k && col < n)
      store_some<4>(dw, static_cast<int64_t>(row) * n + col, product.quad(q.x, q.y), min(4, n - col), n % 4 == 0);
  }
  if (!sum_columns) return;
  const float db = columns.joined(reinterpret_cast<float*>(memory));
  const int row = row0 + static_cast<int>(threadIdx.x);
  if (threadIdx.x < Product::BM && row < a.k) a.db[split * a.split_step + row] = db;
}

// ---- arguments ----
inline Patches patches_of(const Convolution& c) {
  const Window& v = c.window;
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  const auto number = [](int64_t n) { return static_cast<int>(n); };
  Patches p;
  p.taps = number(v.kw);
  p.pixels = number(grad ? v.h * v.w : v.oh * v.ow);
  p.result_width = number(grad ? v.w : v.ow);
  p.rows = number(v.n) * p.pixels;
  p.height = number(grad ? v.oh : v.h), p.width = number(grad ? v.ow : v.w), p.channels = number(grad ? v.k : v.c);
  p.cols = number(v.kh * v.kw) * p.channels;
  p.scale = grad ? 1 : number(v.stride), p.every = grad ? number(v.stride) : 1;
  p.shift = number(grad ? v.pad : -v.pad), p.sign = grad ? -1 : 1;
  p.by_result = Divisor(p.pixels), p.by_result_width = Divisor(p.result_width);
  p.by_channels = Divisor(p.channels), p.by_taps = Divisor(p.taps);
  return p;
}

// True if rows of `cols` elements begin at an address that allows packs of n elements.
inline bool rows_pack(const Tensor& t, int64_t cols, int64_t n) {
  return packs(Tensor{t.data, t.type, 1, cols}, n);
}

inline ConvArguments conv_arguments(const Convolution& c) {
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  const Tensor &from = grad ? c.z : c.x, &to = grad ? c.x : c.z;
  ConvArguments a{};
  a.patches = patches_of(c);
  a.row_length = static_cast<int>(c.window.kh * c.window.kw * c.window.c);
  a.view_cols = from.cols;
  a.moments = c.moments.data;
  GemmArguments& g = a.g;
  g.a = from.data, g.b = c.w.data, g.bias = c.bias.data, g.c = to.data, g.saved = c.saved.data;
  g.clock = from.clock, g.view_row = from.view_offset * from.rows;
  g.m = a.patches.rows, g.n = static_cast<int>(grad ? c.window.c : c.window.k), g.k = a.patches.cols;
  g.epilogue = c.epilogue, g.activation = c.activation;
  g.c_type = to.type, g.bias_type = c.bias.type, g.saved_type = c.saved.type;
  g.settled = c.w_is_settled;
  g.writes_rows = g.epilogue == Epilogue::None && size_of(to.type) == 2 && rows_pack(to, g.n, 8);
  return a;
}

// True if a forward pass or a data gradient can read and write 16 bytes at once.
inline bool moves_whole_parts(const Convolution& c) {
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  const Window& v = c.window;
  const Tensor &from = grad ? c.z : c.x, &to = grad ? c.x : c.z;
  const int64_t part = 16 / size_of(from.type), n = grad ? v.c : v.k, row_length = v.kh * v.kw * v.c;
  return rows_pack(from, grad ? v.k : v.c, part) && rows_pack(c.w, grad ? n : row_length, part) && rows_pack(to, n, 4) &&
         rows_pack(c.saved, n, 4) && rows_pack(c.bias, n, 4);
}

// True for first layers whose windows a thread can read at once, with results that move in parts of 16 bytes.
inline bool has_small_windows(const Convolution& c) {
  const Window& v = c.window;
  const bool small = v.kh == v.kw && ((v.kh == 3 && (v.c == 1 || v.c == 3)) || (v.kh == 5 && v.c == 1));
  if (c.pass == Convolution::Pass::WeightGrad) return small && rows_pack(c.z, v.k, 16 / size_of(c.z.type));
  return small && rows_pack(c.z, v.k, 4) && rows_pack(c.saved, v.k, 4) && rows_pack(c.bias, v.k, 4);
}

// ---- launch ----
// Adds up what the splits of a weight gradient left, in their order.
void join_weight_grads(Queue, const float* parts, int splits, int64_t step, const Tensor& dw, const Tensor& db);

template <class Product, bool Grad, bool Whole, int Side = 0, int Channels = 0>
void launch_conv(Queue queue, ConvArguments a) {
  const auto kernel = conv_kernel<Product, Grad, Whole, Side, Channels>;
  const size_t shared = Product::shared_bytes(a.g.k);
  a.g.tiles_n = static_cast<int>(ceil_div(a.g.n, Product::BN));
  allow_shared(kernel, shared);
  launch(queue, kernel, ceil_div(a.g.m, Product::BM) * a.g.tiles_n, Product::threads, shared, a);
}

// Chooses the splits: `slots` blocks for each multiprocessor, and a few stages for each block.
inline int splits_for(const ConvUpdateArguments& a, int stage, int64_t space, int64_t slots) {
  const int64_t wanted = std::max<int64_t>(1, slots * kMultiprocessors / (a.tiles_m * a.tiles_n));
  const int64_t fit = std::min<int64_t>(ceil_div(a.patches.rows, 2 * stage), space / (4 * a.split_step));
  return static_cast<int>(std::clamp<int64_t>(fit, 1, wanted));
}

inline ConvUpdateArguments conv_update_arguments(const Convolution& c) {
  ConvUpdateArguments a{};
  a.x = c.x.data, a.dz = c.z.data;
  a.clock = c.x.clock, a.view_row = c.x.view_offset * c.x.rows, a.view_cols = c.x.cols;
  a.patches = patches_of(c);
  a.k = static_cast<int>(c.window.k);
  return a;
}

constexpr int64_t kMostKept = 2 << 20;  // bytes of parts

template <class Product, int Side = 0, int Channels = 0>
void launch_weight_grad(Queue queue, Workspace workspace, const Convolution& c) {
  ConvUpdateArguments a = conv_update_arguments(c);
  const auto kernel = conv_weight_grad_kernel<Product, Side, Channels>;
  a.steps = PixelSteps(a.patches, Product::BK);
  a.tiles_m = static_cast<int>(ceil_div(a.k, Product::BM));
  a.tiles_n = static_cast<int>(ceil_div(a.patches.cols, Product::BN));
  const int64_t weights = static_cast<int64_t>(a.k) * a.patches.cols;
  a.split_step = ceil_div(weights + a.k, 4) * 4;
  const int wanted = splits_for(a, Product::BK, workspace.bytes, Product::alone ? 1 : 2);
  a.split_pixels = static_cast<int>(ceil_div(ceil_div(a.patches.rows, wanted), Product::BK)) * Product::BK;
  const int splits = static_cast<int>(ceil_div(a.patches.rows, a.split_pixels));
  const bool direct = splits == 1;
  // Few parts are left to the update. More of them take it longer than a launch that adds them.
  const bool keeps = !direct && c.kept && 4 * a.split_step * splits <= std::min(kMostKept, c.kept->memory_left().bytes);
  void* const parts = keeps ? c.kept->memory_left().data : workspace.data;
  a.dw = static_cast<float*>(direct ? c.w.data : parts);
  a.db = !c.bias_grad ? nullptr : direct ? static_cast<float*>(c.bias_grad.data) : a.dw + weights;
  const size_t shared = std::max<size_t>(Product::shared_bytes(a.split_pixels), Product::threads * sizeof(float));
  allow_shared(kernel, shared);
  launch(queue, kernel, static_cast<int64_t>(splits) * a.tiles_m * a.tiles_n, Product::threads, shared, a);
  if (direct) return;
  if (!keeps) return join_weight_grads(queue, a.dw, splits, a.split_step, c.w, c.bias_grad);
  c.kept->keep(c.w.data, {a.dw, a.split_step, splits});
  if (c.bias_grad) c.kept->keep(c.bias_grad.data, {a.db, a.split_step, splits});
}

// The tiles: for channels that fill no 16 bytes, and for 16, 32, 64 and more channels of the result. All need less than
// the 99 KiB of shared memory that a block can have on GPUs for desktops.
using OddTile16 = TileShape<64, 16, 4, 1, 1, 16, 16, 2>;
using OddTile64 = TileShape<64, 64, 2, 2, 1, 16, 16, 2>;
using ConvTile16 = TileShape<64, 16, 4, 1, 1, 32, 32, 4>;
using ConvTile32 = TileShape<64, 32, 4, 1, 1, 32, 32, 4>;
using ConvTile64 = TileShape<128, 64, 4, 2, 1, 32, 64, 3>;
using ConvTile128 = TileShape<128, 128, 2, 4, 1, 16, 32, 4>;

// First layers, whose windows hold 9, 25 or 27 numbers: a sum of one step.
constexpr int kWindowRows = 256;
using WindowTile16 = TileShape<kWindowRows, 16, 8, 1, 1, 16, 16, 2>;
template <int Columns>
using WindowTile = TileShape<kWindowRows, Columns, 8, 1, 1, 32, 32, 2>;

template <Math M, class Shape, int Side, int Channels>
void conv_windows(Queue queue, const ConvArguments& a) {
  launch_conv<TileProduct<M, false, true, Shape, false>, false, false, Side, Channels>(queue, a);
}

template <Math M>
void conv_windows_of(Queue queue, const Convolution& c) {
  const ConvArguments a = conv_arguments(c);
  const bool few = a.g.n <= 16;
  if (c.window.c == 3)
    return few ? conv_windows<M, WindowTile<16>, 3, 3>(queue, a) : conv_windows<M, WindowTile<64>, 3, 3>(queue, a);
  if (c.window.kh == 5)
    return few ? conv_windows<M, WindowTile<16>, 5, 1>(queue, a) : conv_windows<M, WindowTile<64>, 5, 1>(queue, a);
  few ? conv_windows<M, WindowTile16, 3, 1>(queue, a) : conv_windows<M, WindowTile<64>, 3, 1>(queue, a);
}

template <Math M, bool Grad>
void conv_product_of(Queue queue, const Convolution& c) {
  if constexpr (!Grad)
    if (has_small_windows(c)) return conv_windows_of<M>(queue, c);
  if (sizeof(typename Number<M>::type) == 2 && moves_whole_parts(c) && suits_warpgroups(c))
    return suits_tiles(c) ? conv_by_tiles(queue, c) : conv_by_warpgroups(queue, {}, c);
  const ConvArguments a = conv_arguments(c);
  const auto with = [&]<class Shape, bool Whole>() {
    launch_conv<TileProduct<M, false, !Grad, Shape, Whole>, Grad, Whole>(queue, a);
  };
  const int64_t n = a.g.n;
  if (!moves_whole_parts(c)) return n <= 16 ? with.template operator()<OddTile16, false>()
                                            : with.template operator()<OddTile64, false>();
  if (n <= 16) return with.template operator()<ConvTile16, true>();
  if (n <= 32) return with.template operator()<ConvTile32, true>();
  const bool few = ceil_div(a.g.m, 128) * ceil_div(n, 128) < kMultiprocessors / 2;
  if (n <= 64 || few) return with.template operator()<ConvTile64, true>();
  with.template operator()<ConvTile128, true>();
}

using UpdateTile16 = TileShape<16, 16, 1, 1, 8, 128, 128, 3>;
using UpdateTile32 = TileShape<32, 32, 1, 1, 8, 64, 128, 3>;
using UpdateTile64 = TileShape<64, 64, 2, 2, 2, 32, 64, 3>;
using UpdateTile128 = TileShape<128, 128, 2, 4, 1, 16, 32, 4>;

// A stage has a window for each thread, and each warp sums its own part of a stage.
template <Math M, int Side, int Channels>
void weight_grad_of_windows(Queue queue, Workspace workspace, const Convolution& c) {
  constexpr int columns = Side * Side * Channels <= 16 ? 16 : 32;
  const auto with = [&]<class Shape>() {
    launch_weight_grad<TileProduct<M, true, false, Shape, true, false>, Side, Channels>(queue, workspace, c);
  };
  if (c.window.k <= 16) return with.template operator()<TileShape<16, columns, 1, 1, 8, 128, 256, 2>>();
  if (c.window.k <= 32) return with.template operator()<TileShape<32, columns, 1, 1, 8, 128, 256, 2>>();
  with.template operator()<TileShape<64, columns, 1, 1, 8, 64, 128, 3>>();
}

template <Math M>
void conv_weight_grad_of(Queue queue, Workspace workspace, const Convolution& c) {
  if (has_small_windows(c)) {
    if (c.window.c == 3) return weight_grad_of_windows<M, 3, 3>(queue, workspace, c);
    return c.window.kh == 5 ? weight_grad_of_windows<M, 5, 1>(queue, workspace, c)
                            : weight_grad_of_windows<M, 3, 1>(queue, workspace, c);
  }
  const auto with = [&]<class Shape, bool WholeA, bool WholeB>() {
    launch_weight_grad<TileProduct<M, true, false, Shape, WholeA, WholeB>>(queue, workspace, c);
  };
  const int64_t part = 16 / size_of(c.x.type), k = c.window.k;
  if (!rows_pack(c.z, k, part)) return with.template operator()<UpdateTile16, false, false>();
  if (!rows_pack(c.x, c.window.c, part)) return with.template operator()<UpdateTile16, true, false>();
  if (sizeof(typename Number<M>::type) == 2 && suits_warpgroups(c)) return conv_by_warpgroups(queue, workspace, c);
  if (k <= 32) return with.template operator()<UpdateTile32, true, true>();
  if (k <= 64) return with.template operator()<UpdateTile64, true, true>();
  with.template operator()<UpdateTile128, true, true>();
}

template <Math M>
void conv_of(Queue queue, Workspace workspace, const Convolution& c) {
  if (c.pass == Convolution::Pass::WeightGrad) return conv_weight_grad_of<M>(queue, workspace, c);
  c.pass == Convolution::Pass::Forward ? conv_product_of<M, false>(queue, c) : conv_product_of<M, true>(queue, c);
}

}  // namespace ws::cuda
