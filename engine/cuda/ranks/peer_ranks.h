// Ranks of one process that read and write each other's memory, over NVLink where the machine has it.
#pragma once
#include "engine/cuda/ranks/rank_links.h"

namespace ws::cuda {

// Throws Failure if two of these GPUs cannot map each other's memory.
Ranks make_peer_ranks(int ranks);
// True if NVLink connects each of these GPUs with each other.
bool peers_have_nvlink(int ranks);

}  // namespace ws::cuda
