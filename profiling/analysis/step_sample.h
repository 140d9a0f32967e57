// The part of a run that is used for comparison: its newest whole steps, without the pauses and evaluations between
// them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/trace/time_range.h"

namespace ws::prof {

struct StepWindowNs {
  TimeNs begin = 0, end = 0;
};

inline constexpr const char* kWholeGraphs = "whole graphs";  // all graphs that were recorded as a whole

struct WorkUse {
  double count = 0, us = 0;  // per step
};

struct StepSample {
  Breakdown parts;                      // all rows of steps; end - begin is the sum of their wall times
  // The parts of the median step: parts of the middle half of the steps by length, scaled so that they sum to the median.
  // Views that compare show these, so that bars, waterfalls, tables and the step time are one statistic.
  Breakdown median_parts;
  // Time from one step's start to the next, if they are consecutive. With a stride, each is the mean of so many steps.
  std::vector<double> step_us;
  std::map<std::string, WorkUse> work;  // kernels by name, and kWholeGraphs; on a CPU ops
  // Kernels by op, module (Layer) and line; without a GPU, ops or the program's ranges without inner ones. Only what is named.
  std::map<GroupBy, std::map<std::string, WorkUse>> grouped;
  // Share of each op, by its work_key, in the part of its meaning: ns, summed as in median_parts.
  std::map<std::pair<Meaning, std::string>, int64_t> op_parts;
  std::map<std::string, double> mean_us;  // mean time of one span by its work_key; colours of differences use it
  double kernels_per_step = 0, allocations_per_step = 0;
  int64_t stride = 1;        // steps per mark, such as the steps of a graph
  size_t pauses = 0;         // left out: gaps between steps, and steps that contain a pause
  // Launches of more steps than the usual ones count in step_us only. A kernel that runs many steps is inspected in a launch
  // of few steps, which take longer. Their median per step; 0: there were none.
  double longer_launch_us = 0;
  StepWindowNs median_step;  // the step with the median length; with a stride, that many steps
  bool marks_only = false;   // only host marks were traced; they say nothing if the host runs ahead
  StepWindowNs row;          // the newest long row of consecutive steps
  bool traced() const { return parts.steps > 0; }
  double median_step_us() const {  // what median_parts sum to
    return median_parts.steps > 0 ? static_cast<double>(median_parts.wall()) * 1e-3 / static_cast<double>(median_parts.steps) : 0;
  }
  double mean_step_us() const {
    return parts.steps > 0 ? static_cast<double>(parts.wall()) * 1e-3 / static_cast<double>(parts.steps) : 0;
  }
};

// Which steps are sampled: the newest `steps` that end by `until`, not before step `since`.
struct SampleRange {
  static constexpr size_t kOfAFinishedRun = 300'000, kOfALiveRun = 30'000;  // 0.1 µs each
  TimeNs until = kAlways;
  size_t steps = 2000;
  size_t most_spans = kOfAFinishedRun;  // older steps count in step_us only
  int64_t since = 0;
  bool lengths_only = false;  // fills step_us only
};

// How many of a run's first steps are warm-up: libraries load, kernels are chosen and compiled. No mean counts them.
size_t warm_up(const std::vector<int64_t>& lengths);

// `marks` holds the steps, `trace` the work done in them. Both are the same trace, or `marks` comes from GpuSteps if
// the host ran ahead. `steps_per_epoch` (0: unknown) shows where evaluations are. The sample excludes the warm-up and steps in untraced
// stretches. If some steps have kernel records, it also excludes steps whose graphs were recorded as a whole.
StepSample sample_steps(const Trace& marks, const Trace& trace, double steps_per_epoch, SampleRange range = {});
// For a program whose settings are not known: uses the marks, or the GPU's steps if the host ran ahead.
StepSample sample_steps(const Trace& trace, double steps_per_epoch, SampleRange range = {});

// "" or ", 3 pauses left out": behind the number of a mean. Of a sample, also what steps of longer launches take.
std::string left_out_text(size_t pauses);
std::string left_out_text(const StepSample& sample);

// The pauses between the steps that are in memory, and the steps that contain one.
std::vector<TimeRange> pauses_of(const Trace& trace);

// Time until which anything other than marks was recorded.
TimeNs recorded_until(const Trace& trace);

// Scales the parts of the median step, so that they sum to the step time that all views show. Does nothing if it is not known.
void scale_median(StepSample& sample, double step_us);

// Takes the parts of one stretch, also by op: it counts as `steps` steps, which have no spread.
void take_stretch(StepSample& sample, const Trace& trace, StepWindowNs stretch, int64_t steps);

// Key that makes spans of two runs comparable: the op of a kernel if it has one, otherwise its name.
std::string work_key(const Trace& trace, const Span& span);
inline constexpr std::string_view kOpKey = "op ";  // prefix of the work_key of a kernel with an op

// Time of a step, until the start of the next one unless a pause or an evaluation lies between. If this step was not
// traced, the nearest one; empty if no step was traced.
StepWindowNs step_window(const Trace& marks, int64_t step);
// The longest part of `within` without untraced stretches.
StepWindowNs longest_traced(const Trace& trace, StepWindowNs within);

}  // namespace ws::prof
