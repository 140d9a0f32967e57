// Compares two runs: which causes explain the difference of their step times.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// Times per step in ps, as integers, so that the causes sum exactly to the difference.
struct Cause {
  Meaning meaning;
  int64_t a_ps, b_ps;
  std::string op = {};  // in a waterfall by op: the op, a kernel without an op, or "5 other ops"
  PartKind kind = PartKind::OfMeaning;
  int64_t delta_ps() const { return b_ps - a_ps; }
};
struct Waterfall {
  int64_t a_ps = 0, b_ps = 0;  // wall time per step
  std::vector<Cause> causes;   // largest change first
};
Waterfall waterfall(const Breakdown& a, const Breakdown& b);
// The same of the median steps, with the kernel parts split by op. Everything else and all sums are identical to the ps.
Waterfall waterfall_by_op(const StepSample& a, const StepSample& b);
// Keeps one bar for each of the `most` ops with the largest change, and one bar after them for the remaining ops.
Waterfall folded(Waterfall by_op, size_t most);
// Each time in whole units, as tables print it: a change is then the difference of the printed times.
Waterfall rounded(Waterfall w, int64_t unit_ps);
std::string cause_name(const Cause& cause);  // the op, or the name of the part

// Calls of the driver's allocator per step: for a recorded program all calls, for our own run only those that its
// allocator could not serve. NaN: not known.
double driver_calls_per_step(const RunSummary& run);

struct KernelDelta {
  std::string name;
  double a_count = 0, b_count = 0;  // per step
  double a_us = 0, b_us = 0;        // per step
  double delta_us() const { return b_us - a_us; }
};
std::vector<KernelDelta> kernel_deltas(const StepSample& a, const StepSample& b);  // largest difference first
// The same by op, module or line. Empty if neither run names any.
std::vector<KernelDelta> grouped_deltas(const StepSample& a, const StepSample& b, GroupBy by);

}  // namespace ws::prof
