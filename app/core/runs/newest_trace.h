// Reads the newest part of a trace into memory for display. The rest stays in the file.
#pragma once
#include <string>

#include "profiling/analysis/ranks.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// Returns summary, losses and newest trace of a run file, or all of another program's trace. Throws Failure.
prof::RunData newest_data(const std::string& path);
// The comparison of the ranks of that file, of all its spans. Empty for a run of one rank.
prof::RankReport all_ranks(const std::string& path, const prof::RunData& newest);

}  // namespace ws::app
