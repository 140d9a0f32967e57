// Stamps: time marks that a kernel of many steps writes about its inside. The program hands them over after each
// launch. A collector draws them inside the record of the kernel.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "profiling/annotate/annotate.h"

namespace ws::prof {

// One lane of a kernel (some warps of a block) writes a stamp when it begins `op`. op 0 ends the previous op.
struct DeviceStamp {
  uint64_t globaltimer = 0;  // ns
  uint32_t step = 0;         // step + 1
  OpTag op = kNoOp;
  uint16_t lane = 0;
};
static_assert(sizeof(DeviceStamp) == 16);

struct StampedLaneName {
  std::string name;
  bool helper = false;  // its warps only fetch data for other warps
};

// The stamps of one launch. `kernel_op` is the op around the launch, `first_step` (step + 1) its first step.
struct StampedLaunch {
  OpTag kernel_op = kNoOp;
  uint32_t first_step = 0;
  std::vector<DeviceStamp> stamps;
  std::vector<StampedLaneName> lanes;  // "block N" if empty
  uint64_t begin = 0, end = 0;     // times of the kernel by globaltimer; 0, 0: times of its stamps
};

// Carries stamps from the launching thread to the collector.
class StampBoard {
 public:
  static StampBoard& instance();

  // How many steps of each launch shall write stamps; 0: nobody needs them.
  void want(int64_t steps) { wanted_.store(steps, std::memory_order_relaxed); }
  int64_t wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // Announces launches of kernels that write stamps: from now on kernel records are kept until their stamps arrive.
  void announce() { announced_.store(true, std::memory_order_relaxed); }
  bool announced() const { return announced_.load(std::memory_order_relaxed); }

  void add(StampedLaunch launch);  // dropped if too many are waiting
  std::vector<StampedLaunch> take();

 private:
  std::atomic<int64_t> wanted_{0};
  std::atomic<bool> announced_{false};
  std::mutex mutex_;
  std::vector<StampedLaunch> launches_;
};

}  // namespace ws::prof
