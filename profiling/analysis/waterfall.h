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

// Calls to the driver's allocator: all that were made in a recorded program, in a run of ours those that its own
// allocator could not answer. NaN: not known.
double driver_calls_per_step(const RunSummary& run);

struct KernelDelta {
  std::string name;
  double a_count = 0, b_count = 0;  // per step
  double a_us = 0, b_us = 0;        // per step
  double delta_us() const { return b_us - a_us; }
};
std::vector<KernelDelta> kernel_deltas(const StepSample& a, const StepSample& b);  // largest difference first

}  // namespace ws::prof
