// A run in memory, wherever it came from: a run file, or another tool's trace.
#pragma once
#include <string>
#include <vector>

#include "profiling/run_file/run_file.h"

namespace ws::prof {

struct RunData {
  RunSummary summary;  // origin says where it came from
  Trace trace;
  std::vector<Metric> metrics;
  std::vector<Evaluation> evaluations;
  std::vector<ChangeMark> marks;
  std::vector<StepWindow> step_windows;
  std::vector<StepAllocations> allocations;  // calls to the driver's allocator, by step and op
  std::vector<std::string> problems;         // what was left out, in sentences
};

}  // namespace ws::prof
