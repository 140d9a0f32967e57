#include "profiling/analysis/compare.h"

#include <cmath>
#include <limits>
#include <map>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/span_walk.h"

namespace ws::prof {

namespace {

constexpr size_t kMostSamples = 20000;

// Per step, rounded so that the parts still sum to the whole.
MeaningTimes per_step_ps(const Breakdown& b) {
  const int64_t steps = std::max<int64_t>(b.steps, 1);
  MeaningTimes parts{};
  int64_t carried = 0;
  for (size_t m = 0; m < kMeanings; ++m) {
    const auto scaled = static_cast<__int128>(b.times[m]) * 1000 + carried;
    parts[m] = static_cast<int64_t>(scaled / steps);
    carried = static_cast<int64_t>(scaled % steps);
  }
  return parts;
}

int64_t sum(const MeaningTimes& times) {
  int64_t total = 0;
  for (const int64_t time : times) total += time;
  return total;
}

MetricDelta metric(std::string name, std::string unit, Estimate a, Estimate b) {
  MetricDelta delta{std::move(name), std::move(unit), a, b};
  delta.delta = b.value - a.value;
  delta.noise = std::hypot(a.half_width, b.half_width);
  delta.beyond_noise = std::abs(delta.delta) > delta.noise;
  return delta;
}

Estimate exact(double value) { return {value, 0}; }

std::vector<double> step_lengths(const Trace& trace) {
  std::vector<double> us;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Steps) continue;
    TimeNs previous = std::numeric_limits<TimeNs>::min();
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (span.span_kind() != SpanKind::Step || us.size() >= kMostSamples) return;
      if (previous != std::numeric_limits<TimeNs>::min())
        us.push_back(static_cast<double>(span.start - previous) * 1e-3);
      previous = span.start;
    });
  }
  return us;
}

std::vector<MetricDelta> metric_deltas(const RunData& a, const RunData& b) {
  std::vector<MetricDelta> rows;
  const auto add = [&](const char* name, const char* unit, Estimate x, Estimate y) {
    if (!std::isnan(x.value) && !std::isnan(y.value)) rows.push_back(metric(name, unit, x, y));
  };
  const auto add_known = [&](const char* name, const char* unit, double x, double y) {  // an import leaves them at 0
    if (x != 0 && y != 0) add(name, unit, exact(x), exact(y));
  };
  add("step time", "µs", estimate(step_lengths(a.trace)), estimate(step_lengths(b.trace)));
  add_known("time per step, whole run", "µs", a.summary.us_per_step, b.summary.us_per_step);
  if (a.summary.origin == "run" && b.summary.origin == "run") {
    add("allocator calls per step", "", exact(a.summary.allocator_calls_per_step),
        exact(b.summary.allocator_calls_per_step));
  }
  add_known("peak memory", "B", static_cast<double>(a.summary.peak_bytes), static_cast<double>(b.summary.peak_bytes));
  add("final loss", "", exact(a.summary.final_loss), exact(b.summary.final_loss));
  add("final accuracy", "", exact(a.summary.final_accuracy), exact(b.summary.final_accuracy));
  return rows;
}

// For 95%, two-sided.
double student_t(size_t freedom) {
  constexpr double kSmall[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return freedom <= std::size(kSmall) ? kSmall[freedom - 1] : 1.96 + 2.5 / static_cast<double>(freedom);
}

// Kernels, or on a machine without a GPU the ops that ran on the CPU.
std::vector<KernelRow> work_table(const Trace& trace) {
  std::vector<KernelRow> rows = kernel_table(trace, -kAlways, kAlways);
  return rows.empty() ? kernel_table(trace, -kAlways, kAlways, GroupBy::Name, SpanKind::Op) : rows;
}

bool traced(const RunData& run) { return run.trace.span_count() > 0; }

}  // namespace

Waterfall waterfall(const Breakdown& a, const Breakdown& b) {
  const MeaningTimes x = per_step_ps(a), y = per_step_ps(b);
  Waterfall result{sum(x), sum(y), {}};
  for (size_t m = 0; m < kMeanings; ++m) {
    if (x[m] != 0 || y[m] != 0) result.causes.push_back({static_cast<Meaning>(m), x[m], y[m]});
  }
  std::ranges::stable_sort(
      result.causes, [](const Cause& p, const Cause& q) { return std::abs(p.delta_ps()) > std::abs(q.delta_ps()); });
  return result;
}

Estimate estimate(const std::vector<double>& samples) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (samples.empty()) return {nan, nan};
  double mean = 0, squares = 0;
  for (const double sample : samples) mean += sample;
  mean /= static_cast<double>(samples.size());
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  if (samples.size() < 2) return {mean, 0};
  const double n = static_cast<double>(samples.size());
  return {mean, student_t(samples.size() - 1) * std::sqrt(squares / (n - 1) / n)};
}

std::vector<KernelDelta> kernel_deltas(const Trace& a, int64_t a_steps, const Trace& b, int64_t b_steps) {
  std::map<std::string, KernelDelta> rows;
  for (const KernelRow& row : work_table(a)) {
    KernelDelta& delta = rows[row.key];
    delta.a_count = static_cast<double>(row.time.count) / static_cast<double>(std::max<int64_t>(a_steps, 1));
    delta.a_us = static_cast<double>(row.time.total) * 1e-3 / static_cast<double>(std::max<int64_t>(a_steps, 1));
  }
  for (const KernelRow& row : work_table(b)) {
    KernelDelta& delta = rows[row.key];
    delta.b_count = static_cast<double>(row.time.count) / static_cast<double>(std::max<int64_t>(b_steps, 1));
    delta.b_us = static_cast<double>(row.time.total) * 1e-3 / static_cast<double>(std::max<int64_t>(b_steps, 1));
  }
  std::vector<KernelDelta> result;
  for (auto& [name, row] : rows) {
    row.name = name;
    result.push_back(std::move(row));
  }
  std::ranges::stable_sort(result, [](const KernelDelta& p, const KernelDelta& q) {
    return std::abs(p.delta_us()) > std::abs(q.delta_us());
  });
  return result;
}

Comparison compare(const RunData& a, const RunData& b) {
  Comparison result;
  result.a_name = a.summary.name;
  result.b_name = b.summary.name;
  const Breakdown x = breakdown(a.trace), y = breakdown(b.trace);
  result.steps = waterfall(x, y);
  result.metrics = metric_deltas(a, b);
  result.kernels = kernel_deltas(a.trace, x.steps, b.trace, y.steps);
  if (traced(a) != traced(b)) {
    result.warnings.push_back(std::string(traced(a) ? "A" : "B") +
                              " was traced and the other was not: tracing costs time.");
  }
  if (a.summary.device != b.summary.device && !a.summary.device.empty() && !b.summary.device.empty()) {
    result.warnings.push_back("A ran on " + a.summary.device + ", B on " + b.summary.device + ".");
  }
  if (traced(a) && traced(b) && (x.steps == 0 || y.steps == 0)) {
    result.warnings.push_back("A trace without step marks counts as one step.");
  }
  return result;
}

}  // namespace ws::prof
