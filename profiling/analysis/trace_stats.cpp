#include "profiling/analysis/trace_stats.h"

#include <cstdio>
#include <limits>
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

TraceStats trace_stats(const Trace& trace) {
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
  stats.by_name = kernel_table(trace, -kAlways, kAlways);
  return stats;
}

std::string to_text(const TraceStats& s) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer,
                "steps        %12llu\nkernels      %12llu   %.3f ms\ncopies       %12llu   %.3f MB\nmemsets      "
                "%12llu\nAPI calls    "
                "%12llu\nallocations  %12llu   %.3f MB\n\n",
                static_cast<unsigned long long>(s.steps), static_cast<unsigned long long>(s.kernels),
                static_cast<double>(s.kernel_ns) * 1e-6, static_cast<unsigned long long>(s.copies),
                static_cast<double>(s.copied_bytes) * 1e-6, static_cast<unsigned long long>(s.memsets),
                static_cast<unsigned long long>(s.api_calls), static_cast<unsigned long long>(s.allocations),
                static_cast<double>(s.allocated_bytes) * 1e-6);
  std::string text = buffer;
  std::snprintf(buffer, sizeof buffer, "%7s %12s %10s %10s %10s %10s  %s\n", "time %", "total µs", "count", "mean µs",
                "P50 µs", "P99 µs", "kernel");
  text += buffer;
  for (const KernelRow& row : s.by_name) {
    std::snprintf(buffer, sizeof buffer, "%7.2f %12.3f %10llu %10.3f %10.3f %10.3f  %.200s\n", 100 * row.share,
                  us_of_ns(row.time.total), static_cast<unsigned long long>(row.time.count), row.time.mean * 1e-3,
                  us_of_ns(row.time.median), us_of_ns(row.time.p99), row.key.c_str());
    text += buffer;
  }
  return text;
}

std::string to_json(const TraceStats& s) {
  nlohmann::ordered_json json{{"steps", s.steps},
                              {"kernels", {{"count", s.kernels}, {"total_us", us_of_ns(s.kernel_ns)}}},
                              {"copies", {{"count", s.copies}, {"bytes", s.copied_bytes}}},
                              {"memsets", {{"count", s.memsets}}},
                              {"api", {{"count", s.api_calls}}},
                              {"allocations", {{"count", s.allocations}, {"bytes", s.allocated_bytes}}},
                              {"by_name", nlohmann::ordered_json::array()}};
  for (const KernelRow& row : s.by_name) {
    json["by_name"].push_back({{"name", row.key},
                               {"count", row.time.count},
                               {"total_us", us_of_ns(row.time.total)},
                               {"mean_us", row.time.mean * 1e-3},
                               {"p50_us", us_of_ns(row.time.median)},
                               {"p99_us", us_of_ns(row.time.p99)}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
