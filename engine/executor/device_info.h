// The machine's GPU, or why there is none.
#pragma once
#include <cstdint>
#include <string>

namespace ws {

struct DeviceInfo {
  bool cuda = false;    // a GPU can be used
  std::string why_not;  // one sentence when not
  std::string name;     // "NVIDIA H200" or the CPU's name
  int gpus = 0;         // that this process sees; all are taken to be like the first
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  std::string driver, runtime, compute;  // "580.159", "13.0", "9.0"
  int cpu_threads = 0;
  // Limits that theoretical occupancy needs.
  int max_threads_per_sm = 0, max_blocks_per_sm = 0, registers_per_sm = 0, shared_per_sm = 0, shared_per_block = 0,
      warp = 32;
};

}  // namespace ws
