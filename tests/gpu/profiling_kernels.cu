// Kernels that do next to nothing, for a known time, or stamp what they do.
#include <cooperative_groups.h>

#include "tests/gpu/profiling_kernels.h"

namespace ws::prof::testing {

namespace {

__device__ uint64_t globaltimer() {
  uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__global__ void empty_kernel() {}
__global__ void other_kernel(float* out) {
  if (out) out[threadIdx.x] = 0;
}
__global__ void spin_kernel(uint64_t nanoseconds) {
  const uint64_t start = globaltimer();
  while (globaltimer() - start < nanoseconds) {
  }
}
__global__ void fill_kernel(float* out, int n) {  // (n)
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = static_cast<float>(i);
}

__global__ void resident_kernel(int steps, int ops, uint16_t first_op, uint32_t first_step, Stamp* stamps) {
  auto grid = cooperative_groups::this_grid();
  Stamp* mine = stamps + static_cast<size_t>(blockIdx.x) * (steps * ops + 1);
  const auto block = static_cast<uint16_t>(blockIdx.x);
  for (int i = 0; i < steps * ops; ++i) {
    if (threadIdx.x == 0) {
      mine[i] = {globaltimer(), first_step + i / ops, static_cast<uint16_t>(first_op + i % ops), block};
    }
    grid.sync();
  }
  if (threadIdx.x == 0) mine[steps * ops] = {globaltimer(), 0, 0, block};
}

}  // namespace

void launch_empty(cudaStream_t stream) { empty_kernel<<<1, 32, 0, stream>>>(); }
void launch_other(cudaStream_t stream) { other_kernel<<<2, 64, 0, stream>>>(nullptr); }
void launch_spin(cudaStream_t stream, uint64_t nanoseconds) { spin_kernel<<<1, 32, 0, stream>>>(nanoseconds); }
void launch_fill(cudaStream_t stream, float* out, int n) { fill_kernel<<<(n + 255) / 256, 256, 0, stream>>>(out, n); }

void launch_resident(cudaStream_t stream, int blocks, int steps, int ops, uint16_t first_op, uint32_t first_step,
                     Stamp* stamps) {
  void* arguments[] = {&steps, &ops, &first_op, &first_step, &stamps};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(resident_kernel), dim3(blocks), dim3(128), arguments, 0, stream);
}

}  // namespace ws::prof::testing
