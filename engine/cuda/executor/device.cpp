// Finds the GPU. On a machine without a usable GPU it gives a sentence and never crashes.
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/executor/cuda_executor.h"
#include "engine/cuda/executor/device_reasons.h"
#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/machine_code.h"
#include "profiling/base/driver_version.h"

namespace ws::cuda {
namespace {

void fill_limits(DeviceInfo& info, const cudaDeviceProp& prop) {
  info.multiprocessors = prop.multiProcessorCount;
  info.memory_bytes = static_cast<int64_t>(prop.totalGlobalMem);
  info.compute = std::to_string(prop.major) + "." + std::to_string(prop.minor);
  info.max_threads_per_sm = prop.maxThreadsPerMultiProcessor;
  info.max_blocks_per_sm = prop.maxBlocksPerMultiProcessor;
  info.registers_per_sm = prop.regsPerMultiprocessor;
  info.shared_per_sm = static_cast<int>(prop.sharedMemPerMultiprocessor);
  info.l2_bytes = prop.l2CacheSize;
  info.shared_per_block = static_cast<int>(prop.sharedMemPerBlockOptin);
  info.warp = prop.warpSize;
}

}  // namespace

DeviceInfo query_device() {
  DeviceInfo info;
  int devices = 0, driver = 0, runtime = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  info.driver = driver_version(driver ? version_text(driver) : "");
  if (runtime) info.runtime = version_text(runtime);
  if (code != cudaSuccess || devices == 0) {
    cudaGetLastError();
    info.why_not = why_no_device(code, devices, driver, CUDART_VERSION);
    return info;
  }
  cudaDeviceProp prop{};
  if (const cudaError_t error = cudaGetDeviceProperties(&prop, 0); error != cudaSuccess) {
    cudaGetLastError();
    info.why_not = why_no_device(error, devices, driver, CUDART_VERSION);
    return info;
  }
  info.name = prop.name;
  info.gpus = devices;
  fill_limits(info, prop);
  // A driver that is not older than our toolkit compiles our PTX. An older one is asked.
  const bool has_code = made_for(prop.major, prop.minor) || (driver >= CUDART_VERSION && build_has_ptx(prop.major, prop.minor));
  info.why_not = why_no_code({prop.name, prop.major, prop.minor}, has_code, ask_for_code);
  info.cuda = info.why_not.empty();
  if (!info.cuda) cudaGetLastError();
  return info;
}

}  // namespace ws::cuda
