// The short account of a trace: how many of what, and how long each kernel took.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/allocator_history.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_account.h"
#include "profiling/analysis/step_time.h"
#include "profiling/trace/run_data.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct TraceStats {
  uint64_t steps = 0, kernels = 0, graphs = 0, copies = 0, copied_bytes = 0, memsets = 0, api_calls = 0,
           allocations = 0, allocated_bytes = 0;
  int64_t kernel_ns = 0, graph_ns = 0;
  Losses losses;
  Activity activity;               // of the whole trace
  DurationStats delay;             // from a launching call to what it launched
  std::vector<KernelRow> by_name;  // kernels, and graphs that were recorded as a whole
  std::vector<KernelRow> cpu_ops;  // of a trace of the CPU alone: what it did instead
  // Of a whole run only:
  StepTime step_time;
  Interval tracing_cost;
  StepSample step;         // where the time of its newest steps went
  AllocatorHistory calls;  // to the driver's allocator
  std::vector<MemoryAccount> memory;
  std::string memory_tables;  // the same in words, with the counters of the pools
  std::string call_tables;
  std::vector<std::string> problems;  // what of the file could not be read
};
TraceStats trace_stats(const Trace& trace, GroupBy by = GroupBy::Name);  // by_name and cpu_ops: by that
// With all that takes the rest of the run: its steps, the card it ran on, its allocator's calls.
TraceStats run_stats(const RunData& run, GroupBy by = GroupBy::Name);

// What a row of kernels can say beside its share, its total and its count.
std::vector<std::string_view> row_columns();
inline const std::vector<std::string> kUsualColumns{"mean", "p50", "p99", "occupancy"};
std::string to_text(const TraceStats& stats, const std::vector<std::string>& columns = kUsualColumns);
// "3 damaged, 12 not matched to an op": records that are not in the trace as they should be; empty without.
std::string losses_text(const Losses& losses);
// "≥ 3.8 ± 0.4 %", "within noise, ± 13.0 %"; empty: not measured. It is a lower bound: the profiler stays attached in the
// untraced stretches.
std::string tracing_cost_text(const Interval& share);
bool tracing_cost_seen(const Interval& share);  // beyond its noise
std::string to_json(const TraceStats& stats, const std::string& by = "name");  // rows are in "by_name"

}  // namespace ws::prof
