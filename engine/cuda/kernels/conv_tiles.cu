// Convolutions of 3 × 3 in 16 bits over square tiles of a picture, on Hopper's warpgroup instructions: forward and data
// gradient, for pictures of whole tiles and many channels. This file is compiled for sm_90a alone.
//
// A group of four warps has a tile of 8 × 8 pixels. Its 10 × 10 pixels are in shared memory once for each 64 channels,
// and each tap of the window reads them at another place. So a block copies each pixel once instead of nine times.
#include "engine/cuda/kernels/convolution.cuh"
#include "engine/cuda/kernels/warpgroup_product.cuh"

namespace ws::cuda {
namespace {

constexpr int kSide = 8, kHaloSide = kSide + 2, kHalo = kHaloSide * kHaloSide, kTaps = 9;

struct PictureTiles {
  int height, width, tiles_x, tiles_y, tiles;
  explicit PictureTiles(const Window& v)
      : height(static_cast<int>(v.h)),
        width(static_cast<int>(v.w)),
        tiles_x(width / kSide),
        tiles_y(height / kSide),
        tiles(static_cast<int>(v.n) * tiles_x * tiles_y) {}
};

// The tile of 64 results in the picture.
struct PictureTile {
  int first;  // pixel, of all pictures
  int y, x;
  bool exists;
  __device__ PictureTile(const PictureTiles& a, int tile) : exists(tile < a.tiles) {
    const int row = tile / a.tiles_x, picture = row / a.tiles_y;
    y = row % a.tiles_y * kSide, x = tile % a.tiles_x * kSide;
    first = (picture * a.height + y) * a.width + x;
  }
};

struct TileArguments : PictureTiles {
  GemmArguments g;
  int channels, row_length;  // of the picture that is read; of w
  float* moments;
};

template <Math M, bool Grad, int Columns>
struct TileConvolution : WarpgroupProduct<M, false, !Grad, Columns> {
  using Base = WarpgroupProduct<M, false, !Grad, Columns>;
  using Base::shared, Base::sum, Base::threads;
  using typename Base::B;
  using typename Base::T;
  static constexpr bool alone = Base::alone;
  static constexpr int groups = Base::BM / 64, blocks = alone ? 1 : 2, stages = alone ? 4 : 3, ahead = 2;
  // Halos have 16 bytes of each pixel beside each other; an odd number of pixels keeps copies free of bank conflicts.
  static constexpr int pixels = groups * kHalo + 1, part = 8, parts = 64 / part, halo_size = pixels * 64;
  static constexpr int lanes = 128 / parts, pieces = (kHalo + lanes - 1) / lanes, weights_size = Columns * 64;

  static size_t bytes() {
    return 1024 + std::max<size_t>((stages * weights_size + 2 * halo_size) * sizeof(T), Base::sum_size * sizeof(float));
  }

  const TileArguments& a;
  const T* from;       // this thread's channels in the tile's picture
  int offset[pieces];  // of the pixels that this thread copies; negative: outside
  int group, col0;

  __device__ TileConvolution(const TileArguments& arguments, char* memory, int block)
      : Base(memory), a(arguments), group(__shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 128, 0)) {
    col0 = block % a.g.tiles_n * Columns;
    const PictureTile tile(a, block / a.g.tiles_n * groups + group);
    from = static_cast<const T*>(a.g.a) + lane_part() * part;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const int p = lane_pixel() + i * lanes, y = p / kHaloSide - 1, x = p % kHaloSide - 1;
      const bool inside = tile.exists && static_cast<unsigned>(tile.y + y) < static_cast<unsigned>(a.height) &&
                          static_cast<unsigned>(tile.x + x) < static_cast<unsigned>(a.width);
      offset[i] = inside ? (tile.first + y * a.width + x) * a.channels : -1;
    }
  }
  __device__ static __forceinline__ int lane_part() { return static_cast<int>(threadIdx.x) % parts; }
  __device__ static __forceinline__ int lane_pixel() { return static_cast<int>(threadIdx.x) % 128 / parts; }

