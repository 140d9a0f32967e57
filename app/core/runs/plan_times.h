// Joins the ops of a plan with the op tags of a trace and the time that each op took.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/plan/plan.h"
#include "profiling/base/table.h"
#include "profiling/trace/trace.h"

namespace ws::app {

// Returns the tag of each op of the plan; 0 if the trace does not have it.
std::vector<prof::OpTag> op_tags(const Plan& plan, const prof::Trace& trace);

struct OpTime {
  size_t count = 0;  // of steps; of executions where steps have no numbers
  double us = 0;  // median, as the step time is: on a busy machine a few executions take far longer
};
// Times of a step by tag, from the newest spans where the work was recorded: streams, the inside of a
// resident kernel, or CPU threads.
std::map<prof::OpTag, OpTime> op_times(const prof::Trace& trace, size_t newest_spans = 40'000);

// The median time in µs of each op of the plan, 0 if unknown. Inside a resident kernel, each part counts for
// the op of its phase and layer, with its mean.
struct PlanTimes {
  std::vector<double> us;
  bool means = false;
  double waits_us = 0;  // per step: blocks of a resident kernel wait for each other
};
PlanTimes plan_times(const Plan& plan, const prof::Trace& trace);

// The block of layers that holds a layer: "block 2" of "attn7". Layers outside of blocks and residuals are not in it.
std::map<std::string, std::string> blocks_of(const Plan& plan);

// The ops in the order they run, with a heading for each phase and layer. A block of layers has a heading of its own, whose
// cell's value is the name of the block, "block 2"; the rows of a folded block are left out.
Table plan_rows(const Plan& plan, const PlanTimes& times, const std::function<bool(const std::string& block)>& folded);

}  // namespace ws::app
