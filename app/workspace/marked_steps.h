// Where the marked steps of a trace are. A run's start, with the kernels that it tries, often takes longer than its steps.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::app {

prof::TimeRange marked_steps(const prof::Trace& trace);  // from the first to the last; empty if there are none

}  // namespace ws::app