  __device__ __forceinline__ T* weights(int step) const { return shared + step % stages * weights_size; }
  __device__ __forceinline__ T* halo(int chunk) const { return shared + stages * weights_size + chunk % 2 * halo_size; }

  template <int First, int Count>
  __device__ __forceinline__ void bring_halo(int chunk) const {
    T* to = halo(chunk) + (lane_part() * pixels + group * kHalo + lane_pixel()) * part;
#pragma unroll
    for (int i = First; i < First + Count; ++i)
      if ((i + 1) * lanes <= kHalo || lane_pixel() + i * lanes < kHalo)
        copy_async<16>(to + i * lanes * part, from + max(offset[i], 0) + chunk * 64, offset[i] >= 0);
  }
  // A part of the next halo with each tap; nothing reads the place of the halo before last any more.
  __device__ __forceinline__ void bring_halo_with(int tap, int chunk) const {
    if (tap == 1) bring_halo<0, 1>(chunk);
    if (tap == 2) bring_halo<1, 1>(chunk);
    if (tap == 3) bring_halo<2, 1>(chunk);
    if (tap == 4) bring_halo<3, 1>(chunk);
    if (tap == 5) bring_halo<4, 1>(chunk);
    if (tap == 6) bring_halo<5, 2>(chunk);
  }
  __device__ __forceinline__ void bring_weights(int step) const {
    const int chunk = step / kTaps, tap = step % kTaps;
    const T* w = static_cast<const T*>(a.g.b);
    T* to = weights(step);
    constexpr int cols = Grad ? Columns : 64, in_row = cols / part, rows_at_once = threads / in_row;
    const int r = static_cast<int>(threadIdx.x) / in_row, c = static_cast<int>(threadIdx.x) % in_row * part;
    const int row = Grad ? chunk * 64 + r : col0 + r,
              col = Grad ? tap * a.g.n + col0 + c : tap * a.channels + chunk * 64 + c;
    const T* at = w + static_cast<int64_t>(row) * a.row_length + col;
    constexpr int rows = Grad ? 64 : Columns;
#pragma unroll
    for (int i = 0; i < rows / rows_at_once; ++i)
      copy_async<16>(to + B::at(r + i * rows_at_once, c), at + static_cast<int64_t>(i) * rows_at_once * a.row_length,
                     true);
  }

  __device__ __forceinline__ void multiply_tap(int step) {
    const int chunk = step / kTaps, tap = Grad ? kTaps - 1 - step % kTaps : step % kTaps;
    const T* x = halo(chunk) + (group * kHalo + tap / 3 * kHaloSide + tap % 3) * part;
    // Parts of 16 bytes: `pixels` apart along k, a row of the halo from eight pixels to the next.
    const uint64_t first_a = uint64_t{(static_cast<unsigned>(__cvta_generic_to_shared(x)) & 0x3FFFFu) >> 4} |
                             uint64_t{pixels} << 16 | uint64_t{kHaloSide} << 32,
                   first_b = operand_descriptor(static_cast<unsigned>(__cvta_generic_to_shared(weights(step))));
    begin_warpgroup_products();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      warpgroup_multiply_add<M, false, Grad>(sum, first_a + k * 2 * pixels, first_b + k * (Grad ? 128 : 2));
    commit_warpgroup_products();
  }

  // Call after bring_weights(0).
  __device__ __forceinline__ void run_taps() {
    const int chunks = a.channels / 64, steps = chunks * kTaps;
    bring_halo<0, pieces>(0);
    commit_copies();
    bring_weights(1);
    commit_copies();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_copies<ahead - 1>();
      show_copies();
      __syncthreads();
      multiply_tap(step);
      if constexpr (alone) wait_for_warpgroup_products<1>();
      if (step + ahead < steps) bring_weights(step + ahead);
      const int chunk = step / kTaps + 1;
      if (chunk < chunks) bring_halo_with(step % kTaps, chunk);
      commit_copies();
      if constexpr (!alone) wait_for_warpgroup_products<0>();
    }
    wait_for_warpgroup_products<0>();
  }
};

