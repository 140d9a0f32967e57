// Where the time of a step goes; the parts sum to its wall time.
#pragma once
#include <QString>
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/trace/trace.h"

namespace ws::app {

struct SplitPart {
  prof::Meaning meaning;
  QString name;  // empty: the name of the meaning
  double us = 0;
  prof::PartKind kind = prof::PartKind::OfMeaning;
};
struct StepSplit {
  std::vector<SplitPart> parts;
  double wall_us = 0;  // the step time, which is a median; the parts sum to it
  int64_t steps = 0, marked = 0;  // measured ones, and all of the run
  std::string which;  // "steps 21–58": the measured ones
  prof::GpuFigures gpu;
  QString left_out;  // a sentence: which steps of the run do not count, and why; empty if all count
  bool short_launches = false;  // longer ones are among what is left out
  double kernels = 0, allocations = 0, busy = 0;  // per step; busy: share of time that the GPU had work
  double inner_wait_us() const;   // inside of kernels, multiprocessors wait for each other
  int rank = -1;  // whose GPU this is; -1: the run has no ranks, or one
};

// The split of the median step of a range, without evaluations. `step_us`: the run's step time; 0: not known, then the median
// of these steps.
StepSplit split_of(const prof::StepsOfRun& steps_of_run, const prof::SampleRange& range, double step_us);
StepSplit split_from(const prof::MeaningTimes& times, prof::TimeNs wall, int64_t steps);

}  // namespace ws::app
