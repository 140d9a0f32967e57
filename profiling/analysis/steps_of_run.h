// The steps of a run: where they are, what each took, and which are left out of its figures and why. The newest whole steps,
// without the pauses and evaluations between them, stand for the run wherever runs are compared.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/pace.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/analysis/step_finder.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct StepWindowNs {
  TimeNs begin = 0, end = 0;
};

inline constexpr const char* kWholeGraphs = "whole graphs";  // all graphs that were recorded as a whole

struct WorkUse {
  double count = 0, us = 0;  // per step
};

// The numbers of measured steps, as programs and views count them. -1: the marks have no numbers.
struct StepRange {
  int64_t first = -1, last = -1, count = 0;  // fewer than last - first + 1 if some are left out
};
// "steps 21–58", "step 21", "36 of steps 21–58", or "38 steps" without numbers; empty if there are none.
std::string which_steps(const StepRange& range);

struct StepSample {
  Breakdown parts;                      // all rows of steps; end - begin is the sum of their wall times
  // The parts of the median step: parts of the middle half of the steps by length, scaled so that they sum to the median.
  // Views that compare show these, so that bars, waterfalls, tables and the step time are one statistic.
  Breakdown median_parts;
  std::map<int, Breakdown> rank_parts;  // the same step on the GPU of each rank, by SampleRange::of_ranks; each sums to the median
  // Time from one step's start to the next, if they are consecutive. With a stride, each is the mean of so many steps.
  std::vector<double> step_us;
  std::map<std::string, WorkUse> work;  // kernels by name, and kWholeGraphs; on a CPU ops
  // Kernels by op, module (Layer) and line; without a GPU, ops or the program's ranges without inner ones. Only what is named.
  std::map<GroupBy, std::map<std::string, WorkUse>> grouped;
  // Share of each op, by its work_key, in the part of its meaning: ns, summed as in median_parts.
  std::map<std::pair<Meaning, std::string>, int64_t> op_parts;
  std::map<std::string, double> mean_us;  // mean time of one span by its work_key; colours of differences use it
  // Allocations: blocks that the program's allocator gave out, or the driver if it has no allocator. Driver: calls that allocate.
  double kernels_per_step = 0, allocations_per_step = 0, driver_allocations_per_step = 0;
  int64_t stride = 1;        // steps per mark, such as the steps of a graph
  size_t pauses = 0;         // left out: gaps between steps, and steps that contain a pause
  // Launches of more steps than the usual ones count in step_us only. A kernel that runs many steps is inspected in a launch
  // of few steps, which take longer. Their median per step; 0: there were none.
  double longer_launch_us = 0;
  int64_t longer_launch_steps = 0;  // so many steps ran in them
  StepWindowNs median_step;  // the step with the median length; with a stride, that many steps
  bool gpu = false;          // the work is kernels of a GPU; false: ops or ranges of a CPU
  bool marks_only = false;   // only host marks were traced; they say nothing if the host runs ahead
  StepWindowNs row;          // the newest long row of consecutive steps
  StepRange row_steps;       // its steps
  StepRange which;           // the steps of `parts`: whole ones, without the first steps and the last one, which is open
  int64_t marked = 0;        // steps of the run, as far as they are marked
  int64_t warm_up = 0;       // left out at the begin
  int64_t last = 1;          // of the last mark, which is open
  int rank = -1;             // whose steps these are; -1: the run has no ranks, or one
  StepWindowNs all;          // from the first of them to the end of the last
  std::vector<TimeRange> typical;   // of `all`: the steps that median_parts come from
  std::vector<TimeRange> left_out;  // of `all`: pauses, evaluations, untraced stretches, longer launches
  bool traced() const { return parts.steps > 0; }
  double busy_share() const { return median_parts.busy_share(); }  // of the median step, in which a kernel or a copy runs and does not wait for a rank
  double median_step_us() const {  // what median_parts sum to
    return median_parts.steps > 0 ? static_cast<double>(median_parts.wall()) * 1e-3 / static_cast<double>(median_parts.steps) : 0;
  }
  double mean_step_us() const {
    return parts.steps > 0 ? static_cast<double>(parts.wall()) * 1e-3 / static_cast<double>(parts.steps) : 0;
  }
};

// "steps 10–24 of rank 0": which_steps(), and whose steps they are if there are several ranks.
std::string of_steps(const StepSample& sample);

// Which steps are sampled: the newest `steps` that end by `until`.
struct SampleRange {
  static constexpr size_t kOfAFinishedRun = 300'000, kOfALiveRun = 30'000;  // 0.1 µs each
  TimeNs until = kAlways;
  size_t steps = 2000;
  size_t most_spans = kOfAFinishedRun;  // older steps count in step_us only
  bool lengths_only = false;            // fills step_us only
  bool of_ranks = false;                // fills rank_parts if there are several ranks
};

// What is known of the steps beside the trace.
struct StepFacts {
  double per_epoch = 0;            // shows where evaluations are; 0: unknown
  int64_t since = 0;               // the first step with the final execution settings
  TimeNs clock_error = 0;          // of the clocks of several ranks
  std::optional<bool> host_ahead;  // the host launches steps before the GPU finished the previous ones; nullopt: the trace shows it
  int64_t run_steps = 0;           // of the whole run: shows how many the last launch has; 0: unknown
};

