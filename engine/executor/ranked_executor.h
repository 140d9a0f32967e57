// Several executors that train one network: each runs its share of every batch on a thread and a device of its own.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "engine/executor/executor.h"
#include "engine/executor/rank_group.h"

namespace ws {

// Makes the executor of a rank. Called on the thread that the rank's work runs on: the caller's for rank 0.
using MakeRank = std::function<std::unique_ptr<Executor>(int rank)>;

// Plans bound to it are those of rank 0; rows and orders are those of the whole step.
std::unique_ptr<Executor> make_ranked_executor(int ranks, std::shared_ptr<RankGroup> group, const MakeRank& make);

}  // namespace ws
