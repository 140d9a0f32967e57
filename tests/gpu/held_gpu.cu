// One kernel that fills every multiprocessor and ends when the host says so.
#include <algorithm>

#include "engine/cuda/runtime/check.h"
#include "tests/gpu/held_gpu.h"

namespace ws::test {
namespace {

constexpr int kThreads = 512;  // divides what every multiprocessor runs at once, so none is left

// gate: [0] opens, [1 + block] says that the block is there. Only one thread looks; all wait for it.
__global__ void __launch_bounds__(kThreads) hold_kernel(volatile int* gate) {
  if (threadIdx.x == 0) {
    gate[1 + blockIdx.x] = 1;
    while (!gate[0]) __nanosleep(1000);
  }
  __syncthreads();
}

int blocks_that_fill_the_gpu() {
  int each = 0, multiprocessors = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, hold_kernel, kThreads, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  return each * multiprocessors;
}

}  // namespace

HeldGpu::HeldGpu(std::chrono::milliseconds patience) {
  const int blocks = blocks_that_fill_the_gpu();
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_ = stream;
  CUDA_CHECK(cudaHostAlloc(&gate_, static_cast<size_t>(blocks + 1) * sizeof(int), cudaHostAllocMapped));
  std::fill_n(gate_, blocks + 1, 0);
  watch_ = std::thread([this, patience] {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!open_ && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    late_ = !open_;
    open();
  });
  hold_kernel<<<blocks, kThreads, 0, stream>>>(gate_);
  CUDA_CHECK(cudaGetLastError());
  for (int i = 1; i <= blocks; ++i)
    while (!*static_cast<volatile int*>(gate_ + i) && !late_) std::this_thread::yield();
}

HeldGpu::~HeldGpu() {
  open();
  watch_.join();
  cudaStreamSynchronize(static_cast<cudaStream_t>(stream_));
  cudaStreamDestroy(static_cast<cudaStream_t>(stream_));
  cudaFreeHost(gate_);
}

void HeldGpu::open() {
  open_ = true;
  *static_cast<volatile int*>(gate_) = 1;
}

void HeldGpu::release() {
  open();
  CUDA_CHECK(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)));
}

}  // namespace ws::test
