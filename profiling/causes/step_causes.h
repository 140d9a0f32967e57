// The graph of causes of a run's newest steps, and how long one of them takes.
#pragma once
#include <string>
#include <vector>

#include "profiling/causes/cause_graph.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

struct StepCauses {
  CauseGraph graph;
  std::vector<TimeNs> marks;  // where the host begins a step
  std::vector<TimeNs> cuts;   // where the GPU does, if the host ran ahead; otherwise the same
  double steps = 1;           // in the window of the graph
  Interval step_us;           // as every view shows it
  bool whole_trace = false;   // no steps were found: the trace counts as one
};
// Throws Failure if the trace has no span that could be replayed.
StepCauses step_causes(const RunData& run);

}  // namespace ws::prof
