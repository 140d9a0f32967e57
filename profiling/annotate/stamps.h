// Stamps: what a kernel that runs many steps says of its inside. The program hands them over after each launch; a
// collector draws them inside the kernel's own record.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "profiling/annotate/annotate.h"

namespace ws::prof {

// Written by one lane of a kernel, some warps of a block, when it begins `op`; op 0 ends the one before.
struct DeviceStamp {
  uint64_t globaltimer = 0;  // ns
  uint32_t step = 0;         // step + 1
  OpTag op = kNoOp;
  uint16_t lane = 0;
};
static_assert(sizeof(DeviceStamp) == 16);

struct StampedLaneName {
  std::string name;
  bool helper = false;  // its warps only fetch for others
};

// One launch. `kernel_op` is the op around it, `first_step` (step + 1) its first step.
struct StampedLaunch {
  OpTag kernel_op = kNoOp;
  uint32_t first_step = 0;
  std::vector<DeviceStamp> stamps;
  std::vector<StampedLaneName> lanes;  // "block N" where there are none
  uint64_t begin = 0, end = 0;     // of the kernel by the globaltimer; 0, 0: those of its stamps
};

// Between the thread that launches and the collector.
class StampBoard {
 public:
  static StampBoard& instance();

  // Steps of each launch that shall write stamps; 0: nobody looks.
  void want(int64_t steps) { wanted_.store(steps, std::memory_order_relaxed); }
  int64_t wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // Kernels that write stamps are about to be launched: from now on the records of kernels wait for them.
  void announce() { announced_.store(true, std::memory_order_relaxed); }
  bool announced() const { return announced_.load(std::memory_order_relaxed); }

  void add(StampedLaunch launch);  // dropped where far too many lie here
  std::vector<StampedLaunch> take();

 private:
  std::atomic<int64_t> wanted_{0};
  std::atomic<bool> announced_{false};
  std::mutex mutex_;
  std::vector<StampedLaunch> launches_;
};

}  // namespace ws::prof
