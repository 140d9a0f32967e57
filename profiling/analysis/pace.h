// How fast a run went, from when its losses were seen: what there is to know of a run without a trace.
#pragma once
#include <vector>

#include "profiling/base/statistics.h"

namespace ws::prof {

// When a step's loss was seen, on a clock that stands still while the run is evaluated or rests.
struct Pace {
  double step = 0, wall_s = 0;
};
// True if both were seen at once, in a run of that mean time per step, whatever time lay between them.
inline bool seen_together(Pace before, Pace after, double mean_s) {
  return after.wall_s - before.wall_s < mean_s * (after.step - before.step) / 2;
}

// Times per step of stretches of a run. Losses come many at a time, so only the last of those that came together says
// how far the run was.
class PaceSpread {
 public:
  PaceSpread(Pace first, Pace last);
  void add(Pace seen);  // in order, from the first to the last
  std::vector<double> stretches_us() const;  // in their order; empty if there are too few

 private:
  static constexpr size_t kStretches = 40;
  Pace first_, before_;
  double mean_s_, steps_;
  std::vector<Pace> ends_;  // of stretches; 0 steps: nothing came in it
};

std::vector<double> pace_stretches_us(const std::vector<Pace>& seen);

// When the losses of a run were seen, a few thousand of them at most: of those that came at once the last one.
class PaceLog {
 public:
  void add(Pace seen);  // in order
  void clear() { seen_.clear(), apart_s_ = 0; }
  const std::vector<Pace>& seen() const { return seen_; }

 private:
  std::vector<Pace> seen_;
  double apart_s_ = 0;  // closer ones are one
};

}  // namespace ws::prof
