#include "profiling/analysis/trace_stats.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "profiling/trace/span_walk.h"
#include "profiling/analysis/card.h"
#include "profiling/base/version.h"

namespace ws::prof {

namespace {

void count(TraceStats& stats, const Trace& trace, const Span& span) {
  switch (span.span_kind()) {
    case SpanKind::Kernel:
      ++stats.kernels, stats.kernel_ns += static_cast<int64_t>(span.duration);
      break;
    case SpanKind::GraphRun:
      ++stats.graphs, stats.graph_ns += static_cast<int64_t>(span.duration);
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

using StatsJson = nlohmann::ordered_json;

StatsJson shape_json(const KernelRow& row) {
  const Detail& d = row.detail;
  StatsJson json{{"grid", d.grid},
                 {"block", d.block},
                 {"registers", d.registers},
                 {"shared_bytes", d.static_shared + d.dynamic_shared},
                 {"several_shapes", row.several_shapes}};
  if (row.occupancy)
    json["occupancy"] = {{"share", row.occupancy->share},
                         {"limit", limit_name(row.occupancy->limit)},
                         {"blocks_per_sm", row.occupancy->blocks},
                         {"warps_per_sm", row.occupancy->warps}};
  return json;
}

StatsJson json_of(const std::vector<KernelRow>& rows, SpanKind kind) {
  std::vector<KernelRow> wanted;
  std::ranges::copy_if(rows, std::back_inserter(wanted), [kind](const KernelRow& row) { return row.kind == kind; });
  auto list = rows_json(with_columns(kernel_rows(wanted, "name"), {"name", "count", "total_us", "mean_us", "p50_us", "p99_us", "min_us", "max_us",
                                                                   "stddev_us", "p90_us", "p95_us", "p999_us", "with_calls_us"}));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].with_calls == 0) list[i].erase("with_calls_us");
    for (auto& value : list[i])
      if (value.is_null()) value = 0.0;  // a line that only calls others
    if (kind == SpanKind::Kernel && wanted[i].detail.block[0] > 0) list[i]["shape"] = shape_json(wanted[i]);
  }
  return list;
}

StatsJson parts_json(const Breakdown& parts) {
  StatsJson json;
  for (const BreakdownPart& part : parts_of(parts)) json[part_name(part.id)] = us_of_ns(part.ns) / static_cast<double>(parts.steps);
  return json;
}

StatsJson step_json(const StepSample& step) {
  return {{"steps", step.parts.steps}, {"wall_us", step.mean_step_us()}, {"parts_us", parts_json(step.parts)}, {"median_us", step.median_step_us()}, {"median_parts_us", parts_json(step.median_parts)}};
}

StatsJson time_json(const StepTime& time) {
  StatsJson json{{"median", time.us.value}, {"half_width", time.us.half_width}};
  if (time.has_spread()) json["p5"] = time.p5_us, json["p95"] = time.p95_us;
  return json;
}

StatsJson gpu_json(const TraceStats& s) {
  const DurationStats& delay = s.gpu.delay;
  StatsJson json{{"busy", s.step.traced() ? s.step.busy_share() : s.activity.busy_share()}, {"of", s.gpu.of}, {"copies_beside_kernels", s.gpu.activity.hidden_copies()}};
  if (delay.count > 0) json["launch_delay_us"] = {{"mean", delay.mean * 1e-3}, {"p50", us_of_ns(delay.median)}, {"p99", us_of_ns(delay.p99)}};
  return json;
}

StatsJson calls_json(const CallSums& sums) {
  return {{"allocations", sums.allocations}, {"frees", sums.frees}, {"us", us_of_ns(sums.ns)}, {"bytes", sums.bytes}};
}

StatsJson history_json(const AllocatorHistory& calls) {
  auto by_step = StatsJson::array();
  for (size_t i = 0; i < calls.by_step().size(); ++i) {
    StatsJson entry{{"first_step", static_cast<int64_t>(i) * calls.steps_each()}, {"steps", calls.steps_each()}};
    entry.update(calls_json(calls.by_step()[i]));
    by_step.push_back(std::move(entry));
  }
  return {{"all", calls_json(calls.all())}, {"in_steps", calls_json(calls.in_steps())}, {"by_step", by_step}};
}

StatsJson held_json(const MemoryAccount& account) {
  auto rows = StatsJson::array();
  for (const MemoryHolder& row : account.held)
    rows.push_back({{to_string(account.held_by), row.name}, {"bytes", row.bytes}, {"blocks", row.blocks}});
  return rows;
}

StatsJson memory_json(const std::vector<MemoryAccount>& accounts) {
  auto list = StatsJson::array();
  for (const MemoryAccount& a : accounts) {
    auto sizes = StatsJson::array();
    for (const SizeBin& bin : a.sizes)
      sizes.push_back({{"from", bin.from}, {"to", bin.to}, {"count", bin.count}, {"bytes", bin.bytes}});
    list.push_back({{"allocator", a.allocator},
                    {"peak_live", a.planned() ? StatsJson() : StatsJson(a.history.peak_live)},
                    {"planned", a.planned()},
                    {"peak_reserved", a.history.peak_reserved},
                    {"fragmentation_at_peak", a.at_peak.fragmentation()},
                    {"fragmentation_at_worst", a.worst.fragmentation()},
                    {"sizes", sizes},
                    {"held_at_peak", held_json(a)}});
    if (a.gap.known())
      list.back().update({{"taken_at_peak", a.gap.taken},
                          {"most_taken", a.gap.most_taken},
                          {"unused_beside_blocks", a.gap.beside},
                          {"unused_segments", a.gap.empty}});
  }
  return list;
}

}  // namespace

