#include "engine/devices/devices.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <thread>

#include "engine/cpu/cpu_executor.h"
#include "engine/executor/ranked_executor.h"
#ifdef WARPSCOPE_HAVE_CUDA
#include "engine/cuda/executor/cuda_executor.h"
#include "engine/cuda/ranks/nccl_ranks.h"
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

int ranks_of(const RunSpec& spec) {
  const DeviceInfo& device = device_info();
  if (!wants_cuda(spec)) return static_cast<int>(std::max<int64_t>(1, spec.exec.gpus));
  if (spec.exec.gpus > device.gpus)
    throw Failure("exec.gpus asks for " + std::to_string(spec.exec.gpus) + " GPUs and this machine has " +
                  std::to_string(device.gpus) + ".");
  return spec.exec.gpus == 0 ? device.gpus : static_cast<int>(spec.exec.gpus);
}

namespace {

#ifdef WARPSCOPE_HAVE_CUDA
std::unique_ptr<Executor> make_cuda(const DeviceInfo& device, int ranks, Comm comm) {
  if (!device.cuda) throw Failure(device.why_not);
  if (ranks == 1) return cuda::make_cuda_executor(device.name);
  auto joined = cuda::make_nccl_ranks(ranks, comm == Comm::Overlap);
  return make_ranked_executor(ranks, joined.group, [&](int rank) {
    return cuda::make_cuda_executor(device.name, std::move(joined.links[static_cast<size_t>(rank)]));
  });
}
#endif

}  // namespace

std::unique_ptr<Executor> make_executor(const RunSpec& spec) {
  const DeviceInfo& device = device_info();
  if (auto reason = why_invalid(spec, device.cuda)) throw Failure(*reason);
  const int ranks = ranks_of(spec);
#ifdef WARPSCOPE_HAVE_CUDA
  if (wants_cuda(spec)) return make_cuda(device, ranks, spec.exec.comm);
#endif
  const std::string name = device.cuda ? "CPU" : device.name;
  if (ranks == 1) return make_cpu_executor(name);
  const auto group = std::make_shared<cpu::HostRanks>(ranks);
  return make_ranked_executor(ranks, group, [&](int rank) { return make_cpu_executor(name, {group, rank}); });
}

FreeMemory free_memory_for(const RunSpec& spec) {
  return {free_host_bytes(), wants_cuda(spec) ? device_info().memory_bytes : 0};
}

}  // namespace ws
