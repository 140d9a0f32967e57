// The ranks of one process, one per GPU, and the links through which they average.
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

}  // namespace ws::cuda
