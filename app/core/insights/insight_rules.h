// What a run could do better, found by rules over its step split: each with its evidence, a prediction and a change to
// try. Silent when there is nothing to say. No Qt in here.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/passes/compile.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/statistics.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

// What is known of a run; a rule that misses what it needs stays silent.
struct RunFacts {
  RunSpec spec;
  bool gpu = false;
  double step_us = 0;       // of the wall clock
  double part_us[prof::kMeanings] = {};  // of a step, by prof::Meaning
  double kernels_per_step = 0;
  double allocator_calls_per_step = 0;   // that reached the driver
  double first_loss = 0, last_loss = 0;  // NaN: unknown or not finite
  bool diverged = false;                 // a loss that is no number was seen
  int64_t classes = 0;                   // 0: regression
  Interval tracing_cost;                 // a share of an untraced step; NaN: not measured
  int64_t peak_bytes = 0;                // most handed out in a step
  bool whole_trace = false;              // the split is that of a stretch of time, not of a step
  const CompiledPlan* plan = nullptr;
  std::vector<prof::KernelRow> kernels;  // largest share first
  std::vector<double> occupancy;         // theoretical, by row of `kernels`; below 0: unknown

  double part(prof::Meaning m) const { return part_us[static_cast<size_t>(m)]; }
  double kernel_us() const;
};
RunFacts facts_of(const RunSpec& spec, const prof::Breakdown& parts, bool gpu);

struct Insight {
  std::string rule;      // "allocator stalls"
  std::string headline;  // "195.5 of 369.2 µs a step go into cudaMalloc and cudaFree"
  std::string why;       // one or two sentences
  std::vector<std::pair<std::string, std::string>> change;  // field key, value; empty: nothing to press
  double predicted_us = 0;                                  // step time after the change; 0: no prediction of time
  prof::Meaning look_at = prof::Meaning::Other;             // the spans that show it
  std::optional<prof::FoundSpan> place = {};                // the very span, where the rule knows it
  prof::TimeRange around = {};                              // what to show with it
  double cost_ns = 0;                                       // of a rule that judges a whole trace
};

std::vector<Insight> insights(const RunFacts& facts);  // largest gain first

}  // namespace ws::app
