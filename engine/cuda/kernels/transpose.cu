// Turns matrices: pictures between the layouts nhwc and nchw.
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kSide = 32, kTurnRows = 8;  // a tile of kSide × kSide, moved by kSide × kTurnRows threads

// Rows of the tile are read and its columns written, both along adjacent addresses.
__global__ __launch_bounds__(kSide * kTurnRows) void turn_kernel(Tensor x, Tensor y, int64_t height, int64_t width) {
  __shared__ float tile[kSide][kSide + 1];
  wait_for_previous();
  const int64_t tiles_across = (width + kSide - 1) / kSide, tiles = (height + kSide - 1) / kSide * tiles_across;
  const int64_t first = blockIdx.x / tiles * height * width, at = blockIdx.x % tiles;
  const int64_t row0 = at / tiles_across * kSide, col0 = at % tiles_across * kSide;
  const int i = threadIdx.x % kSide, j = threadIdx.x / kSide;
  const Ref from = resolve(x), to = resolve(y);
#pragma unroll
  for (int r = j; r < kSide; r += kTurnRows)
    if (row0 + r < height && col0 + i < width) tile[r][i] = load(from, first + (row0 + r) * width + col0 + i);
  __syncthreads();
#pragma unroll
  for (int c = j; c < kSide; c += kTurnRows)
    if (col0 + c < width && row0 + i < height) store(to, first + (col0 + c) * height + row0 + i, tile[i][c]);
}

}  // namespace

void turn(Queue queue, const Window& w, const Tensor& x, const Tensor& y) {
  const int64_t tiles = ceil_div(w.h, kSide) * ceil_div(w.w, kSide);
  launch(queue, turn_kernel, w.n * tiles, kSide * kTurnRows, 0, x, y, w.h, w.w);
}

}  // namespace ws::cuda
