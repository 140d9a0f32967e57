#include <algorithm>

#include "profiling/analysis/trace_stats.h"
#include "profiling/base/failure.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

double us_of(double ns) { return ns * 1e-3; }

std::string us_number(double ns) { return fixed(us_of(ns), 3); }
std::string us_number(int64_t ns) { return us_number(static_cast<double>(ns)); }

// Refers to the note below the table.
const char* star(const KernelRow& row) { return row.several_shapes ? "*" : ""; }

std::string occupancy_text(const KernelRow& row) {
  if (!row.occupancy) return "–";
  return percent(row.occupancy->share) + " " + limit_name(row.occupancy->limit) + star(row);
}

std::string launch_text(const KernelRow& row) {
  const Detail& d = row.detail;
  if (d.block[0] == 0) return "–";
  const auto triple = [](const int(&v)[3]) {
    return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
  };
  return triple(d.grid) + " " + triple(d.block) + star(row);
}

struct Column {
  std::string_view name;
  const char* heading;
  size_t width;
  std::string (*text)(const KernelRow&);
};
const Column kColumns[] = {
    {"calls", "with calls", 12, [](const KernelRow& r) { return r.with_calls > 0 ? us_number(r.with_calls) : std::string("–"); }},
    {"min", "min µs", 10, [](const KernelRow& r) { return us_number(r.time.min); }},
    {"mean", "mean µs", 10, [](const KernelRow& r) { return us_number(r.time.mean); }},
    {"sigma", "σ µs", 10, [](const KernelRow& r) { return us_number(r.time.stddev); }},
    {"p50", "P50 µs", 10, [](const KernelRow& r) { return us_number(r.time.median); }},
    {"p90", "P90 µs", 10, [](const KernelRow& r) { return us_number(r.time.p90); }},
    {"p95", "P95 µs", 10, [](const KernelRow& r) { return us_number(r.time.p95); }},
    {"p99", "P99 µs", 10, [](const KernelRow& r) { return us_number(r.time.p99); }},
    {"p999", "P99.9 µs", 10, [](const KernelRow& r) { return us_number(r.time.p999); }},
    {"max", "max µs", 10, [](const KernelRow& r) { return us_number(r.time.max); }},
    {"registers", "registers", 10,
     [](const KernelRow& r) { return r.detail.registers > 0 ? std::to_string(r.detail.registers) + star(r) : "–"; }},
    {"shared", "shared B", 10,
     [](const KernelRow& r) {
       return r.detail.block[0] > 0 ? std::to_string(r.detail.static_shared + r.detail.dynamic_shared) + star(r) : "–";
     }},
    {"launch", "grid, block", 24, launch_text},
    {"occupancy", "occupancy, limit", 22, occupancy_text},
};

const Column& column_named(const std::string& name) {
  const auto at = std::ranges::find(kColumns, name, &Column::name);
  if (at == std::end(kColumns)) throw Failure("There is no column \"" + name + "\".");
  return *at;
}

// Omits columns that have no value in any row.
std::vector<const Column*> shown(const std::vector<KernelRow>& rows, const std::vector<std::string>& names) {
  std::vector<const Column*> columns;
  for (const std::string& name : names) {
    const Column& column = column_named(name);
    const auto says = [&](const KernelRow& row) { return column.text(row) != "–"; };
    if (std::ranges::any_of(rows, says)) columns.push_back(&column);
  }
  return columns;
}

std::string row_name(const KernelRow& row) {
  return (row.kind == SpanKind::GraphRun ? "[graph, as a whole] " : "") + shortened(row.key);
}

std::string rows_text(const std::vector<KernelRow>& rows, const char* what, const std::vector<std::string>& names) {
  const auto columns = shown(rows, names);
  std::string text = "\n" + formatted("{:>7} {:>12} {:>10}", "time %", "total µs", "count");
  for (const Column* column : columns) text += formatted(" {:>{}}", column->heading, column->width);
  text += std::string("  ") + what + "\n";
  bool several = false;
  for (const KernelRow& row : rows) {
    std::string line = formatted("{:7.2f} {:>12} {:>10}", 100 * row.share, us_number(row.time.total), row.time.count);
    for (const Column* column : columns) {
      const bool empty = row.time.count == 0 && row.with_calls > 0 && column->name != "calls";  // a line that only calls others
      const std::string cell = empty ? "–" : column->text(row);
      several = several || cell.ends_with("*");
      line += formatted(" {:>{}}", cell, column->width);
    }
    text += table_row("{}  {}", line, row_name(row));
  }
  if (several) text += "* Of the first of several shapes: --by shape has a row for each.\n";
  return text;
}

// "step time    41.200 µs  median, P5 40.100, P95 44.700 µs".
std::string time_text(const StepTime& time) {
  if (!time.known()) return "";
  const std::string text = formatted("step time    {:12.3f} µs", time.us.value);
  if (!time.has_spread()) return text + "  mean with pauses\n";
  return text + formatted("  median, P5 {:.3f}, P95 {:.3f} µs\n", time.p5_us, time.p95_us);
}

