// Dropout: the mask is made from the numbers of the generator wherever it is needed, and is never in memory.
#include "engine/cuda/kernels/device_code.cuh"
#include "profiling/base/philox.h"

namespace ws::cuda {
namespace {

constexpr int kMaskThreads = 256, kWords = 4;  // four elements share one index of the generator

// `stream`: of step 0; the step is its lower half.
__global__ void dropout_kernel(float rate, uint64_t stream, uint64_t seed, const __grid_constant__ StepAt at, Tensor x, Tensor y,
                               bool whole) {
  wait_for_previous();
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kWords, left = x.elements() - i;
  if (left <= 0) return;
  const int count = static_cast<int>(min(left, static_cast<int64_t>(kWords)));
  const uint64_t of_step = stream | static_cast<uint32_t>(at.clock->step + at.offset);
  const data::PhiloxWords words = data::philox_at(seed, of_step, static_cast<uint64_t>(i / kWords));
  const float scale = 1.f / (1.f - rate);
  Pack<kWords> v = load_some<kWords>(resolve(x), i, count, whole);
#pragma unroll
  for (int j = 0; j < kWords; ++j) v.v[j] = data::unit_uniform(words.w[j]) >= rate ? v.v[j] * scale : 0.f;
  store_some<kWords>(resolve(y), i, v, count, whole);
}

}  // namespace

void dropout(Queue queue, const DropoutMask& mask, uint64_t seed, StepAt at, const Tensor& x, const Tensor& y) {
  const auto aligned = [](const Tensor& t) { return !t.clock && reinterpret_cast<uintptr_t>(t.data) % 16 == 0; };
  launch(queue, dropout_kernel, ceil_div(x.elements(), kMaskThreads * kWords), kMaskThreads, 0, mask.rate,
         dropout_stream(mask, 0), seed, at, x, y,
         aligned(x) && aligned(y));
}

}  // namespace ws::cuda
