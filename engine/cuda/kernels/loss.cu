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

// One row of z. With Held > 0, each lane keeps its columns (at most 32 · Held in a row) in registers.
template <DType Type, int Held>
struct KeptRow {
  float v[Held];
  __device__ __forceinline__ KeptRow(const char* z, int64_t row, int cols) {
#pragma unroll
    for (int i = 0; i < Held; ++i) {
      const int c = static_cast<int>(threadIdx.x % 32) + 32 * i;
      v[i] = c < cols ? load(Ref{const_cast<char*>(z), Type}, row * cols + c) : -INFINITY;
    }
  }
  template <class F>
  __device__ __forceinline__ void each(int cols, F f) const {
#pragma unroll
    for (int i = 0; i < Held; ++i) {
      const int c = static_cast<int>(threadIdx.x % 32) + 32 * i;
      if (c < cols) f(c, v[i]);
    }
  }
};

// A row of any width and type, read again for each pass.
struct ReadRow {
  Ref z;
  int64_t row;
  template <class F>
  __device__ __forceinline__ void each(int cols, F f) const {
    for (int c = threadIdx.x % 32; c < cols; c += 32) f(c, load(z, row * cols + c));
  }
};

struct Normaliser {
  float max, sum;
  int best;  // first column that holds the largest value
};

// Computes what softmax needs of a row; every lane gets the same values.
template <class Row>
__device__ __forceinline__ Normaliser normaliser(const Row& z, int cols) {
  float top = -INFINITY, sum = 0;
  int best = cols;
  z.each(cols, [&](int c, float v) {
    if (v > top) top = v, best = c;
  });
  const float max = warp_max(top);
  int first = top == max ? best : cols;
#pragma unroll
  for (int d = 16; d > 0; d /= 2) first = min(first, __shfl_xor_sync(0xffffffffu, first, d));
  z.each(cols, [&](int, float v) { sum += expf(v - max); });
  return {max, warp_sum(sum), first};
}

// The target of a row: (1 − smoothing)·onehot + smoothing/classes.
struct Target {
  int label;
  float right, each;  // of the label beyond `each`, of every class
  __device__ __forceinline__ Target(Ref labels, int64_t row, int cols, float smoothing)
      : label(reinterpret_cast<const int32_t*>(labels.data)[row]),
        right(1.f - smoothing),
        each(smoothing / static_cast<float>(cols)) {}
  __device__ __forceinline__ float at(int col) const { return col == label ? right + each : each; }
};

__device__ __forceinline__ float gradient_scale(int64_t rows, const LossScale* scale) {
  return (scale ? scale->scale : 1.f) / static_cast<float>(rows);
}

__global__ void softmax_kernel(Tensor z, Tensor p) {
  wait_for_previous();
  const Ref from = resolve(z), to = resolve(p);
  const int cols = static_cast<int>(z.cols);
  for_rows(z.rows, [&](int64_t r, int lane) {
    const ReadRow row{from, r};
    const Normaliser n = normaliser(row, cols);
    row.each(cols, [&](int c, float v) { store(to, r * cols + c, expf(v - n.max) / n.sum); });
  });
}

__global__ void softmax_grad_kernel(Tensor p, Tensor labels, const LossScale* scale, Tensor dz, float smoothing) {
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= p.elements()) return;
  const int64_t row = i / p.cols;
  const Target target(resolve(labels), row, static_cast<int>(p.cols), smoothing);
  const float wanted = target.at(static_cast<int>(i - row * p.cols));
  store(resolve(dz), i, (load(resolve(p), i) - wanted) * gradient_scale(p.rows, scale));
}

struct LossArguments {
  Tensor z, labels, dz;
  const LossScale* scale;
  Scratch scratch;
  StepAt at;
  double* sums;
  float smoothing;
  bool join_later = false;
};

