#include "tests/gpu/read_speed.h"

#include <algorithm>

#include "engine/cuda/runtime/handles.h"

namespace ws::test {
namespace {

constexpr int kPasses = 20, kTries = 5, kAhead = 8;

// `turning`: every other pass goes backwards, so that what came last into the cache is read first.
__global__ void read_kernel(const float4* data, int64_t packs, int passes, bool turning, float* out) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const bool back = turning && pass % 2;
    for (int64_t from = first; from < packs; from += kAhead * step) {
      float4 ahead[kAhead];
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        const int64_t i = from + j * step;
        ahead[j] = i < packs ? __ldcg(data + (back ? packs - 1 - i : i)) : float4{};
      }
#pragma unroll
      for (int j = 0; j < kAhead; ++j) sum += ahead[j].x + ahead[j].y + ahead[j].z + ahead[j].w;
    }
  }
  if (sum != 0) *out = sum;  // never: the memory is zero, which the compiler cannot know
}

using TimingEvent = cuda::Handle<cudaEvent_t, cudaEventDestroy>;

double timed(const float4* data, int64_t packs, int blocks, int threads, bool turning, float* out) {
  TimingEvent begin, end;
  CUDA_CHECK(cudaEventCreate(begin.out()));
  CUDA_CHECK(cudaEventCreate(end.out()));
  float best = 0;
  for (int i = 0; i < kTries; ++i) {
    CUDA_CHECK(cudaEventRecord(begin));
    read_kernel<<<blocks, threads>>>(data, packs, kPasses, turning, out);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    best = i == 0 ? ms : std::min(best, ms);
  }
  return 1e3 * static_cast<double>(best) / kPasses;
}

}  // namespace

double microseconds_to_read(int64_t bytes) {
  const auto data = cuda::DeviceBlock<float4>::device(static_cast<size_t>(bytes) / sizeof(float4));
  const auto out = cuda::DeviceBlock<float>::device(1);
  CUDA_CHECK(cudaMemset(data.data(), 0, data.bytes()));
  int multiprocessors = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  double best = 0;
  for (const int threads : {256, 512, 1024})
    for (const int each : {1, 2, 4})
      for (const bool turning : {false, true}) {
        if (threads * each > 2048) continue;
        const double us =
            timed(data.data(), static_cast<int64_t>(data.size()), each * multiprocessors, threads, turning, out.data());
        best = best == 0 ? us : std::min(best, us);
      }
  return best;
}

}  // namespace ws::test
