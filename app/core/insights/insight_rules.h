// Advice on what a run could do better. Rules on its step split find it. Each piece of advice has evidence, a
// prediction and a change to try. No Qt here.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/passes/compile.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/statistics.h"
#include "profiling/analysis/trace_queries.h"

namespace ws::app {

// The known facts of a run. A rule that lacks a fact gives no advice.
struct RunFacts {
  RunSpec spec;
  bool gpu = false;
  double step_us = 0;       // wall clock time
  double part_us[prof::kMeanings] = {};  // per step, indexed by prof::Meaning
  double rank_wait_us = 0;  // of the communication: a collective waits for the last rank
  double inner_wait_us = 0; // inside of kernels, multiprocessors wait for each other; no part of the sync
  double data_wait_us = 0;  // of the idle time: the program waits for its data
  double kernels_per_step = 0;
  double allocator_calls_per_step = 0;   // calls that reached the driver
  double first_loss = 0, last_loss = 0;  // NaN if unknown or not finite
  bool diverged = false;                 // a loss was not a number
  int64_t classes = 0;                   // 0 for regression
  Interval tracing_cost;                 // share of an untraced step; NaN if not measured
  int64_t peak_bytes = 0;                // most memory in use during a step
  bool whole_trace = false;              // the split covers a range of time, not one step
  prof::StepRange steps;                 // the measured ones; of a range without steps, count is 0
  int rank = -1;                         // whose steps these are; -1: the run has no ranks, or one
  const CompiledPlan* plan = nullptr;
  std::vector<prof::KernelRow> kernels;  // largest share first
  std::vector<prof::KernelRow> layers;   // the same by layer; the row of other work has an empty name or one in parentheses
  std::vector<double> occupancy;         // theoretical, by row of `kernels`; below 0: unknown

  double part(prof::Meaning m) const { return part_us[static_cast<size_t>(m)]; }
  double kernel_us() const;
};
RunFacts facts_of(const RunSpec& spec, const prof::Breakdown& parts, bool gpu);

struct Insight {
  std::string rule;      // "allocator stalls"
  std::string headline;  // "the GPU waits for allocator calls: 195.5 µs of the median step", with one figure; predict_savings() puts what to do and what a step saves here
  std::string why;       // one or two short sentences; predict_savings() puts what was found before them
  std::vector<std::pair<std::string, std::string>> change;  // field key and value; empty if there is nothing to apply
  double predicted_us = 0;                                  // step time after the change; 0 if there is no prediction
  prof::Meaning look_at = prof::Meaning::Other;             // the spans that show it
  std::optional<prof::FoundSpan> place = {};                // the exact span, if the rule knows it
  prof::TimeRange around = {};                              // time range to show with it
  double cost_ns = 0;                                       // for rules that judge a whole trace
  double part_us = 0, step_us = 0;                          // if the bar shows a part that the split has not: of ranks, or of several parts
  std::vector<prof::Meaning> several_parts = {};            // that part is a sum of shares of these, each as large
  int rank = -1;                                            // whose figures these are, as the headline says; -1: the run's
  bool spoils_training = false;                             // it comes before all savings
  double share = 0;                                         // for rules on a whole program: of its time, as the headline says
  bool of_median = false;                                   // a trace rule whose figures are of the median step, as the split
  prof::PartKind part = prof::PartKind::OfMeaning;          // what the bar shows of look_at: it has the name and colour of the split
  std::string action = {};                                  // what a person does, in a few words; empty if the edits or the change say it, or for a finding only
  std::string edits = {};                                   // of `whatif`, that do what the advice says; empty if none can
  Interval saves_us = {};                                   // what they save, by predict_savings(); NaN without a prediction
  Interval replayed_us = {};                                // the measured step of this prediction
  double at_most_us = 0;                                    // limit of what it saves a step, if no edit can say it
  bool changes_little = false;                              // less than how well the step time is known: it comes last
  std::string no_saving = {};                               // in a few words, why it has no saving: the headline has it instead
  bool shows_gap = false;                                   // the place ends the longest gap on the GPU
  std::vector<Insight> same_part = {};                      // findings about the same part of the split: one card has them all
  std::vector<Insight> includes = {};                       // small advice that this one does, too: it has no card of its own
  double host_waits_us = 0;                                 // what the host waits there in a median step, also while the GPU works
  std::vector<std::pair<std::string, double>> gpu_waits;    // parts of the split that the edits take away; µs of the median step
  double calls_us = 0, calls_work_us = 0;                   // what the calls take the host that the edits take away; work: without waits
  std::string how = {};                                     // what to change, beside `change`; code stands in backticks
  std::string more = {};                                    // further figures; predict_savings() adds findings about the same part and what is included
};
Insight without_saving(std::string why, Insight insight);  // sets Insight::no_saving
Insight with_how(const char* how, Insight insight);        // sets Insight::how
RunFacts facts_for(const Insight& insight, const RunFacts& run);  // what its bars show: the run, the mean step of all ranks, or its share

std::vector<Insight> insights(const RunFacts& facts);  // largest gain first

}  // namespace ws::app
