// Speed of a run, from the times at which its losses were seen. It is all that is known of a run without a trace.
#pragma once
#include <vector>

#include "profiling/base/statistics.h"

namespace ws::prof {

// When the loss of a step was seen, on a clock that stops during evaluations and pauses.
struct Pace {
  double step = 0, wall_s = 0;
};
// True if both losses arrived together, judged by the mean time per step of the run.
inline bool seen_together(Pace before, Pace after, double mean_s) {
  return after.wall_s - before.wall_s < mean_s * (after.step - before.step) / 2;
}

// Times per step in stretches of a run. Losses arrive many at a time, so only the last one of each group says how far
// the run was.
class PaceSpread {
 public:
  PaceSpread(Pace first, Pace last);
  void add(Pace seen);  // in order, from the first to the last
  std::vector<double> stretches_us() const;  // in order of time; empty if there are too few

 private:
  static constexpr size_t kStretches = 40;
  Pace first_, before_;
  double mean_s_, steps_;
  std::vector<Pace> ends_;  // ends of the stretches; 0 steps: no loss in this stretch
};

std::vector<double> pace_stretches_us(const std::vector<Pace>& seen);

// Remembers when the losses of a run were seen: at most a few thousand, and only the last one of each group.
class PaceLog {
 public:
  void add(Pace seen);  // in order
  void clear() { seen_.clear(); apart_s_ = 0; }
  const std::vector<Pace>& seen() const { return seen_; }

 private:
  void keep(Pace seen);

  std::vector<Pace> seen_;
  double apart_s_ = 0;  // closer times are merged
};

}  // namespace ws::prof
