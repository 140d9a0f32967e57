#include "engine/executor/executor.h"

#include <algorithm>
#include <fstream>
#include <thread>

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

bool add_notes(Plan& plan, const std::vector<std::string>& notes) {
  bool news = false;
  for (size_t i = 0; i < std::min(notes.size(), plan.ops.size()); ++i) {
    std::string& note = plan.ops[i].note;
    if (notes[i].empty() || note.ends_with(notes[i])) continue;
    note += (note.empty() ? "" : "; ") + notes[i];
    news = true;
  }
  return news;
}

bool wants_cuda(const RunSpec& spec) {
  return spec.exec.device == Device::Cuda || (spec.exec.device == Device::Auto && device_info().cuda);
}

std::unique_ptr<Executor> make_executor(const RunSpec& spec) {
  if (auto reason = why_invalid(spec, device_info().cuda)) throw Failure(*reason);
#ifdef WARPSCOPE_HAVE_CUDA
  if (wants_cuda(spec)) return cuda::make_cuda_executor(spec);
#endif
  return make_cpu_executor();
}

}  // namespace ws
