// A short summary of a trace: counts of everything, and how long each kernel took.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/allocator_history.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_account.h"
#include "profiling/analysis/memory_history.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/table.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

inline constexpr const char* kCaptureCountKey = "captures";  // of RunSummary::extra: how many capture ranges there were

struct TraceStats {
  uint64_t steps = 0, kernels = 0, graphs = 0, copies = 0, copied_bytes = 0, memsets = 0, api_calls = 0, peak_bytes = 0;
  AllocationCounts allocations;
  int64_t kernel_ns = 0, graph_ns = 0;
  Losses losses;
  Activity activity;               // for the whole trace
  GpuFigures gpu;                  // of the newest steps; of the whole trace if there are none
  std::vector<KernelRow> by_name;  // kernels, and graphs recorded as a whole
  std::vector<KernelRow> cpu_ops;  // only for a CPU-only trace
  // Only for a whole run:
  StepTime step_time;
  Interval tracing_cost;
  uint64_t captures = 0;   // capture ranges; outside of them, allocations are not counted either
  StepSample step;         // where the time of the newest steps went; its median is the step time
  AllocatorHistory calls;  // calls of the driver's allocator
  std::vector<MemoryAccount> memory;
  std::string memory_tables;  // the accounts as text, with the counters of the pools
  std::string call_tables;
  size_t ranks = 1;
  std::vector<std::string> problems;  // parts of the file that could not be read
};
TraceStats trace_stats(const Trace& trace, GroupBy by = GroupBy::Name);  // `by`: the grouping of by_name and cpu_ops
// Adds the values that need the rest of the run: steps, card, allocator calls.
TraceStats run_stats(const RunData& run, GroupBy by = GroupBy::Name);

// The most memory in use: as the run says, or from its allocations; 0: not known.
uint64_t peak_memory(const RunData& run);

// A row each for kernels, or for the ops of a CPU; `what` is the heading of their names.
Table kernel_rows(const std::vector<KernelRow>& rows, const std::string& what);
// Optional columns of the kernel table, beside share, total and count.
std::vector<std::string_view> row_columns();
inline const std::vector<std::string> kUsualColumns{"calls", "mean", "p50", "p99", "occupancy"};
std::string to_text(const TraceStats& stats, const std::vector<std::string>& columns = kUsualColumns);
// "3 damaged, 12 not matched to an op": records that are missing or incomplete in the trace. Empty if there are none.
std::string losses_text(const Losses& losses);
// "≥ 3.8 ± 0.4 %", "within noise, ± 13.0 %"; empty if not measured. A lower bound, because the profiler stays attached
// in the untraced stretches.
std::string tracing_cost_text(const Interval& share);
bool tracing_cost_seen(const Interval& share);  // true if it exceeds its noise
std::string to_json(const TraceStats& stats, const std::string& by = "name");  // the rows are in "by_name"

}  // namespace ws::prof
