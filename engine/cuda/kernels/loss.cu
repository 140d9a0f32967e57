// Softmax, cross-entropy and squared error: as single ops, and loss with gradient in one pass. Each warp has one row.
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kLossThreads = 256, kLossWarps = kLossThreads / 32, kMaxBlocks = 1024;

int64_t row_blocks(int64_t rows) { return std::min<int64_t>(ceil_div(rows, kLossWarps), kMaxBlocks); }

// Calls row(r, lane) for the rows of this warp, with a grid stride.
template <class F>
__device__ __forceinline__ void for_rows(int64_t rows, F row) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kLossWarps;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * kLossWarps + threadIdx.x / 32; r < rows; r += step)
    row(r, threadIdx.x % 32);
}

struct Normaliser {
  float max, sum;
  int best;  // first column that holds the largest value
};

// Computes what softmax needs of a row; every lane gets the same values.
__device__ __forceinline__ Normaliser normaliser(Ref z, int64_t row, int cols, int lane) {
  float top = -INFINITY;
  int best = cols;
  for (int c = lane; c < cols; c += 32) {
    const float v = load(z, row * cols + c);
    if (v > top) top = v, best = c;
  }
  const float max = warp_max(top);
  int first = top == max ? best : cols;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) first = min(first, __shfl_xor_sync(0xffffffffu, first, d));
  float sum = 0;
  for (int c = lane; c < cols; c += 32) sum += expf(load(z, row * cols + c) - max);
  return {max, warp_sum(sum), first};
}

__device__ __forceinline__ float gradient_scale(int64_t rows, const LossScale* scale) {
  return (scale ? scale->scale : 1.f) / static_cast<float>(rows);
}

__global__ void softmax_kernel(Tensor z, Tensor p) {
  wait_for_previous();
  const Ref from = resolve(z), to = resolve(p);
  const int cols = static_cast<int>(z.cols);
  for_rows(z.rows, [&](int64_t r, int lane) {
    const Normaliser n = normaliser(from, r, cols, lane);
    for (int c = lane; c < cols; c += 32) store(to, r * cols + c, expf(load(from, r * cols + c) - n.max) / n.sum);
  });
}

__device__ __forceinline__ int label_of(Ref labels, int64_t row) {
  return reinterpret_cast<const int32_t*>(labels.data)[row];
}

__global__ void cross_entropy_kernel(Tensor p, Tensor labels, Scratch scratch, StepAt at) {
  __shared__ Sums shared[kLossWarps];
  wait_for_previous();
  const Ref from = resolve(p), truth = resolve(labels);
  const int cols = static_cast<int>(p.cols);
  Sums mine;
  for_rows(p.rows, [&](int64_t r, int lane) {
    const Normaliser n = normaliser(from, r, cols, lane);
    const int label = label_of(truth, r);
    if (lane != 0) return;
    mine.loss += -logf(fmaxf(load(from, r * cols + label), 1e-37f));
    mine.correct += n.best == label;
    mine.rows += 1;
  });
  Sums total;
  mine = block_sum(mine, shared);
  if (grid_sum(scratch, mine, total, shared)) write_metrics(at, total);
}

__global__ void softmax_grad_kernel(Tensor p, Tensor labels, const LossScale* scale, Tensor dz) {
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.elements()) return;
  const int64_t row = i / p.cols, col = i % p.cols;
  const float target = label_of(resolve(labels), row) == col ? 1.f : 0.f;
  store(resolve(dz), i, (load(resolve(p), i) - target) * gradient_scale(p.rows, scale));
}

// Computes the loss and, if dz is given, its gradient. Writes the sums to the metrics; an evaluation adds them to
// `sums`.
__global__ void softmax_cross_entropy_kernel(Tensor z, Tensor labels, const LossScale* scale, Tensor dz,
                                             Scratch scratch, StepAt at, double* sums) {
  __shared__ Sums shared[kLossWarps];
  wait_for_previous();
  const Ref from = resolve(z), truth = resolve(labels), to = resolve(dz);
  const int cols = static_cast<int>(z.cols);
  const float factor = gradient_scale(z.rows, scale);
  Sums mine;
  for_rows(z.rows, [&](int64_t r, int lane) {
    const Normaliser n = normaliser(from, r, cols, lane);
    const int label = label_of(truth, r);
    if (lane == 0) {
      mine.loss += logf(n.sum) + n.max - load(from, r * cols + label);
      mine.correct += n.best == label;
      mine.rows += 1;
    }
    if (!dz) return;
    for (int c = lane; c < cols; c += 32) {
      const float probability = expf(load(from, r * cols + c) - n.max) / n.sum;
      store(to, r * cols + c, (probability - (c == label ? 1.f : 0.f)) * factor);
    }
  });
  Sums total;
  mine = block_sum(mine, shared);
  if (!grid_sum(scratch, mine, total, shared)) return;
  if (!sums) return write_metrics(at, total);
  sums[0] += total.loss, sums[1] += total.correct, sums[2] += total.rows;
}

