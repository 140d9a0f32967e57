// Ranks connected by NCCL, one per GPU: all ranks of one process, or one rank of a process.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/cuda/ranks/rank_links.h"

namespace ws::cuda {

// Throws Failure without NCCL, or if two GPUs cannot reach each other. `beside_products`: averages run at the same time
// as matrix products and leave multiprocessors for them.
Ranks make_nccl_ranks(int ranks, bool beside_products);

// Rank 0 makes an id and sends it to all processes, as NCCL asks. NCCL's processes then find each other by themselves.
std::string make_nccl_id();
struct ProcessRank {
  std::shared_ptr<RankGroup> group;
  std::function<std::unique_ptr<RankLink>()> connect;  // waits for all ranks. Throws Failure, also once abandoned
};
// Throws Failure without NCCL.
ProcessRank make_nccl_rank(const std::string& id, int rank, int ranks, int device, bool beside_products);

}  // namespace ws::cuda
