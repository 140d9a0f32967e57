#include "app/core/gate/nvml.h"

#include <dlfcn.h>

#include <algorithm>

namespace ws::app {
namespace {

constexpr int kNotSupported = 3;

}  // namespace

template <class Function>
void Nvml::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library_, name));
}

Nvml::Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  if (!library_) return;
  int (*init)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  find(init, "nvmlInit_v2"), find(count, "nvmlDeviceGetCount_v2"), find(handle_, "nvmlDeviceGetHandleByIndex_v2");
  for (const char* name : {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"})
    if (!processes_) find(processes_, name);
  find(clock_, "nvmlDeviceGetApplicationsClock"), find(lock_, "nvmlDeviceSetGpuLockedClocks"), find(reset_, "nvmlDeviceResetGpuLockedClocks");
  if (!init || !count || !handle_ || init() != 0 || count(&gpus_) != 0) gpus_ = 0;
}

void* Nvml::device(unsigned gpu) const {
  void* device = nullptr;
  return gpu < gpus_ && handle_(gpu, &device) == 0 ? device : nullptr;
}

std::vector<GpuUser> Nvml::users() const {
  constexpr unsigned kMost = 256, kWhole = ~0U;
  std::vector<GpuUser> users;
  for (unsigned gpu = 0; processes_ && gpu < gpus_; ++gpu) {
    void* const at = device(gpu);
    ProcessInfo found[kMost];
    unsigned count = kMost;
    if (!at || processes_(at, &count, found) != 0) continue;
    for (unsigned i = 0; i < std::min(count, kMost); ++i)
      users.push_back({static_cast<int>(1000 * gpu + (found[i].instance == kWhole ? 0 : found[i].instance + 1)), found[i].process});
  }
  return users;
}

unsigned Nvml::clock_mhz(unsigned gpu) const {
  constexpr int kMultiprocessors = 1;  // NVML_CLOCK_SM
  unsigned mhz = 0;
  void* const at = device(gpu);
  return at && clock_ && clock_(at, kMultiprocessors, &mhz) == 0 ? mhz : 0;
}

int Nvml::lock_clocks(unsigned gpu, unsigned mhz) const {
  void* const at = device(gpu);
  return at && lock_ ? lock_(at, mhz, mhz) : kNotSupported;
}

int Nvml::reset_clocks(unsigned gpu) const {
  void* const at = device(gpu);
  return at && reset_ ? reset_(at) : kNotSupported;
}

}  // namespace ws::app