// Adds a row's loss to this lane's sums and, if dz is given, writes the row's gradient.
template <class Row>
__device__ __forceinline__ void finish_row(const LossArguments& a, const Row& row, int64_t r, Sums& mine) {
  const int cols = static_cast<int>(a.z.cols);
  const Target target(resolve(a.labels), r, cols, a.smoothing);
  const Normaliser n = normaliser(row, cols);
  const Ref to = resolve(a.dz);
  const float factor = gradient_scale(a.z.rows, a.scale), whole = logf(n.sum) + n.max, share = 1.f / n.sum;
  float of_row = 0;  // this lane's part of the loss
  row.each(cols, [&](int c, float v) {
    const float wanted = target.at(c);
    if (wanted > 0.f) of_row += wanted * (whole - v);
    if (a.dz) store(to, r * cols + c, (expf(v - n.max) * share - wanted) * factor);
  });
  const bool correct = n.best == target.label;
  if (a.join_later) {
    const float loss = warp_sum(of_row);
    if (threadIdx.x % 32 == 0) row_losses(a.scratch)[r] = make_float2(loss, correct);
    return;
  }
  mine.loss += of_row;
  if (threadIdx.x % 32 != 0) return;
  mine.correct += correct;
  mine.rows += 1;
}

// Writes the sums to the metrics; an evaluation adds them to `sums`.
__device__ __forceinline__ void finish_loss(const LossArguments& a, Sums mine, Sums* shared) {
  if (a.join_later) return;
  Sums total;
  mine = block_sum(mine, shared);
  if (!grid_sum(a.scratch, mine, total, shared)) return;
  if (!a.sums) return write_metrics(a.at, total);
  a.sums[0] += total.loss, a.sums[1] += total.correct, a.sums[2] += total.rows;
}

constexpr int kHeld = 4;  // columns of a lane: up to 128 classes stay in registers

template <DType Type>
__global__ void short_row_loss_kernel(const __grid_constant__ LossArguments a) {
  __shared__ Sums shared[kLossWarps];
  wait_for_previous();
  Sums mine;
  for_rows(a.z.rows, [&](int64_t r, int) {
    const KeptRow<Type, kHeld> row(resolve(a.z).data, r, static_cast<int>(a.z.cols));
    finish_row(a, row, r, mine);
  });
  finish_loss(a, mine, shared);
}

__global__ void long_row_loss_kernel(const __grid_constant__ LossArguments a) {
  __shared__ Sums shared[kLossWarps];
  wait_for_previous();
  Sums mine;
  for_rows(a.z.rows, [&](int64_t r, int) { finish_row(a, ReadRow{resolve(a.z), r}, r, mine); });
  finish_loss(a, mine, shared);
}

void launch_loss(Queue queue, const LossArguments& a) {
  const auto kernel = a.z.cols > 32 * kHeld        ? long_row_loss_kernel
                      : a.z.type == DType::Bf16    ? short_row_loss_kernel<DType::Bf16>
                      : a.z.type == DType::F16     ? short_row_loss_kernel<DType::F16>
                                                   : short_row_loss_kernel<DType::F32>;
  launch(queue, kernel, row_blocks(a.z.rows), kLossThreads, 0, a);
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

void cross_entropy(Queue queue, Scratch scratch, const Tensor& z, const Labels& y, StepAt at) {
  launch_loss(queue, {z, y.classes, Tensor{}, nullptr, scratch, at, nullptr, y.smoothing});
}

void softmax_grad(Queue queue, const Tensor& p, const Labels& y, const LossScale* scale, const Tensor& dz) {
  launch(queue, softmax_grad_kernel, ceil_div(p.elements(), kLossThreads), kLossThreads, 0, p, y.classes, scale, dz,
         y.smoothing);
}

void softmax_cross_entropy(Queue queue, Scratch scratch, const Tensor& z, const Labels& y, const LossScale* scale,
                           const Tensor& dz, StepAt at, bool join_later) {
  launch_loss(queue, {z, y.classes, dz, scale, scratch, at, nullptr, y.smoothing, join_later});
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
    launch_loss(queue, {z, y, Tensor{}, nullptr, scratch, StepAt{}, sums, 0.f});
  else
    launch(queue, squared_error_kernel, element_blocks(z), kLossThreads, 0, z, y, nullptr, Tensor{}, scratch, StepAt{},
           sums, true);
}

}  // namespace ws::cuda
