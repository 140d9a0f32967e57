// Kernels that do wrong: one breaks the CUDA context, one races in shared memory.
#include <cstdint>

#include "tests/gpu/poison.h"

namespace ws::test {
namespace {

__global__ void write_kernel(int* where) { *where = 1; }

constexpr int kRacers = 128;

// No barrier between the write and the read of another warp's value.
__global__ void race_kernel(int* out) {
  __shared__ int values[kRacers];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[kRacers - 1 - threadIdx.x];
}

}  // namespace

void write_to_nowhere() { write_kernel<<<1, 1>>>(reinterpret_cast<int*>(uintptr_t{1} << 12)); }

void race_in_shared_memory() {
  int* out = nullptr;
  cudaMalloc(&out, kRacers * sizeof(int));
  race_kernel<<<1, kRacers>>>(out);
  cudaDeviceSynchronize();
  cudaFree(out);
}

}  // namespace ws::test
