// The ranks of one process, one a GPU, joined by NCCL.
#pragma once
#include <memory>
#include <vector>

#include "engine/cuda/runtime/rank_link.h"
#include "engine/executor/rank_group.h"

namespace ws::cuda {

struct Ranks {
  std::shared_ptr<RankGroup> group;
  std::vector<std::unique_ptr<RankLink>> links;  // by rank; rank r runs on device r
};

// Throws Failure without NCCL, and where two GPUs cannot reach each other.
Ranks make_nccl_ranks(int ranks);

}  // namespace ws::cuda
