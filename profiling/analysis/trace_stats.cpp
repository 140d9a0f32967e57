#include "profiling/analysis/trace_stats.h"

#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "profiling/analysis/span_walk.h"

namespace ws::prof {

namespace {

void count(TraceStats& stats, const Trace& trace, const Span& span) {
  switch (span.span_kind()) {
    case SpanKind::Kernel:
      ++stats.kernels, stats.kernel_ns += static_cast<int64_t>(span.duration);
      break;
    case SpanKind::Copy:
      ++stats.copies, stats.copied_bytes += trace.detail(span.detail).bytes;
      break;
    case SpanKind::Memset:
      ++stats.memsets;
      break;
    case SpanKind::Api:
    case SpanKind::Alloc:
    case SpanKind::Free:
    case SpanKind::Sync:
    case SpanKind::GraphLaunch:
      ++stats.api_calls;
      break;
    case SpanKind::Step:
      ++stats.steps;
      break;
    default:
      break;
  }
}

double us_of_ns(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

}  // namespace

TraceStats trace_stats(const Trace& trace, GroupBy by) {
  TraceStats stats;
  std::unordered_set<uint32_t> steps;
  for (const Track& track : trace.tracks()) {
    if (track.kind == TrackKind::Inner) continue;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (!is_stream_wait(track, span)) count(stats, trace, span);
      if (span.step != 0) steps.insert(span.step);
    });
  }
  if (stats.steps == 0) stats.steps = steps.size();
  // Where the driver's calls were recorded, what a pool hands out of its own memory is no allocation.
  const auto of_driver = [](const std::string& source) { return source.starts_with("cu"); };
  const bool driver = std::ranges::any_of(trace.memory_sources, of_driver);
  for (const MemoryEvent& event : trace.memory()) {
    if (event.kind != MemoryEventKind::Allocate) continue;
    if (driver && !(event.source < trace.memory_sources.size() && of_driver(trace.memory_sources[event.source])))
      continue;
    ++stats.allocations;
    stats.allocated_bytes += event.bytes;
  }
  stats.by_name = kernel_table(trace, -kAlways, kAlways, by);
  if (stats.by_name.empty()) stats.cpu_ops = kernel_table(trace, -kAlways, kAlways, by, SpanKind::Op);
  stats.losses = trace.losses;
  stats.activity = activity(trace, trace.first_time(), trace.last_time());
  stats.delay = launch_delay(trace, -kAlways, kAlways);
  return stats;
}

std::string losses_text(const Losses& losses) {
  std::string text;
  const auto add = [&text](uint64_t count, const char* what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(losses.invalid_records, "damaged");
  add(losses.unjoined_kernels, "not matched to an op");
  return text;
}

std::string allocator_text(const Trace& trace, const std::vector<StepAllocations>& calls) {
  struct Sum {
    uint64_t calls = 0, frees = 0, bytes = 0;
    int64_t ns = 0;
  };
  std::map<OpTag, Sum> by_op;
  for (const StepAllocations& c : calls) {
    Sum& sum = by_op[c.op];
    sum.calls += uint64_t{c.allocations} + c.async_allocations + c.host_allocations;
    sum.frees += uint64_t{c.frees} + c.async_frees + c.host_frees;
    sum.bytes += c.bytes, sum.ns += c.time_ns;
  }
  if (by_op.empty()) return "";
  std::vector<std::pair<OpTag, Sum>> rows(by_op.begin(), by_op.end());
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "\n%10s %10s %13s %13s %10s  %s\n", "allocated", "freed", "total µs",
                "µs a call", "MB", "allocator calls of");
  std::string text = buffer;
  for (const auto& [op, sum] : rows) {
    const OpInfo info = op < trace.ops.size() ? trace.ops[op] : OpInfo{};
    const uint64_t all = sum.calls + sum.frees;
    std::snprintf(buffer, sizeof buffer, "%10llu %10llu %12.3f %12.3f %10.3f  %.200s\n",
                  static_cast<unsigned long long>(sum.calls), static_cast<unsigned long long>(sum.frees),
                  us_of_ns(sum.ns), all > 0 ? us_of_ns(sum.ns) / static_cast<double>(all) : 0,
                  static_cast<double>(sum.bytes) * 1e-6,
                  op == kNoOp || info.name.empty() ? "(no op)" : info.name.c_str());
    text += buffer;
  }
  return text;
}

