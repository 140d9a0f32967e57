// The short account of a trace: how many of what, and how long each kernel took.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/collectors/trace_batch.h"
#include "profiling/trace.h"

namespace ws::prof {

struct TraceStats {
  uint64_t steps = 0, kernels = 0, copies = 0, copied_bytes = 0, memsets = 0, api_calls = 0, allocations = 0,
           allocated_bytes = 0;
  int64_t kernel_ns = 0;
  Losses losses;
  Activity activity;    // of the whole trace
  DurationStats delay;  // from a launching call to what it launched
  std::vector<KernelRow> by_name;
  std::vector<KernelRow> cpu_ops;  // where no kernel was recorded: what the CPU did instead
};
TraceStats trace_stats(const Trace& trace, GroupBy by = GroupBy::Name);  // by_name and cpu_ops: by that
std::string to_text(const TraceStats& stats);
// Calls to the driver's allocator by op, as they were counted: calls, frees and the host's time in them. Empty without.
std::string allocator_text(const Trace& trace, const std::vector<StepAllocations>& calls);
// "3 damaged, 12 not matched to an op": records that are not in the trace as they should be; empty without.
std::string losses_text(const Losses& losses);
std::string to_json(const TraceStats& stats);

}  // namespace ws::prof
