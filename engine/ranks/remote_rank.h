// The executor of a rank that is another process. Each call is executed there.
#pragma once
#include <memory>

#include "engine/cpu/rank_average.h"
#include "engine/executor/executor.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rank_processes.h"

namespace ws {

// Asks every other rank to get ready, all at the same time. Throws the Failure of a rank that cannot, so that no rank
// waits for it to connect.
void prepare_ranks(RankProcesses& processes, const RankRequest& request);

// `average`: takes part for the other process when the ranks average gradients; null with NCCL.
std::unique_ptr<Executor> make_remote_rank(RankProcesses& processes, int rank,
                                           std::shared_ptr<cpu::RankAverage> average);

}  // namespace ws