TraceStats trace_stats(const Trace& trace, GroupBy by) {
  TraceStats stats;
  std::unordered_set<uint32_t> steps;
  // Every rank marks the steps that all ranks take together.
  const auto is_step_again = [rank = rank_of_steps(trace)](const Track& track, const Span& span) {
    return span.span_kind() == SpanKind::Step && rank >= 0 && track.rank >= 0 && track.rank != rank;
  };
  for (const Track& track : trace.tracks()) {
    if (track.kind == TrackKind::Inner) continue;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (!is_stream_wait(track, span) && !is_step_again(track, span)) count(stats, trace, span);
      if (span.step != 0) steps.insert(span.step);
    });
  }
  if (stats.steps == 0) stats.steps = steps.size();
  stats.allocations = count_allocations(trace);
  stats.by_name = work_table(trace, -kAlways, kAlways, by);
  const SpanKind kind = stats.by_name.empty() ? SpanKind::Kernel : stats.by_name.front().kind;
  if (kind == SpanKind::Op || kind == SpanKind::Phase) std::swap(stats.by_name, stats.cpu_ops);
  stats.losses = trace.losses;
  stats.activity = activity(trace, trace.first_time(), trace.last_time());
  stats.gpu = gpu_figures(trace, {}, {});
  return stats;
}

uint64_t peak_memory(const RunData& run) { return run.summary.peak_bytes > 0 ? run.summary.peak_bytes : peak_live(run.trace); }

TraceStats run_stats(const RunData& run, GroupBy by) {
  TraceStats stats = trace_stats(run.trace, by);
  stats.problems = run.problems;
  std::unordered_set<int> ranks;
  for (const Track& track : run.trace.tracks())
    if (track.rank >= 0) ranks.insert(track.rank);
  stats.ranks = std::max<size_t>(1, ranks.size());
  // One graph launch marks several steps as one.
  stats.steps = std::max(stats.steps, static_cast<uint64_t>(run.summary.steps));
  if (const auto limits = card_of(run.summary).limits) add_occupancy(stats.by_name, *limits);
  stats.step = StepsOfRun::of(run).sample();
  stats.gpu = gpu_figures(run.trace, stats.step.row, stats.step.row_steps);
  stats.step_time = step_time(run, stats.step);
  scale_median(stats.step, stats.step_time.us.value);
  stats.peak_bytes = peak_memory(run);
  stats.tracing_cost = run.summary.tracing_cost;
  stats.captures = std::strtoull(run.summary.said(kCaptureCountKey).c_str(), nullptr, 10);
  stats.calls.take(run.allocations);
  stats.call_tables = allocator_text(run.trace, stats.calls, run.summary.steps);
  stats.memory = memory_accounts(run.trace, by);
  stats.memory_tables = memory_text(run.trace, stats.memory);
  return stats;
}

std::string to_json(const TraceStats& s, const std::string& by) {
  StatsJson json{{"version", kJsonVersion},
                 {"steps", s.steps},
                 {"kernels", {{"count", s.kernels}, {"total_us", us_of_ns(s.kernel_ns)}}},
                 {"copies", {{"count", s.copies}, {"bytes", s.copied_bytes}}},
                 {"memsets", {{"count", s.memsets}}},
                 {"api", {{"count", s.api_calls}}},
                 {"allocations", {{"count", s.allocations.program}, {"bytes", s.allocations.program_bytes}}},
                 {"driver_allocations", {{"count", s.allocations.driver}, {"bytes", s.allocations.driver_bytes}}},
                 {"peak_memory_bytes", s.peak_bytes},
                 {"by_" + by, json_of(s.by_name, SpanKind::Kernel)}};
  if (s.step_time.known()) json["step_time_us"] = time_json(s.step_time);
  if (s.graphs > 0)
    json["graphs"] = {
        {"count", s.graphs}, {"total_us", us_of_ns(s.graph_ns)}, {"by_name", json_of(s.by_name, SpanKind::GraphRun)}};
  if (!s.cpu_ops.empty()) json["cpu_ops"] = json_of(s.cpu_ops, s.cpu_ops.front().kind);
  if (s.step.traced()) json["step"] = step_json(s.step);
  if (s.tracing_cost.known())
    json["tracing_cost"] = {{"share", s.tracing_cost.value}, {"half_width", s.tracing_cost.half_width}};
  if (s.activity.busy > 0) json["gpu"] = gpu_json(s);
  if (!s.calls.empty()) json["allocator_calls"] = history_json(s.calls);
  if (!s.memory.empty()) json["memory"] = memory_json(s.memory);
  if (!s.problems.empty()) json["problems"] = s.problems;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::prof
