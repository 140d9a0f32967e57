// Passes the time stamps of persistent kernels to the profiler. A copy follows each launch and is read when it has
// ended.
#pragma once
#include <array>

#include "engine/cuda/persistent/arguments.h"
#include "engine/cuda/persistent/residency.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/plan/plan.h"
#include "profiling/annotate/stamps.h"

namespace ws::cuda {

// The parts of a step of one placed plan, registered as ops that spans can refer to.
class StepParts {
 public:
  StepParts() = default;
  StepParts(const Plan& plan, const persistent::Placement& placement);
  // `what`: Stamp::what without the step.
  prof::OpTag of(unsigned what) const;
  int lanes() const { return lanes_; }
  // Returns the name of a lane on the multiprocessor with this number.
  prof::StampedLaneName lane_name(int lane, unsigned multiprocessor) const;

 private:
  static constexpr int kLayers = 8;
  prof::OpTag first_ = prof::kNoOp;
  int lanes_ = 0, roles_ = 1;
};

class StampReader {
 public:
  // Allocates memory for the stamps of a launch with this many steps, and puts its addresses into `a`.
  void prepare(const StepParts& parts, int64_t steps, persistent::Arguments& a);
  // Call after the launch that prepare() was for. `first_step`: the number of the launch's first step.
  void launched(cudaStream_t stream, prof::OpTag kernel_op, int64_t first_step);
  // Passes on the stamps that have arrived.
  void collect();
  int64_t bytes() const;

 private:
  struct Slot {
    DeviceBlock<persistent::StampHead> heads;
    DeviceBlock<persistent::Stamp> stamps;
    PinnedBlock<persistent::StampHead> read_heads;
    PinnedBlock<persistent::Stamp> read_stamps;
    Event done;
    StepParts parts;
    prof::OpTag kernel_op = prof::kNoOp;
    int64_t first_step = 0;
    int each = 0, steps = 0;
    bool pending = false;
  };
  void hand_over(Slot& slot);

  std::array<Slot, 2> slots_;  // used alternately: one is read while the other is written
  size_t turn_ = 0;
};

}  // namespace ws::cuda
