// What a run is compared by: its newest whole steps, without the pauses and evaluations between them.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/step_breakdown.h"

namespace ws::prof {

struct StepWindowNs {
  TimeNs begin = 0, end = 0;
};

inline constexpr const char* kWholeGraphs = "whole graphs";  // those that were recorded as a whole, together

struct WorkUse {
  double count = 0, us = 0;  // per step
};

struct StepSample {
  Breakdown parts;                      // of all rows of steps; end - begin is their wall time together
  std::vector<double> step_us;          // from one step's start to the next, where nothing lies between
  std::map<std::string, WorkUse> work;  // kernels by name and kWholeGraphs, or on a CPU ops
  // What each op, by its work_key, has of its meaning's part: ns of all rows together.
  std::map<std::pair<Meaning, std::string>, int64_t> op_parts;
  std::map<std::string, double> mean_us;  // of one span by its work_key: what differences are tinted by
  double kernels_per_step = 0, allocations_per_step = 0;
  int64_t stride = 1;        // steps that one span stands for: those of a graph of several steps
  StepWindowNs median_step;  // the step whose length is the median; with a stride, so many of them
  bool marks_only = false;   // nothing but marks was traced, which say nothing where the host runs ahead
  StepWindowNs row;          // the newest long row of steps without a break between them
  bool traced() const { return parts.steps > 0; }
  double mean_step_us() const {
    return parts.steps > 0 ? static_cast<double>(parts.wall()) * 1e-3 / static_cast<double>(parts.steps) : 0;
  }
};

// Which steps are sampled: so many of the newest that end by `until`, from step `since` on.
struct SampleRange {
  TimeNs until = kAlways;
  size_t steps = 2000;
  int64_t since = 0;
  bool lengths_only = false;  // step_us alone: nothing of what was done in the steps
};

// `marks` hold the steps, `trace` what was done in them: the same trace, or GpuSteps' where the host ran ahead. With
// the steps of an epoch (0: unknown) evaluations are known by where they stand. Steps of which nothing was traced on
// purpose are none of the sample; nor are those whose graphs were recorded as a whole, where others have kernels.
StepSample sample_steps(const Trace& marks, const Trace& trace, double steps_per_epoch, SampleRange range = {});
// For a trace whose program's choices are not known: its marks, or the GPU's steps when the host ran ahead.
StepSample sample_steps(const Trace& trace, double steps_per_epoch, SampleRange range = {});

// Until when anything was recorded but marks.
TimeNs recorded_until(const Trace& trace);

// Adds to the sample's parts those of a stretch, also by op.
void add_parts(StepSample& sample, const Trace& trace, const InnerParts& inner, TimeNs begin, TimeNs end);

// What makes a span of one run the same as a span of another: the op where a kernel has one, else its name.
std::string work_key(const Trace& trace, const Span& span);
inline constexpr std::string_view kOpKey = "op ";  // how the work_key of a kernel begins that has an op

// Where a step begins and ends: the next one's start, unless a pause or an evaluation lies between. The nearest step
// when this one was not traced; an empty window when none was.
StepWindowNs step_window(const Trace& marks, int64_t step);
// The longest stretch of a time in which nothing was left untraced on purpose.
StepWindowNs longest_traced(const Trace& trace, StepWindowNs within);

}  // namespace ws::prof
