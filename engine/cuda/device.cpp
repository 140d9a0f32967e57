// What GPU there is, asked so that a machine without one gets a sentence and never a crash.
#include <cctype>
#include <fstream>

#include "engine/cuda/check.h"
#include "engine/cuda/cuda_executor.h"
#include "engine/cuda/kernels/kernels.h"

namespace ws::cuda {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "580.159.04" where the kernel module tells it, else the CUDA version that the driver speaks.
std::string driver_text(int speaks) {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.size() > 4 && std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
      return word;
  return speaks ? "CUDA " + version_text(speaks) : "";
}

std::string why_no_device(cudaError_t code, int devices) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver == 0) return "No NVIDIA driver is installed.";
  if (code == cudaErrorInsufficientDriver)
    return "The NVIDIA driver supports CUDA " + version_text(driver) + " only, this program needs " +
           version_text(CUDART_VERSION) + ": install a newer driver.";
  if (code == cudaErrorNoDevice || (code == cudaSuccess && devices == 0)) return "No NVIDIA GPU was found.";
  return std::string("The NVIDIA driver does not answer: ") + cudaGetErrorString(code) + ".";
}

// A build without code for this GPU would fail at the first launch; better to say so before. The driver is asked only
// where the list of what was compiled leaves it open: its answer takes a context, which every start would pay for.
std::string why_no_code(const cudaDeviceProp& prop) {
  const std::string who = std::string(prop.name) + " (compute capability " + std::to_string(prop.major) + "." +
                          std::to_string(prop.minor) + ")";
  if (prop.major < 7) return who + " is too old: 7.0 or newer is needed.";
  if (made_for(prop.major, prop.minor)) return {};
  const cudaError_t code = ask_for_code();
  if (code == cudaSuccess) return {};
  cudaGetLastError();
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorUnsupportedPtxVersion || code == cudaErrorInvalidPtx)
    return "This build has no code for " + who + ": build it again on this machine.";
  return who + " cannot be used: " + cudaGetErrorString(code) + ".";
}

void fill_limits(DeviceInfo& info, const cudaDeviceProp& prop) {
  info.multiprocessors = prop.multiProcessorCount;
  info.memory_bytes = static_cast<int64_t>(prop.totalGlobalMem);
  info.compute = std::to_string(prop.major) + "." + std::to_string(prop.minor);
  info.max_threads_per_sm = prop.maxThreadsPerMultiProcessor;
  info.max_blocks_per_sm = prop.maxBlocksPerMultiProcessor;
  info.registers_per_sm = prop.regsPerMultiprocessor;
  info.shared_per_sm = static_cast<int>(prop.sharedMemPerMultiprocessor);
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
  info.driver = driver_text(driver);
  if (runtime) info.runtime = version_text(runtime);
  if (code != cudaSuccess || devices == 0) {
    cudaGetLastError();
    info.why_not = why_no_device(code, devices);
    return info;
  }
  cudaDeviceProp prop{};
  if (const cudaError_t error = cudaGetDeviceProperties(&prop, 0); error != cudaSuccess) {
    info.why_not = why_no_device(error, devices);
    return info;
  }
  info.name = prop.name;
  fill_limits(info, prop);
  info.why_not = why_no_code(prop);
  info.cuda = info.why_not.empty();
  return info;
}

}  // namespace ws::cuda
