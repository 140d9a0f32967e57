// The graph of causes of a run's newest steps, and how long one of them takes.
#pragma once
#include <vector>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/causes/cause_graph.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

struct StepCauses {
  CauseGraph graph;
  std::vector<TimeNs> marks;  // where the host begins a step
  std::vector<TimeNs> cuts;   // where the GPU does, if the host ran ahead; otherwise the same
  double steps = 1;           // in the window of the graph
  StepRange which;            // their numbers
  Interval step_us;           // as every view shows it
  bool whole_trace = false;   // no steps were found: the trace counts as one
  int64_t graph_gap_ns = 700; // between two kernels of one graph
  int pinned_copy_calls = 0;  // that a copy from pinned memory needs more than one from pageable memory
};
// What is known of a run beside its trace.
struct StepCausesFacts {
  double steps_per_epoch = 0;
  int64_t since = 0;    // the first step with the current choices
  bool own_training = false;  // its kernels begin while the one before them in a graph ends
  bool fused = false;         // and so do all kernels of an own training that fuses ops
  Interval step_us{};   // unknown: the mean of the window
  size_t most_spans = 4'000'000;  // a window with more has fewer steps, or the newest part of a trace without steps
};
int64_t usual_gap_ns(const StepCausesFacts& facts);  // for cause_graph()
inline constexpr const char* kNothingToReplay = "The run has no calls, kernels or ops to replay. Record it with --trace kernels or full.";
// Throws Failure if the trace has no span that could be replayed.
StepCauses step_causes(const Trace& trace, const StepCausesFacts& facts);
StepCauses step_causes(const RunData& run);

}  // namespace ws::prof
