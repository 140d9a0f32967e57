// A CUDA program that names what its kernels do inside, to be recorded. Prints what it did into FILE.
//   ranged_program planted|warps|nested|endless|cost FILE
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "profiling/annotate/kernel_ranges.cuh"

namespace {

__device__ void spin(long long cycles) {
  const long long until = clock64() + cycles;
  while (clock64() < until) {
  }
}

// Ranges of 20,000, 60,000 and 40,000 cycles fill the whole kernel.
__global__ void planted_kernel(int rounds, warpsight::Ranges ranges) {
  for (int i = 0; i < rounds; ++i) {
    ranges.begin(0), spin(20'000), ranges.end(0);
    ranges.begin(1), spin(60'000), ranges.end(1);
    ranges.begin(2), spin(40'000), ranges.end(2);
  }
}

// Warp 0 loads while warps 1 to 3 multiply.
__global__ void warps_kernel(warpsight::Ranges ranges) {
  const warpsight::Range work(ranges, threadIdx.x < 32 ? 0 : 1);
  spin(threadIdx.x < 32 ? 400'000 : 800'000);
}

__global__ void nested_kernel(warpsight::Ranges ranges) {
  ranges.begin(0), spin(100'000);
  ranges.begin(1), spin(200'000), ranges.end(1);
  spin(100'000), ranges.end(0);
}

// Runs for this many ms and makes a range of 50 µs again and again.
__global__ void endless_kernel(unsigned long long ms, unsigned* made, warpsight::Ranges ranges) {
  const auto timer = [] {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  const unsigned long long until = timer() + ms * 1'000'000;
  unsigned count = 0;
  for (; timer() < until; ++count) {
    const unsigned long long next = timer() + 50'000;
    const warpsight::Range work(ranges, 0);
    while (timer() < next) {
    }
  }
  if (threadIdx.x == 0) made[blockIdx.x] = count;
}

// Arithmetic without memory, with or without a range around each 1,000 operations.
template <bool ranged>
__global__ void work_kernel(float* out, int rounds, warpsight::Ranges ranges) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    if (ranged) ranges.begin(0);
    for (int k = 0; k < 1000; ++k) value = value * 1.0001f + 0.5f;
    if (ranged) ranges.end(0);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int multiprocessors() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

// Median over 31 launches, in ms.
template <bool ranged>
float time_work(float* out, int rounds, const warpsight::Ranges& ranges) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 36; ++i) {
    cudaEventRecord(begin);
    work_kernel<ranged><<<multiprocessors(), 128>>>(out, rounds, ranges);
    cudaEventRecord(end), cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 5) times.push_back(ms);
  }
  std::nth_element(times.begin(), times.begin() + 15, times.end());
  return times[15];
}

void cost(std::ofstream& file) {
  constexpr int kRounds = 100;
  float* out = nullptr;
  cudaMalloc(&out, sizeof(float) * static_cast<size_t>(multiprocessors()) * 128);
  const warpsight::KernelRanges inside({"work"});
  const float without = time_work<false>(out, kRounds, inside.ranges()), with = time_work<true>(out, kRounds, inside.ranges());
  file << without << ' ' << with << ' ' << 2 * kRounds << '\n';
  cudaFree(out);
}

void endless(std::ofstream& file) {
  const warpsight::KernelRanges inside({"work"}, warpsight::Each::Block, 1 << 15, 62);
  unsigned* made = nullptr;
  cudaMallocManaged(&made, 2 * sizeof *made);
  endless_kernel<<<2, 32>>>(1500, made, inside.ranges());
  cudaDeviceSynchronize();
  file << made[0] + made[1] << '\n';
  cudaFree(made);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const auto is = [words](const char* mode) { return std::strcmp(words[1], mode) == 0; };
  std::ofstream file(words[2]);
  if (is("cost")) cost(file);
  if (is("endless")) endless(file);
  if (is("planted")) {
    const warpsight::KernelRanges inside({"load", "multiply", "store"}, warpsight::Each::Block, 1 << 20);
    for (int i = 0; i < 10; ++i) planted_kernel<<<multiprocessors(), 64>>>(40, inside.ranges());
    file << 10 * multiprocessors() << '\n';
    cudaDeviceSynchronize();
  }
  if (is("warps")) {
    const warpsight::KernelRanges inside({"load", "multiply"}, warpsight::Each::Warp);
    warps_kernel<<<multiprocessors(), 128>>>(inside.ranges());
  }
  if (is("nested")) {
    const warpsight::KernelRanges inside({"outer", "inner"});
    nested_kernel<<<1, 32>>>(inside.ranges());
  }
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
