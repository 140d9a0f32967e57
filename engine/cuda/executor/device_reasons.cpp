#include "engine/cuda/executor/device_reasons.h"

#include <cuda_runtime_api.h>

namespace ws::cuda {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_no_device(cudaError_t code, int devices, int driver, int needs) {
  if (driver == 0) return "No NVIDIA driver is installed.";
  if (code == cudaErrorInsufficientDriver)
    return "The NVIDIA driver supports CUDA " + version_text(driver) + " only, this program needs " +
           version_text(needs) + ": install a newer driver.";
  if (code == cudaErrorNoDevice || (code == cudaSuccess && devices == 0)) return "No NVIDIA GPU was found.";
  return std::string("The NVIDIA driver does not answer: ") + cudaGetErrorString(code) + ".";
}

// A build without code for this GPU would fail only at the first launch. This reports it earlier.
std::string why_no_code(const GpuKind& gpu, bool made_for, const std::function<cudaError_t()>& ask) {
  const std::string who =
      gpu.name + " (compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + ")";
  if (gpu.major < 7) return who + " is too old: 7.0 or newer is needed.";
  if (made_for) return {};
  const cudaError_t code = ask();
  if (code == cudaSuccess) return {};
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion || code == cudaErrorInvalidPtx)
    return "This build has no code for " + who + ": build it again on this machine.";
  return who + " cannot be used: " + cudaGetErrorString(code) + ".";
}

}  // namespace ws::cuda
