// The time of a step: the one figure that every view of a run shows under this name.
#pragma once
#include "profiling/analysis/pace.h"
#include "profiling/analysis/step_sample.h"

namespace ws::prof {

// The median over the measured steps of a run and its spread.
struct StepTime {
  Interval us;                                                        // the median, with its 95 % interval
  double p5_us = std::numeric_limits<double>::quiet_NaN(), p95_us = p5_us;  // NaN: the spread is not known
  bool known() const { return us.value > 0; }
  bool has_spread() const { return p5_us == p5_us; }
};
// From the sampled steps. A run without them: from stretches between its losses (pace_stretches_us). A run with too few
// of these: the mean of the whole run, which has no spread; 0: not known.
StepTime step_time(const StepSample& sample, const std::vector<double>& stretches_us, double whole_run_us);

template <class Points, class ToPace>
StepTime step_time(const StepSample& sample, const Points& losses, ToPace to_pace, double whole_run_us) {
  if (sample.traced()) return step_time(sample, {}, whole_run_us);
  return step_time(sample, pace_stretches_us(losses, to_pace), whole_run_us);
}

}  // namespace ws::prof
