#include <algorithm>

#include "profiling/analysis/trace_stats.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws::prof {

namespace {

double us_of(double ns) { return ns * 1e-3; }

std::string us_number(double ns) { return fixed(us_of(ns), 3); }

std::string launch_text(const Detail& d) {
  const auto triple = [](const int(&v)[3]) { return formatted("{}×{}×{}", v[0], v[1], v[2]); };
  return triple(d.grid) + " · " + triple(d.block);
}

// The columns of `--columns`, and their keys in the table.
struct ColumnName {
  std::string_view name;
  const char* key;
};
constexpr ColumnName kColumnNames[] = {
    {"calls", "with_calls_us"}, {"min", "min_us"}, {"mean", "mean_us"}, {"sigma", "stddev_us"}, {"p50", "p50_us"},
    {"p90", "p90_us"},          {"p95", "p95_us"}, {"p99", "p99_us"},   {"p999", "p999_us"},    {"max", "max_us"},
    {"registers", "registers"}, {"shared", "shared_bytes"}, {"launch", "launch"}, {"occupancy", "occupancy"}};

std::string key_of_column(const std::string& name) {
  const auto at = std::ranges::find(kColumnNames, name, &ColumnName::name);
  if (at == std::end(kColumnNames)) throw Failure("There is no column \"" + name + "\".");
  return at->key;
}

// A line that only calls others has no times of its own.
Table::Row row_of(const KernelRow& row) {
  const DurationStats& t = row.time;
  const Detail& d = row.detail;
  const bool own = t.count > 0 || row.with_calls == 0, launched = own && d.block[0] > 0;
  const auto us = [own](double ns) { return own ? Table::Cell(us_of(ns)) : Table::Cell(); };
  const auto whole_us = [&us](int64_t ns) { return us(static_cast<double>(ns)); };
  const auto shape = [&row](bool known, auto value, std::string text) {
    Table::Cell cell = known ? Table::Cell(value) : Table::Cell();
    if (known) cell.text = std::move(text), cell.noted = row.several_shapes;
    if (row.several_shapes) cell.tip = "From the first of several shapes. “By name and shape” has a row for each.";
    return cell;
  };
  Table::Cell name(row.key);
  const bool graph = row.kind == SpanKind::GraphRun;
  name.text = shortened(row.key) + (graph ? " · whole graph" : "");
  name.tip = graph ? "A whole CUDA graph, from its launch to the end of its last kernel. The level Kernels records each kernel." : row.key;
  name.swatch = static_cast<int>(row.meaning);
  return {{name, t.count, us_of(static_cast<double>(t.total)), row.share, whole_us(t.min), us(t.mean), us(t.stddev), whole_us(t.median),
           whole_us(t.p90), whole_us(t.p95), whole_us(t.p99), whole_us(t.p999), whole_us(t.max),
           shape(launched, static_cast<double>(d.grid[0]) * d.grid[1] * d.grid[2], launch_text(d)), shape(own && d.registers > 0, d.registers, ""),
           shape(own && row.occupancy, row.occupancy ? row.occupancy->share : 0, row.occupancy ? share_text(*row.occupancy) : ""),
           shape(own && row.occupancy && row.occupancy->share < 1, std::string(row.occupancy ? limit_name(row.occupancy->limit) : ""), ""),
           row.with_calls > 0 ? Table::Cell(us_of(static_cast<double>(row.with_calls))) : Table::Cell(),
           shape(launched, int64_t{d.static_shared} + d.dynamic_shared, "")}};
}

std::string rows_text(const std::vector<KernelRow>& rows, const char* what, const std::vector<std::string>& names) {
  std::vector<std::string> keys{"share", "total_us", "count"};
  for (const std::string& name : names) {
    keys.push_back(key_of_column(name));
    if (keys.back() == "occupancy") keys.emplace_back("occupancy_limit");
  }
  keys.emplace_back("name");
  const Table table = with_columns(kernel_rows(rows, what), keys);
  const auto noted = [](const Table::Row& row) { return std::ranges::any_of(row.cells, &Table::Cell::noted); };
  return "\n" + to_text(table) +
         (std::ranges::any_of(table.rows, noted) ? "* Of the first of several shapes: --by shape has a row for each.\n" : "");
}

// "step time    41.200 µs  median, P5 40.100, P95 44.700 µs".
std::string time_text(const StepTime& time) {
  if (!time.known()) return "";
  const std::string text = formatted("step time    {:12.3f} µs", time.us.value);
  if (!time.has_spread()) return text + "  mean of the run, with pauses\n";
  return text + formatted("  median, P5 {:.3f}, P95 {:.3f} µs\n", time.p5_us, time.p95_us);
}

// The share in the median step, which is what the window and `check` show. A GPU whose multiprocessors wait is busy.
std::string busy_text(const TraceStats& s) {
  const bool steps = s.step.traced() && s.step.parts.busy > 0;
  const Breakdown& parts = s.step.median_parts;
  const std::string waits = steps && parts.inner_wait > 0 ? formatted("             {:12.1f} %   of it: {}\n", 100 * static_cast<double>(parts.inner_wait) / static_cast<double>(parts.busy),
                                                                       part_name({Meaning::Sync, PartKind::InnerWait}))
                                                           : "";
  return formatted("GPU busy     {:12.1f} %   of {}\n", 100 * (steps ? s.step.busy_share() : s.activity.busy_share()),
                   steps ? "the median of " + of_steps(s.step) : "the trace") + waits;
}

std::string step_text(const StepSample& step, bool of_windows) {
  const Breakdown& parts = step.median_parts;
  if (!step.traced() || parts.steps == 0) return "";
  const auto steps = static_cast<double>(parts.steps), wall = static_cast<double>(parts.wall());
  std::string text = formatted("\n{:>12} {:>7}", "µs", "%") + "  of the median step, of " + of_steps(step) + (of_windows ? " recorded kernel by kernel" : "") + left_out_text(step) + "\n";
  const auto add = [&](double ns, const std::string& name) {
    text += formatted("{:>12} {:7.2f}  {}\n", us_number(ns / steps), wall > 0 ? 100 * ns / wall : 0, name);
  };
  std::string waits;
  for (const BreakdownPart& part : parts_of(parts)) {
    add(static_cast<double>(part.ns), part_name(part.id));
    if (step.gpu && gpu_waits_in(part.id)) waits += (waits.empty() ? "" : ", ") + std::string(part_name(part.id));
  }
  add(wall, "step time, their sum");
  if (!waits.empty()) text += formatted("{:22}{}: {}\n", "", waits, kGpuWaits);
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
  if (s.gpu.activity.copies > 0 && s.gpu.activity.kernels > 0)
    text += formatted("overlap      {:12.1f} %   of the copies in {} ran beside kernels\n", 100 * s.gpu.activity.hidden_copies(), s.gpu.of);
  if (const DurationStats& delay = s.gpu.delay; delay.count > 0)
    text += formatted("launch delay {:12.3f} µs  median of {}, P99 {:.3f} µs\n", us_of(static_cast<double>(delay.median)), s.gpu.of,
                      us_of(static_cast<double>(delay.p99)));
  if (s.losses.dropped_records > 0) text += "records      " + std::to_string(s.losses.dropped_records) + " dropped\n";
  if (const std::string wrong = losses_text(s.losses); !wrong.empty()) text += "records      " + wrong + "\n";
  return text;
}

}  // namespace

