// The clock from which kernels read their step, batches gathered in the epoch's order, and data generated on the GPU.
#include "datasets/synthetic.h"
#include "engine/cuda/kernels/device_code.cuh"

namespace ws::cuda {
namespace {

constexpr int kCopyThreads = 256;

__global__ void set_clock_kernel(StepClock* clock, StepClock value) {
  wait_for_previous();
  *clock = value;
}

__global__ void advance_kernel(StepClock* clock, int64_t steps, int64_t rows) {
  wait_for_previous();
  clock->step += steps;
  clock->row += rows;
}

struct GatherArguments {
  Tensor in, out;
  const uint32_t* order;
  int64_t first;
  const StepClock* clock;
  int64_t offset;
  int64_t per_row;  // packs per row
};

// Each thread copies eight adjacent elements of a row. `Whole`: the rows of both tensors allow packs.
template <bool Whole>
__global__ void gather_rows_kernel(const __grid_constant__ GatherArguments g) {
  wait_for_previous();
  constexpr int n = Whole ? 8 : 1;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= g.out.rows * g.per_row) return;
  const int64_t row = i / g.per_row, col = i % g.per_row * n;
  const int64_t first = g.clock ? g.clock->row + g.offset * g.out.rows : g.first;
  const int64_t from = g.order ? g.order[first + row] : first + row;
  const Ref in = resolve(g.in), out = resolve(g.out);
  if constexpr (Whole)
    store_pack<8>(out, row * g.out.cols + col, load_pack<8>(in, from * g.in.cols + col));
  else if (in.type == DType::I32 && out.type == DType::I32)
    reinterpret_cast<int32_t*>(out.data)[row * g.out.cols + col] =
        reinterpret_cast<const int32_t*>(in.data)[from * g.in.cols + col];
  else
    store(out, row * g.out.cols + col, load(in, from * g.in.cols + col));
}

__global__ void fill_line_kernel(float* x, float* y, int64_t points, int64_t first, uint64_t seed, float slope,
                                 float intercept, float noise) {
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= points) return;
  const data::LinePoint point = data::line_point(seed, static_cast<uint64_t>(first + i), slope, intercept, noise);
  x[i] = point.x;
  y[i] = point.y;
}

}  // namespace

void fill_line(Queue queue, float* x, float* y, int64_t points, int64_t first, const data::DataSpec& spec) {
  launch(queue, fill_line_kernel, ceil_div(points, kCopyThreads), kCopyThreads, 0, x, y, points, first, spec.seed,
         static_cast<float>(spec.slope), static_cast<float>(spec.intercept), static_cast<float>(spec.noise));
}

void set_clock(Queue queue, StepClock* clock, StepClock value) {
  launch(queue, set_clock_kernel, 1, 1, 0, clock, value);
}

void advance(Queue queue, StepClock* clock, int64_t steps, int64_t rows) {
  launch(queue, advance_kernel, 1, 1, 0, clock, steps, rows);
}

void gather_rows(Queue queue, const Tensor& in, const uint32_t* order, int64_t first, StepAt at, const Tensor& out) {
  const bool numbers = in.type != DType::I32 && out.type != DType::I32;
  const bool whole = numbers && packs(in, 8) && packs(out, 8);
  const GatherArguments g{in, out, order, first, at.clock, at.offset, whole ? out.cols / 8 : out.cols};
  const auto kernel = whole ? gather_rows_kernel<true> : gather_rows_kernel<false>;
  launch(queue, kernel, ceil_div(out.rows * g.per_row, kCopyThreads), kCopyThreads, 0, g);
}

bool runs_clusters() {
  static const bool found = [] {
    int device = 0, can = 0;
    const bool known = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&can, cudaDevAttrClusterLaunch, device) == cudaSuccess;
    if (!known) cudaGetLastError();
    return known && can != 0;
  }();
  return found;
}

bool runs_warpgroups() {
  static const bool found = [] {
    int device = 0, major = 0, minor = 0;
    const bool known = cudaGetDevice(&device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
                       cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
    if (!known) cudaGetLastError();
    return known && major == 9 && minor == 0;
  }();
  return found;
}

cudaError_t ask_for_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, advance_kernel);
}

}  // namespace ws::cuda
