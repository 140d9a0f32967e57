// Measures the maximum rates of this card, which are the reference lines of the curves.
#include <algorithm>

#include "engine/cuda/workloads/cuda_workloads.h"
#include "engine/cuda/workloads/workload_kernels.h"
#include "engine/cuda/workloads/device_operation.h"

namespace ws::lab {
namespace {

using cuda::DeviceBlock;
using cuda::PinnedBlock;

template <class Work>
double best_seconds(cudaStream_t stream, const Work& work) {
  cuda::Event begin, end;
  CUDA_CHECK(cudaEventCreate(begin.out()));
  CUDA_CHECK(cudaEventCreate(end.out()));
  double best = 1e30;
  for (int i = 0; i < 6; ++i) {
    CUDA_CHECK(cudaEventRecord(begin, stream));
    work();
    CUDA_CHECK(cudaEventRecord(end, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    if (i > 0) best = std::min(best, static_cast<double>(ms) * 1e-3);
  }
  return best;
}

double product_flops(Way way, cudaStream_t stream) {
  LabSpec spec;
  double best = 0;
  for (const int64_t n : {4096, 8192}) {  // larger products are not always faster, because they heat the card
    const Inputs inputs = make_inputs(spec, n);
    cuda::lab::Operation product(spec, way, n, inputs);
    best =
        std::max(best, static_cast<double>(flops_of(spec, n)) / best_seconds(stream, [&] { product.launch(stream); }));
  }
  return best;
}

// Read and written bytes per second: the better of the driver's copy and our own kernel.
double memory_rate(cudaStream_t stream) {
  size_t free = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const size_t elements = std::min(size_t{1} << 28, free / 8 / sizeof(float));  // 1 GiB: far larger than any cache
  const auto from = DeviceBlock<float>::filled(elements, 1), to = DeviceBlock<float>::device(elements);
  const double driver = best_seconds(stream, [&] {
    CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
  });
  const double own = best_seconds(
      stream, [&] { cuda::lab::copy_array(stream, from.data(), to.data(), static_cast<int64_t>(elements)); });
  return 2 * static_cast<double>(from.bytes()) / std::min(driver, own);
}

// Read and written bytes per second, for a block of half the cache.
double l2_rate(cudaStream_t stream) {
  constexpr int kRepeats = 64;
  int device = 0, cache = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  const auto elements = static_cast<size_t>(cache) / 2 / sizeof(float) / 4 * 4;
  if (elements == 0) return 0;
  const auto block = DeviceBlock<float>::filled(elements, 1);
  const double s = best_seconds(stream, [&] {
    cuda::lab::rewrite_block(stream, block.data(), static_cast<int64_t>(elements), kRepeats);
  });
  return 2.0 * kRepeats * static_cast<double>(block.bytes()) / s;
}

double pinned_rate(cudaStream_t stream) {
  constexpr size_t kElements = size_t{1} << 24;
  const auto host = PinnedBlock<float>::pinned(kElements);
  const auto device = DeviceBlock<float>::device(kElements);
  std::fill_n(host.data(), kElements, 1.0f);
  const double s = best_seconds(stream, [&] {
    CUDA_CHECK(cudaMemcpyAsync(device.data(), host.data(), host.bytes(), cudaMemcpyHostToDevice, stream));
  });
  return static_cast<double>(host.bytes()) / s;
}

double sine_rate(cudaStream_t stream, bool small) {
  constexpr int64_t kElements = 1 << 20;
  constexpr int kRepeats = 256;
  const auto out = DeviceBlock<float>::device(kElements);
  const double s =
      best_seconds(stream, [&] { cuda::lab::sine_ceiling(stream, out.data(), kElements, kRepeats, small); });
  return 4.0 * kElements * kRepeats / s;
}

// Leaves the ceiling unknown if there is not enough memory to measure it.
template <class Measure>
void find(double& ceiling, bool wanted, const std::atomic<bool>& cancel, const Measure& measure) {
  if (!wanted || ceiling > 0 || cancel) return;
  try {
    ceiling = measure();
  } catch (const OutOfMemory&) {
    cudaGetLastError();
  }
}

}  // namespace

void measure_cuda_ceilings(Ceilings& c, const LabSpec& sweep, const std::atomic<bool>& cancel) {
  const cuda::Stream stream = cuda::make_stream();
  const bool product = sweep.operation == Operation::MatMul;
  const bool sines = sweep.operation == Operation::Sine;
  const auto among = [&](Way way) { return product && std::ranges::find(sweep.ways, way) != sweep.ways.end(); };
  const bool other = product && std::ranges::any_of(sweep.ways, [](Way way) {
                       return info(way).gpu && way != Way::GpuTf32 && way != Way::GpuFp16;
                     });
  find(c.read_write_bytes_s, true, cancel, [&] { return memory_rate(stream); });
  find(c.l2_bytes_s, product, cancel, [&] { return l2_rate(stream); });
  find(c.pinned_bytes_s, true, cancel, [&] { return pinned_rate(stream); });
  find(c.sine_per_s, sines, cancel, [&] { return sine_rate(stream, false); });
  find(c.short_sine_per_s, sines, cancel, [&] { return sine_rate(stream, true); });
  find(c.fp32_flops_s, other, cancel, [&] { return product_flops(Way::GpuResident, stream); });
  find(c.tf32_flops_s, among(Way::GpuTf32), cancel, [&] { return product_flops(Way::GpuTf32, stream); });
  find(c.fp16_flops_s, among(Way::GpuFp16), cancel, [&] { return product_flops(Way::GpuFp16, stream); });
}

}  // namespace ws::lab
