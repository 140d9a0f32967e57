// Advice from the trace of any program: an idle GPU and why, tiny kernels, waits, the longest gap, copies that do not
// overlap with kernels, allocator calls. Each names the span that shows it. No Qt here.
#pragma once
#include "app/core/insights/insight_rules.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

// The part of a trace that is judged. Usually this is all of it. A long or partly loaded trace gives its newest part.
struct TraceLook {
  const prof::Trace* trace;
  prof::TimeNs begin = 0, end = 0;
  prof::StepRange steps = {};  // the range has these steps only, without what is before and after; count 0: it is not cut to steps
  bool own_training = false;  // of this program: no advice about PyTorch
  std::vector<prof::TimeRange> pauses = {};  // left out between the steps: no mean step counts them, and no share of an insight
  std::vector<prof::TimeRange> typical = {};  // the steps that stand for the median one
  double step_us = 0, median_step_us = 0;     // a judged step, the mean one; the median one
  bool of_median = false;
};
TraceLook look_of(const prof::Trace& trace);
TraceLook look_of(const prof::Trace& trace, const prof::StepSample& sample);  // at the steps of a sample
// The steps that all views measure, by prof::StepsOfRun, or all if there are none: the start of a program, its warm-up and the
// open last step are not judged.
TraceLook judged_part(const TraceLook& look);
TraceLook median_part(const TraceLook& look);  // of the judged part, only the steps that stand for the median one
prof::Activity activity_between_pauses(const TraceLook& look, std::optional<int> rank = {});

// The split of that time, as if it were one long step.
RunFacts facts_of(const TraceLook& look);
std::vector<Insight> trace_insights(const TraceLook& look);  // with source line first, then most expensive
// From the names in the trace of a recorded program, each with the source line. Examples: a step that waits for data, calls
// that wait for the GPU, a slow line of Python. Most expensive first. Shares are of the median step of one rank; what only a few
// steps do has a share of the mean step. Another rank than the one whose steps stand for the run adds what only it does.
std::vector<Insight> program_insights(const TraceLook& look);

void name_rank(Insight& insight, int rank);  // for a run of several ranks: whose figures these are; -1: not known

// From the comparison of ranks: a rank that comes late, ranks that are late in turn, transfers that no computation hides. The
// greatest cost first. The place of an insight is not set: it is in the step below.
std::vector<Insight> rank_insights(const prof::RankReport& report);
// The step that shows the late rank best: the one where it is latest. An index into report.steps; nullopt without a late rank.
std::optional<size_t> latest_step(const prof::RankReport& report);

// From the inside of kernels: the multiprocessor that ends a part late in most steps and costs most. Its place is not set: see
// bar_of().
std::optional<Insight> late_multiprocessor(const prof::MultiprocessorReport& report);

// From samples of instructions: at which line most samples of a kernel wait for one thing, and what helps. Most samples first;
// nothing without samples. `training`: one of this program, whose kernels without source lines are built in.
std::vector<Insight> stall_insights(const prof::Trace& trace, bool training);

}  // namespace ws::app
