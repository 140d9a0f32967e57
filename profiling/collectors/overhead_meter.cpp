#include "profiling/collectors/overhead_meter.h"

#include <algorithm>

namespace ws::prof {

bool OverheadMeter::step(int64_t number, int64_t now_ns) {
  if (stage_step_ < 0 || number <= last_step_) {  // the first step, or a new run; keeps what was measured so far
    stage_ = Stage::SettleBefore;
    stage_step_ = number;
    stage_ns_ = now_ns;
    cycle_untraced_ns_ = 0;
  }
  last_step_ = number;
  const int64_t steps = number - stage_step_, ns = now_ns - stage_ns_;
  const bool long_enough = steps >= limits_.min_steps && ns >= limits_.min_ns;
  const bool rested = static_cast<double>(ns) * share_ >= static_cast<double>(cycle_untraced_ns_);
  if (stage_ == Stage::Rest ? rested : long_enough) {
    if (paused()) cycle_untraced_ns_ += ns;
    finish_stage(static_cast<double>(ns) / static_cast<double>(std::max<int64_t>(steps, 1)));
    stage_step_ = number;
    stage_ns_ = now_ns;
  }
  return paused();
}

void OverheadMeter::finish_stage(double ns_per_step) {
  switch (stage_) {
    case Stage::SettleBefore:
      stage_ = Stage::Before;
      break;
    case Stage::Before:
      before_ = ns_per_step, stage_ = Stage::SettleUntraced;
      break;
    case Stage::SettleUntraced:
      stage_ = Stage::Untraced;
      break;
    case Stage::Untraced:
      untraced_ = ns_per_step, stage_ = Stage::SettleAfter;
      break;
    case Stage::SettleAfter:
      stage_ = Stage::After;
      break;
    case Stage::After: {
      std::lock_guard lock(mutex_);
      added_.push_back((before_ + ns_per_step) / 2 / untraced_ - 1);
      stage_ = Stage::Rest;
      break;
    }
    case Stage::Rest:
      cycle_untraced_ns_ = 0, stage_ = Stage::SettleBefore;
      break;
  }
}

Interval OverheadMeter::result() const {
  std::lock_guard lock(mutex_);
  return median_with_interval(added_);
}

}  // namespace ws::prof