// A step of a rank, as the program marked it, or as the GPU ran it where the host runs ahead.
struct ListedStep {
  int64_t number = 0;
  int rank = -1;
  TimeNs start = 0;
  int64_t duration = 0;
  bool counted = false;  // measured: all figures of a step are of these
  double us = std::numeric_limits<double>::quiet_NaN();  // until the next step begins, of counted steps
  int64_t together = 1;  // steps that one launch runs: its time in equal parts
};

class StepsOfRun {
 public:
  // Takes the marks of the trace, or the steps as the GPU ran them if the host ran ahead. `trace` must live longer.
  static StepsOfRun of(const Trace& trace, const StepFacts& facts = {});
  static StepsOfRun of(const RunData& run);
  // Steps that the caller found: `marks` is the trace, or the trace of GpuSteps. Both must live longer.
  StepsOfRun(const Trace& marks, const Trace& trace, const StepFacts& facts = {}) : marks_(&marks), trace_(&trace), facts_(facts) {}

  bool on_gpu() const { return &marks() != trace_; }
  const Trace& marks() const { return on_gpu_.empty() ? *marks_ : on_gpu_.trace(); }
  const Trace& trace() const { return *trace_; }
  // Leaves out the warm-up and steps in untraced stretches. If some steps have kernel records, also steps whose graphs were
  // recorded as a whole.
  StepSample sample(const SampleRange& range = {}) const;
  // All steps of all ranks. `sample`: of this run; `steps`: how many it has, because the last launch does not say how many it runs.
  std::vector<ListedStep> list(const StepSample& sample, int64_t steps) const;

 private:
  const Trace *marks_, *trace_;
  StepFacts facts_;
  GpuSteps on_gpu_;
};

// The steps that all tables of a run count: without the warm-up, the last step, pauses and untraced stretches.
struct CountedSteps {
  std::vector<TimeRange> stretches{{-kAlways, kAlways}};  // a run without steps: one, of all time
  int64_t steps = 0;                 // 0: the run has no steps
  int rank = -1;
  std::string text = "the whole trace";  // "38 of 40 steps; the first and the last are left out", "the whole trace"
  TimeRange all() const { return {stretches.front().begin, stretches.back().end}; }
};
CountedSteps counted_steps(const StepSample& sample);

// How many of a run's first steps are warm-up: libraries load, kernels are chosen and compiled. No mean counts them.
size_t warm_up(const std::vector<int64_t>& lengths);

// "" or ", 3 pauses left out": behind the number of a mean. Of a sample ", 5 left out at pauses" if its steps have gaps, and what
// steps of longer launches take.
std::string left_out_text(size_t pauses);
std::string left_out_text(const StepSample& sample);

// Time until which anything other than marks was recorded.
TimeNs recorded_until(const Trace& trace);

// Scales the parts of the median step, so that they sum to the step time that all views show. Does nothing if it is not known.
void scale_median(StepSample& sample, double step_us);

// Takes the parts of one stretch, also by op: it counts as `steps` steps, which have no spread.
void take_stretch(StepSample& sample, const Trace& trace, StepWindowNs stretch, int64_t steps);

// How late work began, and how much copying ran beside kernels. Every view takes them from the newest long row of steps, or from
// the whole trace if no steps were found.
struct GpuFigures {
  DurationStats delay;  // from a launching call to the first work that it launched
  Activity activity;
  std::string of;       // "steps 21–58", "the whole trace"
};
GpuFigures gpu_figures(const Trace& trace, StepWindowNs row, const StepRange& row_steps);

// Key that makes spans of two runs comparable: the op of a kernel if it has one, otherwise its name.
std::string work_key(const Trace& trace, const Span& span);
inline constexpr std::string_view kOpKey = "op ";  // prefix of the work_key of a kernel with an op

// Time of a step, until the start of the next one unless a pause or an evaluation lies between. If this step was not
// traced, the nearest one; empty if no step was traced.
StepWindowNs step_window(const Trace& marks, int64_t step);
// The longest part of `within` without untraced stretches.
StepWindowNs longest_traced(const Trace& trace, StepWindowNs within);

// A training of ours takes equally long steps, unless something else uses the machine. Steps of other programs vary by
// themselves: they wait for data, collect garbage, save what they have.
enum class StepsOf { Training, Program };

// Uses the sampled steps. Without samples, or if only host marks were traced, it uses stretches between losses. With
// too few of these, it uses the mean of the whole run, which has no spread; 0: not known.
StepTime step_time(const StepSample& sample, const std::vector<Pace>& losses, double whole_run_us,
                   StepsOf whose = StepsOf::Training);
// Returns the step time stored with the run, or computes it.
StepTime step_time(const RunData& run, const StepSample& sample);

// Step time of a recorded program, as opening its file computes it. Where a GPU worked, it is not known if only the host's
// marks were recorded.
StepTime step_time(const FoundSteps& found, bool gpu = true);

// The first step with the final execution settings. Steps before it say nothing about the current speed.
int64_t steady_since(const std::vector<ChangeMark>& marks);

// True if step times vary so much that, in a training, something else used the machine: its interval is then the whole
// spread.
bool varies_widely(const StepTime& time);

}  // namespace ws::prof
