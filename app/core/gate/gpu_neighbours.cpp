#include "app/core/gate/gpu_neighbours.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

#include "profiling/base/process.h"

namespace ws::app {
namespace {

// The part of NVML that is needed, found at run time. The layout is the one of nvmlProcessInfo_v2_t.
class Nvml {
 public:
  Nvml() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    int (*init)() = nullptr;
    int (*count)(unsigned*) = nullptr;
    find(init, "nvmlInit_v2"), find(count, "nvmlDeviceGetCount_v2"), find(handle_, "nvmlDeviceGetHandleByIndex_v2");
    for (const char* name : {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"})
      if (!processes_) find(processes_, name);
    if (!init || !count || !handle_ || !processes_ || init() != 0 || count(&gpus_) != 0) gpus_ = 0;
  }

  std::vector<GpuUser> users() const {
    constexpr unsigned kMost = 256, kWhole = ~0U;
    std::vector<GpuUser> users;
    for (unsigned gpu = 0; gpu < gpus_; ++gpu) {
      void* device = nullptr;
      ProcessInfo found[kMost];
      unsigned count = kMost;
      if (handle_(gpu, &device) != 0 || processes_(device, &count, found) != 0) continue;
      for (unsigned i = 0; i < std::min(count, kMost); ++i)
        users.push_back({static_cast<int>(1000 * gpu + (found[i].instance == kWhole ? 0 : found[i].instance + 1)), found[i].process});
    }
    return users;
  }

 private:
  struct ProcessInfo {
    unsigned process;
    unsigned long long bytes;
    unsigned instance, compute_instance;
  };
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
  }

  void* library_ = nullptr;
  unsigned gpus_ = 0;
  int (*handle_)(unsigned, void**) = nullptr;
  int (*processes_)(void*, unsigned*, ProcessInfo*) = nullptr;
};

}  // namespace

std::vector<GpuUser> gpu_users() {
  static const Nvml nvml;
  return nvml.users();
}

void GpuNeighbours::look(pid_t program) {
  for (const GpuUser& user : users_()) {
    if (user.process == getpid()) continue;
    const bool own = program != 0 && (!is_alive(user.process) || descends_from(user.process, program));
    (own ? own_ : others_).insert(user.gpu);
  }
}

bool GpuNeighbours::any() const {
  return std::ranges::any_of(own_, [this](int gpu) { return others_.contains(gpu); });
}

}  // namespace ws::app
