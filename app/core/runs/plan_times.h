// Joins the ops of a plan with the op tags of a trace, and the time that each took.
#pragma once
#include <map>
#include <vector>

#include "engine/plan/plan.h"
#include "profiling/trace/trace.h"

namespace ws::app {

// The tag of each op of the plan; 0 where the trace does not know it.
std::vector<prof::OpTag> op_tags(const Plan& plan, const prof::Trace& trace);

struct OpTime {
  uint64_t count = 0;
  int64_t total_ns = 0;
  double us() const { return count ? static_cast<double>(total_ns) / 1000 / static_cast<double>(count) : 0; }
};
// By tag, over the newest spans where the work was done: streams, the inside of a resident kernel, or threads of the
// CPU.
std::map<prof::OpTag, OpTime> op_times(const prof::Trace& trace, size_t newest_spans = 40'000);

// The mean time in µs of each op of the plan, 0 where unknown. Inside a resident kernel each part counts for the op
// of its phase and layer.
struct PlanTimes {
  std::vector<double> us;
  double waits_us = 0;  // a step, of a resident kernel's blocks for each other
};
PlanTimes plan_times(const Plan& plan, const prof::Trace& trace);

}  // namespace ws::app
