// All advice on a run. The window, the command line, the page to share and SQL make it here, so it is the same everywhere.
// No Qt here.
#pragma once
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/core/insights/insight_rules.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/occupancy.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/causes/step_causes.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// What the rules need of a run. A run file and a run of the window fill it.
struct JudgedRun {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const prof::Trace& trace;
  std::optional<RunSpec> choices = {};  // nullopt: another program, of which only the trace is judged
  bool imported = false;                // another program made the trace, also if it had our choices
  bool gpu = false;
  prof::StepSample sample = {};         // its newest whole steps
  const CompiledPlan* plan = nullptr;   // must live longer than the facts
  std::optional<prof::DeviceLimits> limits = {};
  bool has_losses = false;
  double first_loss = kUnknown, last_loss = kUnknown;  // last: mean_of_newest()
  double driver_calls = 0, peak_bytes = 0;  // 0 or NaN: unknown
  Interval tracing_cost = {};
};

RunFacts facts_of(const JudgedRun& run);  // step_us is 0 if nothing was traced

struct RunInsights {
  RunFacts facts;  // the bars of the insights show these
  std::vector<Insight> found;
};
// From its choices and steps, from its ranks, from the inside of its kernels. Without predictions by replay.
RunInsights insights_of(const JudgedRun& run, const prof::RankReport& ranks, const prof::MultiprocessorReport& inside);
RunInsights run_insights(const prof::RunData& run);  // with predictions; the facts have no plan
std::string line_of(const Insight& insight, const prof::Trace& trace);  // the source line of its place; empty: not known
std::string to_json(const std::vector<Insight>& insights, const prof::Trace& trace);  // as `stats --by cause --json` prints it

}  // namespace ws::app
