// All advice on a recorded run, as the command line, the page to share and SQL give it. No Qt here.
#pragma once
#include <string>
#include <vector>

#include "app/core/insights/insight_rules.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

std::vector<Insight> run_insights(const prof::RunData& run);  // of its ranks, of its trace, of the inside of its kernels
std::string to_json(const std::vector<Insight>& insights, const prof::Trace& trace);  // as `stats --by cause --json` prints it

}  // namespace ws::app