Table kernel_rows(const std::vector<KernelRow>& rows, const std::string& what) {
  using Kind = Table::Kind;
  const auto time = [](const char* key, const char* name) { return Table::Column{key, name, "µs", Kind::Time, 3, 10, "", false, true}; };
  Table table{{{"name", what, "", Kind::Text, 0, 1, ""},
               {"count", "count", "", Kind::Count, 0, 10, ""},
               {"total_us", "total", "µs", Kind::Time, 3, 12, ""},
               {"share", "of total", "%", Kind::Percent, 2, 11, "Share of the total time of all rows."},
               time("min_us", "min"), time("mean_us", "mean"), time("stddev_us", "σ"), time("p50_us", "median"), time("p90_us", "P90"),
               time("p95_us", "P95"), time("p99_us", "P99"), time("p999_us", "P99.9"), time("max_us", "max"),
               {"launch", "grid · block", "", Kind::Count, 0, 24, "", false, true},
               {"registers", "registers", "", Kind::Count, 0, 10, "Of a thread.", false, true},
               {"occupancy", "theoretical occupancy", "", Kind::Percent, 1, 24,
                "How many warps of the kernel a multiprocessor can hold, as a share of the most. Not measured.", false, true},
               {"occupancy_limit", "limited by", "", Kind::Text, 0, 16, "What limits the theoretical occupancy.", false, true},
               {"with_calls_us", "with calls", "", Kind::Time, 3, 12, "Time of the line with all lines that it calls, in µs.", false, true},
               {"shared_bytes", "shared B", "", Kind::Count, 0, 10, "Shared memory of a block.", false, true}}, {}};
  for (const KernelRow& row : rows) table.rows.push_back(row_of(row));
  return table;
}

std::vector<std::string_view> row_columns() {
  std::vector<std::string_view> names;
  for (const ColumnName& column : kColumnNames) names.push_back(column.name);
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
    constexpr size_t kWidth = 25;  // of name and count
    text += what + formatted("{:{}}", count, kWidth - std::string_view(what).size()) + (*unit ? formatted(" {:14.3f} {}\n", amount, unit) : "\n");
  };
  const auto add_some = [&add](const char* what, uint64_t count, double amount, const char* unit) {
    if (count > 0) add(what, count, amount, unit);
  };
  add("steps", s.steps, 0, "");
  if (s.ranks > 1) text += formatted("ranks{:20}   kernels, copies and calls of all of them; allocations and memory of the first\n", s.ranks);
  add_some("kernels", s.kernels, static_cast<double>(s.kernel_ns) * 1e-6, "ms");
  add_some("graphs", s.graphs, static_cast<double>(s.graph_ns) * 1e-6, "ms   each recorded as a whole");
  add_some("copies", s.copies, static_cast<double>(s.copied_bytes) * 1e-6, "MB");
  add_some("memsets", s.memsets, 0, "");
  add_some("API calls", s.api_calls, 0, "");
  add_some("allocations", s.allocations.program, static_cast<double>(s.allocations.program_bytes) * 1e-6, "MB");
  add_some("driver allocations", s.allocations.driver, static_cast<double>(s.allocations.driver_bytes) * 1e-6, "MB");
  if (s.peak_bytes > 0) text += formatted("peak memory  {:>12}\n", bytes_text(static_cast<double>(s.peak_bytes)));
  text += time_text(s.step_time);
  if (const std::string cost = tracing_cost_text(s.tracing_cost); !cost.empty()) text += "tracing cost " + cost + "\n";
  text += gpu_text(s) + step_text(s.step, s.graphs > 0 && !s.step.work.contains(kWholeGraphs));
  if (!s.by_name.empty()) text += rows_text(s.by_name, s.step.traced() ? "kernels of the whole trace" : "kernels", columns);
  if (!s.cpu_ops.empty()) text += rows_text(s.cpu_ops, s.step.traced() ? "ops of the whole trace" : "ops", columns);
  return text + s.call_tables + s.memory_tables;
}

}  // namespace ws::prof
