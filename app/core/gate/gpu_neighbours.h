// Which other processes compute on the GPU that a program uses, as NVML reports them. A measurement beside them does not count.
#pragma once
#include <sys/types.h>

#include <functional>
#include <set>
#include <vector>

#include "app/core/gate/nvml.h"

namespace ws::app {

using GpuUsers = std::function<std::vector<GpuUser>()>;
std::vector<GpuUser> gpu_users();  // now; empty without NVML

class GpuNeighbours {
 public:
  explicit GpuNeighbours(GpuUsers users) : users_(std::move(users)) {}
  // `program`: the process group that runs now; 0: it does not run. In a container NVML reports numbers of processes that nobody
  // knows there: while the program runs they are its own, unless they are there without it, too.
  void look(pid_t program);
  bool any() const;  // on a GPU that the program used

 private:
  GpuUsers users_;
  std::set<int> own_, others_;
};

}  // namespace ws::app
