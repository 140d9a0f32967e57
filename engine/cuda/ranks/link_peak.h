// Measures how fast the GPUs of this machine average when they do nothing else.
#pragma once
#include <atomic>
#include <vector>

#include "profiling/base/bus_rate.h"

namespace ws::cuda {

// All-reduces of NCCL from 4 KiB to 256 MiB, or to what fits. Takes about a second. A cancelled measurement returns what
// it has. Throws Failure without NCCL, or if two GPUs cannot reach each other.
std::vector<BusRate> measure_bus_rates(int ranks, const std::atomic<bool>& cancel);

}  // namespace ws::cuda
