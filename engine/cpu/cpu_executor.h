// The reference interpreter: runs every plan with plain loops, op by op.
#pragma once
#include <memory>
#include <string>

#include "engine/cpu/rank_average.h"
#include "engine/executor/executor.h"

namespace ws {

// One of several ranks; without a group it works alone.
struct HostRank {
  std::shared_ptr<cpu::RankAverage> group;
  int rank = 0;
};

// `name` is the result of device_name().
std::unique_ptr<Executor> make_cpu_executor(std::string name = "CPU", HostRank rank = {});
std::unique_ptr<Executor> make_oracle(HostRank rank = {});  // the same interpreter in float64

}  // namespace ws
