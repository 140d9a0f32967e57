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
// `beside_products`: averages run while products do, and leave them multiprocessors.
Ranks make_nccl_ranks(int ranks, bool beside_products);

}  // namespace ws::cuda
