// The reference interpreter: runs every plan with plain loops, in the order of its ops.
#pragma once
#include <memory>
#include <string>

#include "engine/cpu/host_ranks.h"
#include "engine/executor/executor.h"

namespace ws {

// One of several ranks, or alone.
struct HostRank {
  std::shared_ptr<cpu::HostRanks> group;
  int rank = 0;
};

// `name` is what device_name() answers.
std::unique_ptr<Executor> make_cpu_executor(std::string name = "CPU", HostRank rank = {});
std::unique_ptr<Executor> make_oracle(HostRank rank = {});  // the same in float64

}  // namespace ws
