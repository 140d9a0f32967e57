// Describes the machine's GPU, or why it has none that we can use.
#pragma once
#include <cstdint>
#include <string>

namespace ws {

struct DeviceInfo {
  bool cuda = false;    // true if a GPU can be used
  std::string why_not;  // one sentence if cuda is false
  std::string name;     // "NVIDIA H200" or the CPU's name
  int gpus = 0;         // GPUs visible to this process; all are assumed to equal the first
  int multiprocessors = 0;
  int64_t memory_bytes = 0, l2_bytes = 0;
  std::string driver, runtime, compute;  // "580.159", "13.0", "9.0"
  int cpu_threads = 0;
  // Limits that determine the theoretical occupancy.
  int max_threads_per_sm = 0, max_blocks_per_sm = 0, registers_per_sm = 0, shared_per_sm = 0, shared_per_block = 0,
      warp = 32;
};

}  // namespace ws
