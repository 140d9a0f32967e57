// The short account of a trace: how many of what, and how long each kernel took.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/kernel_table.h"
#include "profiling/trace.h"

namespace ws::prof {

struct TraceStats {
  uint64_t steps = 0, kernels = 0, copies = 0, copied_bytes = 0, memsets = 0, api_calls = 0, allocations = 0,
           allocated_bytes = 0;
  int64_t kernel_ns = 0;
  std::vector<KernelRow> by_name;
};
TraceStats trace_stats(const Trace& trace);
std::string to_text(const TraceStats& stats);
std::string to_json(const TraceStats& stats);

}  // namespace ws::prof
