// The trace of a first call. It is made by a process of its own, which writes what it did into a file; the sweep's run
// file takes it in. No Qt in here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/trace/trace_batch.h"

namespace ws::app {

inline constexpr const char* kFirstCallRows = "first call: ";  // begins the group of each of its rows in the timeline

// What a program that offers the laboratory asks first; true: it was started to make one first call, and has made it.
bool run_first_call_if_asked();

// As text for that process: where to write, and the steady clock at trace time 0.
std::string first_call_order(const std::string& file, int64_t origin_ns);

// What such processes wrote there, oldest first; empty where they could not. Removes the file.
std::vector<prof::TraceBatch> take_first_calls(const std::string& file);

}  // namespace ws::app
