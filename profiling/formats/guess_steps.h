// Guesses the steps of an imported trace that has no step marks.
#pragma once
#include <map>
#include <vector>

#include "profiling/formats/trace_builder.h"

namespace ws::prof {

struct GuessedSteps {
  std::vector<Span> steps;  // in order of time, numbered from 1
  bool on_gpu = false;      // true: times are the kernels' times, not of the calls
};
// Uses ranges with step names, else the ends of the optimizer's ranges, else the repeating pattern of kernels.
GuessedSteps guess_steps(Trace& trace, const std::map<TraceBuilder::Row, std::vector<Span>>& rows);

}  // namespace ws::prof
