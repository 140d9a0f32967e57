// Advice from the names in the trace of a recorded program, each with the source line. Examples: a step that waits
// for data, calls that wait for the GPU, a slow line of Python. No Qt here.
#pragma once
#include "app/core/insights/trace_insights.h"

namespace ws::app {

std::vector<Insight> program_insights(const TraceLook& look);  // most expensive first

}  // namespace ws::app
