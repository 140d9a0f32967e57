#include "engine/devices/device_workloads.h"

#include <cstring>

#include "engine/devices/devices.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/workloads/lab_kernels.h"
#ifdef WARPSIGHT_HAVE_CUDA
#include "engine/cuda/executor/own_kernel_check.h"
#include "engine/cuda/ranks/link_peak.h"
#include "engine/cuda/workloads/cuda_workloads.h"
#endif

namespace ws::lab {

std::unique_ptr<Workload> make_workload(const LabSpec& spec, Way way, int64_t size, const Inputs& inputs,
                                        const std::atomic<bool>& cancel) {
  if (!info(way).gpu) return make_cpu_workload(spec, way, size, inputs, cancel);
  if (!device_info().cuda) throw Failure("no GPU: " + device_info().why_not);
#ifdef WARPSIGHT_HAVE_CUDA
  return make_cuda_workload(spec, way, size, inputs);
#else
  return nullptr;
#endif
}

#ifdef WARPSIGHT_HAVE_CUDA
namespace {

std::vector<float> numbers(const own::Bytes& bytes) {
  std::vector<float> all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

own::Bytes bytes_of(const std::vector<float>& numbers) {
  const char* first = reinterpret_cast<const char*>(numbers.data());
  return {first, first + numbers.size() * sizeof(float)};
}

// What the operation gives for these operands; the last one is the result.
std::vector<std::vector<float>> results_on_cpu(const LabSpec& spec, int64_t size, const std::vector<own::Bytes>& operands) {
  const Inputs inputs{numbers(operands.front()), operands.size() > 2 ? numbers(operands[1]) : std::vector<float>()};
  const std::atomic<bool> never{false};
  const auto work = make_cpu_workload(spec, Way::CpuLibrary, size, inputs, never);
  work->call();
  std::vector<std::vector<float>> results(operands.size());
  for (int64_t i = 0; i < output_elements(spec, size); ++i) results.back().push_back(static_cast<float>(work->output_at(i)));
  return results;
}

}  // namespace

OwnKernelVerdict check_lab_kernel(const LabSpec& spec, Way way, int64_t size, const OnLaunch& on_launch) {
  const own::KernelContract contract = kernel_contract(spec, size);
  const OwnKernelSource& source = *kernel_of(spec, way);
  if (bytes_of(spec, size) <= kWholeCheckBytes)
    return cuda::check_contract(contract, source, [&](const auto& operands) { return results_on_cpu(spec, size, operands); }, on_launch);
  const Inputs inputs = make_inputs(spec, size);
  std::vector<own::Bytes> operands{bytes_of(inputs.a)};
  if (!inputs.b.empty()) operands.push_back(bytes_of(inputs.b));
  operands.emplace_back(static_cast<size_t>(output_elements(spec, size)) * sizeof(float));
  return cuda::check_memory(contract, source, operands, on_launch);
}

void measure_device_ceilings(Ceilings& known, const LabSpec& sweep, const std::atomic<bool>& cancel) {
  if (device_info().cuda) measure_cuda_ceilings(known, sweep, cancel);
}
std::vector<BusRate> measure_bus_rates(int gpus, const std::atomic<bool>& cancel) {
  return cuda::measure_bus_rates(gpus, cancel);
}
int64_t free_device_bytes() { return device_info().cuda ? free_cuda_bytes() : 0; }
void release_device_memory() {
  if (device_info().cuda) release_cuda_memory();
}
bool run_cold_call_if_asked() { return run_cuda_cold_call_if_asked(); }
#else
OwnKernelVerdict check_lab_kernel(const LabSpec&, Way, int64_t, const OnLaunch&) { throw Failure("no GPU: " + device_info().why_not); }
void measure_device_ceilings(Ceilings&, const LabSpec&, const std::atomic<bool>&) {}
std::vector<BusRate> measure_bus_rates(int, const std::atomic<bool>&) {
  throw Failure("no GPU: " + device_info().why_not);
}
int64_t free_device_bytes() { return 0; }
void release_device_memory() {}
bool run_cold_call_if_asked() { return false; }
#endif

}  // namespace ws::lab
