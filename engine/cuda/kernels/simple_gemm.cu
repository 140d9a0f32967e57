// Matrix products as learners first write them: one thread per result, then with 16 × 16 tiles in shared memory.
#include "engine/cuda/kernels/device_code.cuh"
#include "engine/cuda/kernels/small_gemm.h"

namespace ws::cuda {
namespace {

constexpr int kTile = 16;

struct SimpleArguments {
  Tensor a, b, c, bias, saved;
  Epilogue epilogue;
  Activation activation;
  int64_t m, n, k;
  int64_t a_row, a_k, b_k, b_col;  // strides of op(a) and op(b)
  bool half_sum;
};

__device__ float plus(const SimpleArguments& s, float sum, float product) {
  return s.half_sum ? __half2float(__float2half_rn(sum + product)) : sum + product;
}

__device__ void finish(const SimpleArguments& s, int64_t row, int64_t col, float v) {
  const int64_t at = row * s.n + col;
  if (s.bias) v += load(resolve(s.bias), col);
  if (s.epilogue == Epilogue::BiasActivate) {
    if (s.saved) store(resolve(s.saved), at, v);
    v = activated(s.activation, v);
  } else if (s.epilogue == Epilogue::ActivateGrad) {
    v *= activation_slope(s.activation, load(resolve(s.saved), at));
  }
  store(resolve(s.c), at, v);
}

// One thread per result; operands are read from global memory many times.
__global__ void naive_gemm_kernel(const __grid_constant__ SimpleArguments s) {
  wait_for_previous();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.m * s.n) return;
  const int64_t row = i / s.n, col = i % s.n;
  const Ref a = resolve(s.a), b = resolve(s.b);
  float sum = 0;
  for (int64_t k = 0; k < s.k; ++k)
    sum = plus(s, sum, load(a, row * s.a_row + k * s.a_k) * load(b, k * s.b_k + col * s.b_col));
  finish(s, row, col, sum);
}

// Each tile of an operand is read once; two rows of a tile fill the banks.
__global__ void tiled_gemm_kernel(const __grid_constant__ SimpleArguments s) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  wait_for_previous();
  const int64_t tiles_n = (s.n + kTile - 1) / kTile;
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile;
  const int64_t row = blockIdx.x / tiles_n * kTile + y, col = blockIdx.x % tiles_n * kTile + x;
  const Ref a = resolve(s.a), b = resolve(s.b);
  float sum = 0;
  for (int64_t k0 = 0; k0 < s.k; k0 += kTile) {
    left[y][x] = row < s.m && k0 + x < s.k ? load(a, row * s.a_row + (k0 + x) * s.a_k) : 0.f;
    right[y][x] = col < s.n && k0 + y < s.k ? load(b, (k0 + y) * s.b_k + col * s.b_col) : 0.f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile; ++k) sum = plus(s, sum, left[y][k] * right[k][x]);
    __syncthreads();
  }
  if (row < s.m && col < s.n) finish(s, row, col, sum);
}

SimpleArguments simple_arguments(const Product& p) {
  SimpleArguments s{p.a, p.b, p.c, p.bias, p.saved, p.epilogue, p.activation};
  s.m = p.c.rows;
  s.n = p.c.cols;
  s.k = p.transpose_a ? p.a.rows : p.a.cols;
  s.a_row = p.transpose_a ? 1 : p.a.cols;
  s.a_k = p.transpose_a ? p.a.cols : 1;
  s.b_k = p.transpose_b ? 1 : p.b.cols;
  s.b_col = p.transpose_b ? p.b.cols : 1;
  s.half_sum = p.precision == Precision::Fp16 && p.accumulate == Accumulate::Fp16;
  return s;
}

}  // namespace

void naive_gemm(Queue queue, const Product& p) {
  const SimpleArguments s = simple_arguments(p);
  launch(queue, naive_gemm_kernel, ceil_div(s.m * s.n, 256), 256, 0, s);
}

void tiled_gemm(Queue queue, const Product& p) {
  const SimpleArguments s = simple_arguments(p);
  launch(queue, tiled_gemm_kernel, ceil_div(s.m, kTile) * ceil_div(s.n, kTile), kTile * kTile, 0, s);
}

}  // namespace ws::cuda
