// What the names of a recorded program tell of its time, each with the line: a step that waits for data, calls that wait for the
// GPU, a line of Python that takes long. No Qt in here.
#pragma once
#include "app/core/insights/trace_insights.h"

namespace ws::app {

std::vector<Insight> program_insights(const TraceLook& look);  // the most costly first

}  // namespace ws::app