template <class Product>
__global__ __launch_bounds__(Product::threads,
                             Product::blocks) void tile_conv_kernel(const __grid_constant__ TileArguments a) {
  extern __shared__ __align__(16) char memory[];
  Product product(a, memory, static_cast<int>(blockIdx.x));
  if (a.g.settled) product.bring_weights(0);
  wait_for_previous();
  if (!a.g.settled) product.bring_weights(0);
  const Pack<4> bias = early_bias<true, Product>(a.g, product.col0);
  product.run_taps();
  constexpr int groups = Product::BM / 64;
  if (a.g.writes_rows) {
    const PictureTile tile(a, static_cast<int>(blockIdx.x) / a.g.tiles_n * groups + product.group);
    return product.write(static_cast<typename Product::T*>(a.g.c), a.g.n, product.col0,
                         [&](int r) { return tile.exists ? tile.first + r % 64 / kSide * a.width + r % kSide : -1; },
                         moments_of_tile(a.moments, blockIdx.x / a.g.tiles_n, a.g.n));
  }
  product.meet();
  constexpr int quads = Product::quads_per_thread / groups;
#pragma unroll 1
  for (int group = 0; group < groups; ++group) {
    const PictureTile tile(a, static_cast<int>(blockIdx.x) / a.g.tiles_n * groups + group);
    if (!tile.exists) return;
#pragma unroll 4
    for (int i = 0; i < quads; ++i) {
      const int2 q = Product::quad_at(group * quads + i);
      const int row = tile.first + q.x % 64 / kSide * a.width + q.x % kSide;
      finish_quad<true>(a.g, row, product.col0 + q.y, product.quad(q.x, q.y), bias);
    }
  }
}

template <class Product>
void launch_tile_conv(Queue queue, TileArguments a, int columns) {
  const auto kernel = tile_conv_kernel<Product>;
  a.g.tiles_n = a.g.n / columns;
  allow_shared(kernel, Product::bytes());
  launch(queue, kernel, ceil_div(a.tiles, Product::BM / 64) * a.g.tiles_n, Product::threads, Product::bytes(), a);
}

template <Math M, bool Grad>
void tile_conv(Queue queue, const Convolution& c) {
  const ConvArguments from = conv_arguments(c);
  const TileArguments a{PictureTiles(c.window), from.g, from.patches.channels, from.row_length, from.moments};
  // The larger tile pays off where its sums are long.
  if (a.g.n % 256 == 0 && a.channels >= 256) return launch_tile_conv<TileConvolution<M, Grad, 256>>(queue, a, 256);
  if (a.g.n % 128 != 0) return launch_tile_conv<TileConvolution<M, Grad, 64>>(queue, a, 64);
  launch_tile_conv<TileConvolution<M, Grad, 128>>(queue, a, 128);
}

}  // namespace

bool suits_tiles(const Convolution& c) {
  const Window& v = c.window;
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  const int64_t read = grad ? v.k : v.c, written = grad ? v.c : v.k;
  return c.pass != Convolution::Pass::WeightGrad && v.kh == 3 && v.kw == 3 && v.stride == 1 && v.pad == 1 &&
         v.h % kSide == 0 && v.w % kSide == 0 && read % 64 == 0 && read >= 128 && written % 64 == 0 &&
         v.n * v.h * v.w * read < int64_t{1} << 31 && !(grad ? c.z : c.x).clock;
}

void conv_by_tiles(Queue queue, const Convolution& c) {
  const bool grad = c.pass == Convolution::Pass::DataGrad;
  if (c.precision == Precision::Bf16)
    return grad ? tile_conv<Math::Bf16, true>(queue, c) : tile_conv<Math::Bf16, false>(queue, c);
  grad ? tile_conv<Math::Fp16, true>(queue, c) : tile_conv<Math::Fp16, false>(queue, c);
}

}  // namespace ws::cuda
