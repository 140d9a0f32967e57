// Pictures on their way into the network: cropped, mirrored and normalised in one pass over memory.
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kPictureThreads = 256, kValues = 4;  // a thread makes four adjacent values, which share one random place

struct Pictures {
  Tensor x, y;
  int64_t height, width, channels;
  int64_t threads;  // of one picture
  uint64_t seed;
  bool whole;  // every picture of y allows packs
};

// A warp writes adjacent values of one picture or two, and reads adjacent values of the same rows.
__global__ void prepare_kernel(const __grid_constant__ Preparation how, const __grid_constant__ StepAt at,
                               const __grid_constant__ Pictures p) {
  wait_for_previous();
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, row = thread / p.threads;
  const int64_t size = p.height * p.width * p.channels, first = thread % p.threads * kValues;
  if (row * size >= p.y.elements()) return;
  PicturePlace place;
  if (how.is_random()) place = place_of(how, p.seed, at.clock->step + at.offset, row);
  const Ref x = resolve(p.x);
  const auto picture = [&](int64_t i) { return load(x, row * size + i); };
  const int count = static_cast<int>(min(size - first, static_cast<int64_t>(kValues)));
  int64_t channel = first % p.channels, column = first / p.channels % p.width, line = first / p.channels / p.width;
  Pack<kValues> values{};
#pragma unroll
  for (int j = 0; j < kValues; ++j) {
    if (j < count)
      values.v[j] = prepared_value<float>(how, place, p.height, p.width, p.channels, line, column, channel, picture);
    if (++channel < p.channels) continue;
    channel = 0;
    if (++column < p.width) continue;
    column = 0, ++line;
  }
  store_some<kValues>(resolve(p.y), row * size + first, values, count, p.whole);
}

}  // namespace

void prepare_pictures(Queue queue, const Preparation& how, const Window& pictures, uint64_t seed, StepAt at, const Tensor& x,
                      const Tensor& y) {
  const int64_t size = pictures.h * pictures.w * pictures.c, threads = ceil_div(size, kValues);
  Tensor rows = y;  // a buffer in the shape of a matrix is one picture a row here
  rows.rows = pictures.n, rows.cols = size;
  const Pictures p{x, y, pictures.h, pictures.w, pictures.c, threads, seed, packs(rows, kValues)};
  launch(queue, prepare_kernel, ceil_div(pictures.n * threads, kPictureThreads), kPictureThreads, 0, how, at, p);
}

}  // namespace ws::cuda