// The share in the steps comes first: the window and the comparison show it.
std::string busy_text(const TraceStats& s) {
  const double whole = 100 * s.activity.busy_share();
  if (!s.step.traced() || s.step.parts.busy <= 0) return formatted("GPU busy     {:12.1f} %   of the trace\n", whole);
  return formatted("GPU busy     {:12.1f} %   of the steps below, {:.1f} % of the trace\n",
                   100 * s.step.parts.busy_share(), whole);
}

std::string step_text(const StepSample& step, bool of_windows) {
  if (!step.traced()) return "";
  const auto steps = static_cast<double>(step.parts.steps), wall = static_cast<double>(step.parts.wall());
  std::string text = formatted("\n{:>12} {:>7}", "µs", "%") + "  of a step, mean of " +
                     (of_windows ? "" : "the newest ") + std::to_string(step.parts.steps) +
                     (of_windows ? " recorded kernel by kernel" : "") + left_out_text(step) + "\n";
  const auto add = [&](double ns, const std::string& name) {
    text += formatted("{:>12} {:7.2f}  {}\n", us_number(ns / steps), wall > 0 ? 100 * ns / wall : 0, name);
  };
  for (const BreakdownPart& part : parts_of(step.parts)) add(static_cast<double>(part.ns), part_name(part.id));
  add(wall, "wall time, their sum");
  return text;
}

// Lines that only a trace with GPU records has.
std::string gpu_text(const TraceStats& s) {
  std::string text;
  if (s.activity.untraced > 0)
    text += formatted("traced       {:12.3f} s   of {:.3f} s; {}\n", static_cast<double>(s.activity.wall) * 1e-9,
                      static_cast<double>(s.activity.wall + s.activity.untraced) * 1e-9,
                      s.captures > 0 ? "in " + std::to_string(s.captures) + " capture ranges" : "allocations are of all of it");
  if (s.activity.busy > 0) text += busy_text(s);
  if (s.activity.copies > 0 && s.activity.kernels > 0)
    text += formatted("overlap      {:12.1f} %   of the copies of the trace ran beside kernels\n", 100 * s.activity.hidden_copies());
  if (s.delay.count > 0)
    text += formatted("launch delay {:12.3f} µs  median of the trace, P99 {:.3f} µs\n", us_of(static_cast<double>(s.delay.median)),
                      us_of(static_cast<double>(s.delay.p99)));
  if (s.losses.dropped_records > 0) text += "records      " + std::to_string(s.losses.dropped_records) + " dropped\n";
  if (const std::string wrong = losses_text(s.losses); !wrong.empty()) text += "records      " + wrong + "\n";
  return text;
}

}  // namespace

std::vector<std::string_view> row_columns() {
  std::vector<std::string_view> names;
  for (const Column& column : kColumns) names.push_back(column.name);
  return names;
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

bool tracing_cost_seen(const Interval& share) { return share.known() && share.value > share.half_width; }

std::string tracing_cost_text(const Interval& share) {
  if (!share.known()) return "";
  const std::string noise = "± " + fixed(100 * share.half_width, 1) + " %";
  return tracing_cost_seen(share) ? "≥ " + fixed(100 * share.value, 1) + " " + noise : "within noise, " + noise;
}

std::string to_text(const TraceStats& s, const std::vector<std::string>& columns) {
  std::string text;
  const auto add = [&text](const char* what, uint64_t count, double amount, const char* unit) {
    text += formatted("{:<12} {:12}", what, count) + (*unit ? formatted(" {:14.3f} {}\n", amount, unit) : "\n");
  };
  const auto add_some = [&add](const char* what, uint64_t count, double amount, const char* unit) {
    if (count > 0) add(what, count, amount, unit);
  };
  add("steps", s.steps, 0, "");
  add_some("kernels", s.kernels, static_cast<double>(s.kernel_ns) * 1e-6, "ms");
  add_some("graphs", s.graphs, static_cast<double>(s.graph_ns) * 1e-6, "ms   each recorded as a whole");
  add_some("copies", s.copies, static_cast<double>(s.copied_bytes) * 1e-6, "MB");
  add_some("memsets", s.memsets, 0, "");
  add_some("API calls", s.api_calls, 0, "");
  add_some("allocations", s.allocations, static_cast<double>(s.allocated_bytes) * 1e-6, "MB");
  text += time_text(s.step_time);
  if (const std::string cost = tracing_cost_text(s.tracing_cost); !cost.empty()) text += "tracing cost " + cost + "\n";
  text += gpu_text(s) + step_text(s.step, s.graphs > 0 && !s.step.work.contains(kWholeGraphs));
  if (!s.by_name.empty()) text += rows_text(s.by_name, "kernels", columns);
  if (!s.cpu_ops.empty()) text += rows_text(s.cpu_ops, "ops", columns);
  return text + s.call_tables + s.memory_tables;
}

}  // namespace ws::prof
