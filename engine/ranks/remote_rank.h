// The executor of a rank that is another process. Each call is executed there.
#pragma once
#include <memory>

#include "engine/cpu/rank_average.h"
#include "engine/executor/executor.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rank_processes.h"

namespace ws {

// `average`: takes part for the other process when the ranks average gradients; null with NCCL.
std::unique_ptr<Executor> make_remote_rank(RankProcesses& processes, int rank, const RankRequest& request,
                                           std::shared_ptr<cpu::RankAverage> average);

}  // namespace ws
