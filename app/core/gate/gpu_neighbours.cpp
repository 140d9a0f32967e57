#include "app/core/gate/gpu_neighbours.h"

#include <unistd.h>

#include <algorithm>

#include "profiling/base/process.h"

namespace ws::app {
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
