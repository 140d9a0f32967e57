#include "engine/devices/device_workloads.h"

#include "engine/devices/devices.h"
#ifdef WARPSIGHT_HAVE_CUDA
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
void measure_device_ceilings(Ceilings&, const LabSpec&, const std::atomic<bool>&) {}
std::vector<BusRate> measure_bus_rates(int, const std::atomic<bool>&) {
  throw Failure("no GPU: " + device_info().why_not);
}
int64_t free_device_bytes() { return 0; }
void release_device_memory() {}
bool run_cold_call_if_asked() { return false; }
#endif

}  // namespace ws::lab