namespace {

// What only a trace with GPU records has.
std::string gpu_text(const TraceStats& s) {
  std::string text;
  char buffer[200];
  if (s.activity.untraced > 0) {
    std::snprintf(buffer, sizeof buffer,
                  "traced       %12.3f s   of %.3f s: kernels, copies and calls are of that part, allocations of all\n",
                  static_cast<double>(s.activity.wall) * 1e-9,
                  static_cast<double>(s.activity.wall + s.activity.untraced) * 1e-9);
    text += buffer;
  }
  if (s.activity.busy > 0) {
    std::snprintf(buffer, sizeof buffer, "GPU busy     %12.1f %%\n", 100 * s.activity.busy_share());
    text += buffer;
  }
  if (s.activity.copies > 0 && s.activity.kernels > 0) {
    std::snprintf(buffer, sizeof buffer, "overlap      %12.1f %%   of the copies ran beside kernels\n",
                  100 * s.activity.hidden_copies());
    text += buffer;
  }
  if (s.delay.count > 0) {
    std::snprintf(buffer, sizeof buffer, "launch delay %12.3f µs  median, P99 %.3f µs\n", us_of_ns(s.delay.median),
                  us_of_ns(s.delay.p99));
    text += buffer;
  }
  if (s.losses.dropped_records > 0) text += "records      " + std::to_string(s.losses.dropped_records) + " dropped\n";
  if (const std::string wrong = losses_text(s.losses); !wrong.empty()) text += "records      " + wrong + "\n";
  return text;
}

std::string rows_text(const std::vector<KernelRow>& rows, const char* what) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "\n%7s %13s %10s %11s %11s %11s  %s\n", "time %", "total µs", "count", "mean µs",
                "P50 µs", "P99 µs", what);
  std::string text = buffer;
  for (const KernelRow& row : rows) {
    std::snprintf(buffer, sizeof buffer, "%7.2f %12.3f %10llu %10.3f %10.3f %10.3f  %.200s\n", 100 * row.share,
                  us_of_ns(row.time.total), static_cast<unsigned long long>(row.time.count), row.time.mean * 1e-3,
                  us_of_ns(row.time.median), us_of_ns(row.time.p99), row.key.c_str());
    text += buffer;
  }
  return text;
}

nlohmann::ordered_json rows_json(const std::vector<KernelRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) {
    list.push_back({{"name", row.key},
                    {"count", row.time.count},
                    {"total_us", us_of_ns(row.time.total)},
                    {"mean_us", row.time.mean * 1e-3},
                    {"p50_us", us_of_ns(row.time.median)},
                    {"p99_us", us_of_ns(row.time.p99)}});
  }
  return list;
}

}  // namespace

std::string to_text(const TraceStats& s) {
  std::string text;
  const auto add = [&text](const char* what, uint64_t count, double amount, const char* unit) {
    char buffer[100];
    std::snprintf(buffer, sizeof buffer, "%-12s %12llu", what, static_cast<unsigned long long>(count));
    text += buffer;
    std::snprintf(buffer, sizeof buffer, " %14.3f %s", amount, unit);
    text += *unit ? std::string(buffer) + "\n" : "\n";
  };
  add("steps", s.steps, 0, "");
  add("kernels", s.kernels, static_cast<double>(s.kernel_ns) * 1e-6, "ms");
  add("copies", s.copies, static_cast<double>(s.copied_bytes) * 1e-6, "MB");
  add("memsets", s.memsets, 0, "");
  add("API calls", s.api_calls, 0, "");
  add("allocations", s.allocations, static_cast<double>(s.allocated_bytes) * 1e-6, "MB");
  text += gpu_text(s);
  if (!s.by_name.empty()) text += rows_text(s.by_name, "kernels");
  if (!s.cpu_ops.empty()) text += rows_text(s.cpu_ops, "ops on the CPU");
  return text;
}

std::string to_json(const TraceStats& s) {
  nlohmann::ordered_json json{{"steps", s.steps},
                              {"kernels", {{"count", s.kernels}, {"total_us", us_of_ns(s.kernel_ns)}}},
                              {"copies", {{"count", s.copies}, {"bytes", s.copied_bytes}}},
                              {"memsets", {{"count", s.memsets}}},
                              {"api", {{"count", s.api_calls}}},
                              {"allocations", {{"count", s.allocations}, {"bytes", s.allocated_bytes}}},
                              {"by_name", rows_json(s.by_name)}};
  if (!s.cpu_ops.empty()) json["cpu_ops"] = rows_json(s.cpu_ops);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
