// Where the time of a step goes; the parts sum to its wall time.
#pragma once
#include <QString>
#include <cstdint>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::app {

struct SplitPart {
  prof::Meaning meaning;
  QString name;  // empty: that of the meaning
  double us = 0;
};
struct StepSplit {
  std::vector<SplitPart> parts;
  double wall_us = 0;  // the mean of so many steps, so that the parts sum to it
  int64_t steps = 0;
  double kernels = 0, allocations = 0, busy = 0;  // per step; the share of time that the GPU had work
};

// Of the newest steps before `until`, from step `since` on; evaluations are left out. `marks` has the steps: the trace
// itself, or those of the GPU.
StepSplit split_of(const prof::Trace& marks, const prof::Trace& trace, prof::TimeNs until, double steps_per_epoch,
                   int64_t since = 0);
StepSplit split_from(const prof::MeaningTimes& times, prof::TimeNs wall, int64_t steps);

}  // namespace ws::app
