// What is kept in memory of a run that is looked at: the newest part of its trace. The rest stays in the file.
#pragma once
#include <string>

#include "profiling/run_file/run_file.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// The trace of a run file with the newest of its spans in memory, about a million.
prof::Trace newest_trace(prof::RunFileReader& reader);
// Summary, losses and newest trace of a run file, or all that another program's trace has. Throws Failure.
prof::RunData newest_data(const std::string& path);

}  // namespace ws::app
