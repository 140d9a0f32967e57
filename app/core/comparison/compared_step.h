// What runs are compared by, for the window, reports and the command line alike. No Qt.
#pragma once
#include <algorithm>

#include "profiling/analysis/step_sample.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

// The time of a step: the mean of the newest steps that were sampled, which the parts of the split sum to. Of a run
// without them the mean of the whole run, which counts its first steps and those that were not traced too.
inline double compared_step_us(const prof::StepSample& sample, double whole_run_us) {
  return sample.traced() ? sample.mean_step_us() : whole_run_us;
}

// The trace of a file with the newest of its spans in memory, about a million; the rest is read when it is looked at.
inline prof::Trace newest_trace(prof::RunFileReader& reader) {
  constexpr size_t kMostBlocks = 1000;
  constexpr prof::TimeNs kFirstPiece = 250'000'000;
  prof::Trace trace = reader.trace();
  const prof::TimeNs first = trace.first_time(), last = trace.last_time();
  size_t room = kMostBlocks;
  for (prof::TimeNs begin = last, reach = kFirstPiece; begin > first && room > 0; reach *= 2) {
    begin = std::max(first, last - reach);
    room -= reader.fill(trace, begin, last, room);
  }
  return trace;
}

}  // namespace ws::app
