#include "engine/devices/devices.h"

#include <fstream>
#include <limits>
#include <thread>

#include "engine/cpu/cpu_executor.h"
#ifdef WARPSCOPE_HAVE_CUDA
#include "engine/cuda/executor/cuda_executor.h"
#endif

namespace ws {
namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "CPU";
}

DeviceInfo ask_device() {
  DeviceInfo info;
#ifdef WARPSCOPE_HAVE_CUDA
  info = cuda::query_device();
#else
  info.why_not = "This build has no CUDA support: it trains on the CPU.";
#endif
  if (!info.cuda) info.name = cpu_name();
  info.cpu_threads = static_cast<int>(std::thread::hardware_concurrency());
  return info;
}

int64_t free_host_bytes() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; info >> key >> kib; std::getline(info, unit))
    if (key == "MemAvailable:") return kib * 1024;
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

const DeviceInfo& device_info() {
  static const DeviceInfo info = ask_device();
  return info;
}

bool gpu_lost() {
#ifdef WARPSCOPE_HAVE_CUDA
  return cuda::gpu_lost();
#else
  return false;
#endif
}

bool wants_cuda(const RunSpec& spec) {
  return spec.exec.device == Device::Cuda || (spec.exec.device == Device::Auto && device_info().cuda);
}

std::unique_ptr<Executor> make_executor(const RunSpec& spec) {
  const DeviceInfo& device = device_info();
  if (auto reason = why_invalid(spec, device.cuda)) throw Failure(*reason);
#ifdef WARPSCOPE_HAVE_CUDA
  if (wants_cuda(spec)) {
    if (!device.cuda) throw Failure(device.why_not);
    return cuda::make_cuda_executor(device.name);
  }
#endif
  return make_cpu_executor(device.cuda ? "CPU" : device.name);
}

FreeMemory free_memory_for(const RunSpec& spec) {
  return {free_host_bytes(), wants_cuda(spec) ? device_info().memory_bytes : 0};
}

}  // namespace ws
