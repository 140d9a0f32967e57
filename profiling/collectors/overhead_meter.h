// Measures the cost of tracing during the run: it compares short untraced stretches with the traced stretches beside
// them.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "profiling/base/statistics.h"

namespace ws::prof {

class OverheadMeter {
 public:
  struct Limits {
    int64_t min_ns = 20'000'000;  // a stretch is at least this long
    int64_t min_steps = 16;
  };
  OverheadMeter(double untraced_share, Limits limits) : share_(untraced_share), limits_(limits) {}

  // Call it when a step begins. Returns true if tracing shall be paused from now on.
  bool step(int64_t number, int64_t now_ns);
  void interrupted() { stage_step_ = -1; }  // something else took time: begins again
  bool paused() const { return stage_ == Stage::SettleUntraced || stage_ == Stage::Untraced; }
  // Time that tracing adds to an untraced step, as a share: the median of all pairs of stretches. Unknown after too
  // few.
  Interval result() const;

 private:
  // Work queued before a switch still runs after it. So an unmeasured stretch comes before each measured one.
  enum class Stage : uint8_t { SettleBefore, Before, SettleUntraced, Untraced, SettleAfter, After, Rest };
  void finish_stage(double ns_per_step);

  const double share_;
  const Limits limits_;
  Stage stage_ = Stage::SettleBefore;
  int64_t stage_step_ = -1, stage_ns_ = 0, last_step_ = -1;
  int64_t cycle_untraced_ns_ = 0;
  double before_ = 0, untraced_ = 0;
  mutable std::mutex mutex_;    // guards added_ only
  std::vector<double> added_;
};

}  // namespace ws::prof