// One thread per element; the thread of column 0 counts the row.
__global__ void squared_error_kernel(Tensor z, Tensor y, const LossScale* scale, Tensor dz, Scratch scratch, StepAt at,
                                     double* sums, bool want_loss) {
  __shared__ Sums shared[kLossWarps];
  wait_for_previous();
  const Ref from = resolve(z), truth = resolve(y), to = resolve(dz);
  const float factor = 2.f * gradient_scale(z.elements(), scale);
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  Sums mine;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < z.elements(); i += step) {
    const float difference = load(from, i) - load(truth, i);
    mine.loss += difference * difference / static_cast<float>(z.cols);
    mine.rows += i % z.cols == 0;
    if (dz) store(to, i, difference * factor);
  }
  if (!want_loss) return;
  Sums total;
  mine = block_sum(mine, shared);
  if (!grid_sum(scratch, mine, total, shared)) return;
  if (!sums) return write_metrics(at, total);
  sums[0] += total.loss, sums[1] += total.correct, sums[2] += total.rows;
}

int64_t element_blocks(const Tensor& z) { return std::min<int64_t>(ceil_div(z.elements(), kLossThreads), kMaxBlocks); }

}  // namespace

void softmax(Queue queue, const Tensor& z, const Tensor& p) {
  launch(queue, softmax_kernel, row_blocks(z.rows), kLossThreads, 0, z, p);
}

void cross_entropy(Queue queue, Scratch scratch, const Tensor& p, const Tensor& labels, StepAt at) {
  launch(queue, cross_entropy_kernel, row_blocks(p.rows), kLossThreads, 0, p, labels, scratch, at);
}

void softmax_grad(Queue queue, const Tensor& p, const Tensor& labels, const LossScale* scale, const Tensor& dz) {
  launch(queue, softmax_grad_kernel, ceil_div(p.elements(), kLossThreads), kLossThreads, 0, p, labels, scale, dz);
}

void softmax_cross_entropy(Queue queue, Scratch scratch, const Tensor& z, const Tensor& labels, const LossScale* scale,
                           const Tensor& dz, StepAt at) {
  launch(queue, softmax_cross_entropy_kernel, row_blocks(z.rows), kLossThreads, 0, z, labels, scale, dz, scratch, at,
         nullptr);
}

void squared_error(Queue queue, Scratch scratch, const Tensor& z, const Tensor& y, StepAt at) {
  launch(queue, squared_error_kernel, element_blocks(z), kLossThreads, 0, z, y, nullptr, Tensor{}, scratch, at, nullptr,
         true);
}

void squared_error_grad(Queue queue, const Tensor& z, const Tensor& y, const LossScale* scale, const Tensor& dz) {
  launch(queue, squared_error_kernel, element_blocks(z), kLossThreads, 0, z, y, scale, dz, Scratch{}, StepAt{}, nullptr,
         false);
}

void squared_error_fused(Queue queue, Scratch scratch, const Tensor& z, const Tensor& y, const LossScale* scale,
                         const Tensor& dz, StepAt at) {
  launch(queue, squared_error_kernel, element_blocks(z), kLossThreads, 0, z, y, scale, dz, scratch, at, nullptr, true);
}

void evaluate_loss(Queue queue, Scratch scratch, LossKind loss, const Tensor& z, const Tensor& y, double* sums) {
  if (loss == LossKind::CrossEntropy)
    launch(queue, softmax_cross_entropy_kernel, row_blocks(z.rows), kLossThreads, 0, z, y, nullptr, Tensor{}, scratch,
           StepAt{}, sums);
  else
    launch(queue, squared_error_kernel, element_blocks(z), kLossThreads, 0, z, y, nullptr, Tensor{}, scratch, StepAt{},
           sums, true);
}

}  // namespace ws::cuda
