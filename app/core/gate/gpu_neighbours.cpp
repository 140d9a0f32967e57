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
  std::vector<GpuUser> users = users_();
  std::erase_if(users, [](const GpuUser& user) { return user.process == getpid(); });
  // A program that has just ended may still be listed for a moment.
  constexpr int kLooks = 10, kBetweenUs = 50'000;
  for (int i = 1; program == 0 && !users.empty() && i < kLooks; ++i) {
    usleep(kBetweenUs);
    const std::vector<GpuUser> now = users_();
    std::erase_if(users, [&](const GpuUser& user) { return std::ranges::find(now, user) == now.end(); });
  }
  for (const GpuUser& user : users) {
    const bool own = program != 0 && (!is_alive(user.process) || descends_from(user.process, program));
    (own ? own_ : others_).insert(user.gpu);
  }
}

bool GpuNeighbours::any() const {
  return std::ranges::any_of(own_, [this](int gpu) { return others_.contains(gpu); });
}

}  // namespace ws::app
