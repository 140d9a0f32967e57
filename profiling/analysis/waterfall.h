// Two runs side by side: which causes make up the difference of their step times.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "profiling/analysis/step_sample.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// Times per step in ps, as whole numbers, so that causes sum to the difference exactly.
struct Cause {
  Meaning meaning;
  int64_t a_ps, b_ps;
  std::string op = {};  // whose kernels, in a waterfall by op: an op, a kernel that has none, "5 other ops"
  int64_t delta_ps() const { return b_ps - a_ps; }
};
struct Waterfall {
  int64_t a_ps = 0, b_ps = 0;  // wall time per step
  std::vector<Cause> causes;   // largest change first
};
Waterfall waterfall(const Breakdown& a, const Breakdown& b);
// The same with the kernels' parts split by op; all else, and each sum, is the same to the ps.
Waterfall waterfall_by_op(const StepSample& a, const StepSample& b);
// With a bar each for the `most` ops that changed most and one for the rest of them, which comes after those.
Waterfall folded(Waterfall by_op, size_t most);
std::string cause_name(const Cause& cause);  // the op, or the meaning as a part of a step
// Whether both were split, and as finely: kernels against no kernels would be told as idle time that went away.
bool splits_compare(const StepSample& a, const StepSample& b);

// Calls to the driver's allocator: all that were made in a recorded program, in a run of ours those that its own
// allocator could not answer. NaN: not known.
double driver_calls_per_step(const RunSummary& run);
bool overhead_measured(const RunSummary& run);  // whether tracing was compared with stretches without it

// A measured value with the half width of its 95% interval; NaN: not measured.
struct Estimate {
  double value, half_width;
};
Estimate estimate(const std::vector<double>& samples);  // of the mean

// When a step's loss was seen, on a clock that stands still while the run is evaluated or rests.
struct Pace {
  double step = 0, wall_s = 0;
};
// Whether both were seen at once, in a run of that mean time per step, whatever time lay between them.
inline bool seen_together(Pace before, Pace after, double mean_s) {
  return after.wall_s - before.wall_s < mean_s * (after.step - before.step) / 2;
}
// The spread of a run's time per step, from when its losses were seen: what there is of a run without a trace. Losses
// come many at a time, so only the last of those that came together says how far the run was.
class PaceSpread {
 public:
  PaceSpread(Pace first, Pace last);
  void add(Pace seen);  // in order, from the first to the last
  // Half the width of the 95 % interval of the time per step, from stretches of the run; 0: there are too few.
  double half_width_us() const;

 private:
  static constexpr size_t kStretches = 40;
  Pace first_, before_;
  double mean_s_, steps_;
  std::vector<Pace> ends_;  // of stretches; 0 steps: nothing came in it
};
template <class Points, class ToPace>
double pace_half_width_us(const Points& points, ToPace to_pace) {
  if (points.empty()) return 0;
  PaceSpread spread(to_pace(points.front()), to_pace(points.back()));
  for (const auto& point : points) spread.add(to_pace(point));
  return spread.half_width_us();
}

struct MetricDelta {
  std::string name, unit;
  Estimate a, b;
  double delta = 0, noise = 0;  // the 95% interval of the difference is delta ± noise
  bool beyond_noise = false;
};
struct KernelDelta {
  std::string name;
  double a_count = 0, b_count = 0;  // per step
  double a_us = 0, b_us = 0;        // per step
  double delta_us() const { return b_us - a_us; }
};
struct Comparison {
  std::string a_name, b_name;
  struct Choice {
    std::string name, a, b;
  };
  std::vector<Choice> choices;        // that differ, where those of both are known
  std::vector<std::string> warnings;  // "A trace without step marks counts as one step."
  bool a_traced = false, b_traced = false;
  bool a_work = false, b_work = false;  // kernels, or ops on a CPU, were traced
  bool split = false;                   // both were traced alike; else there are no causes and no kernels
  Waterfall steps, by_op;
  std::vector<MetricDelta> metrics;
  std::vector<KernelDelta> kernels;  // largest difference first
};
Comparison compare(const RunData& a, const RunData& b);

std::vector<KernelDelta> kernel_deltas(const StepSample& a, const StepSample& b);  // largest difference first
std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace ws::prof
