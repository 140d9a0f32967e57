// Several executors that train one network: each runs its share of every batch on its own thread and device.
#pragma once
#include <functional>
#include <memory>

#include "engine/executor/executor.h"
#include "engine/executor/rank_group.h"

namespace ws {

// Makes the executor of a rank, on the thread that will do the rank's work. Rank 0 uses the caller's thread.
using MakeRank = std::function<std::unique_ptr<Executor>(int rank)>;

// Bind the plan of rank 0. Rows and orders belong to the whole step.
std::unique_ptr<Executor> make_ranked_executor(int ranks, std::shared_ptr<RankGroup> group, const MakeRank& make);

}  // namespace ws
