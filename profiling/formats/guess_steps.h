// The steps of an imported trace that names none.
#pragma once
#include <map>
#include <vector>

#include "profiling/formats/trace_builder.h"

namespace ws::prof {

struct GuessedSteps {
  std::vector<Span> steps;  // in order of time, numbered from 1
  bool on_gpu = false;      // their times are those of the kernels, not of the calls
};
// By ranges that are called steps, else by the ends of the optimizer's ranges, else by the kernels' repeating pattern.
GuessedSteps guess_steps(Trace& trace, const std::map<TraceBuilder::Row, std::vector<Span>>& rows);

}  // namespace ws::prof
