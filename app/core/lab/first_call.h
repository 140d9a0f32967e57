// The trace of a first call. A separate process makes the call and writes its trace to a file. The sweep then adds
// it to its run file. No Qt here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/trace/trace_batch.h"

namespace ws::app {

inline constexpr const char* kFirstCallRows = "first call: ";  // prefix of the group name of its rows in the timeline

// Call this first in a program that offers the laboratory. Returns true if the process was started to make
// one first call and has made it.
bool run_first_call_if_asked();

// The order for that process as text: the file to write, and the steady clock at trace time 0.
std::string first_call_order(const std::string& file, int64_t origin_ns);

// Returns what these processes wrote, oldest first; empty if they could not write. Removes the file.
std::vector<prof::TraceBatch> take_first_calls(const std::string& file);

}  // namespace ws::app
