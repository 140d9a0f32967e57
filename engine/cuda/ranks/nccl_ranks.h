// The ranks of one process, one per GPU, connected by NCCL.
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

// Throws Failure without NCCL, or if two GPUs cannot reach each other. `beside_products`: averages run at the same time
// as matrix products and leave multiprocessors for them.
Ranks make_nccl_ranks(int ranks, bool beside_products);

}  // namespace ws::cuda
