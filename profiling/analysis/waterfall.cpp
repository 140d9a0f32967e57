#include "profiling/analysis/waterfall.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "profiling/analysis/kernel_table.h"

namespace ws::prof {

namespace {

// ns of many steps as ps of one, rounded so that parts taken one after the other still sum to the whole.
class PerStep {
 public:
  explicit PerStep(int64_t steps) : steps_(std::max<int64_t>(steps, 1)) {}
  int64_t ps(int64_t ns) {
    const auto scaled = static_cast<__int128>(ns) * 1000 + carried_;
    carried_ = static_cast<int64_t>(scaled % steps_);
    return static_cast<int64_t>(scaled / steps_);
  }

 private:
  int64_t steps_, carried_ = 0;
};

MeaningTimes per_step_ps(const Breakdown& b) {
  PerStep per_step(b.steps);
  MeaningTimes parts{};
  for (size_t m = 0; m < kMeanings; ++m) parts[m] = per_step.ps(b.times[m]);
  return parts;
}

bool is_op(const Cause& cause) { return !cause.op.empty(); }

void sort_by_change(std::vector<Cause>& causes) {
  std::ranges::stable_sort(
      causes, [](const Cause& p, const Cause& q) { return std::abs(p.delta_ps()) > std::abs(q.delta_ps()); });
}

// The parts of one run in the order of its meanings, so that the ops of a meaning round to what the meaning does.
void add_by_op(const StepSample& sample, int64_t Cause::*side, std::map<std::string, Cause>& ops, MeaningTimes& rest) {
  PerStep per_step(sample.parts.steps);
  auto op = sample.op_parts.begin();
  for (size_t m = 0; m < kMeanings; ++m) {
    const auto meaning = static_cast<Meaning>(m);
    int64_t left = sample.parts.times[m];
    for (; op != sample.op_parts.end() && op->first.first == meaning; ++op) {
      const std::string& key = op->first.second;
      const std::string name = key.starts_with(kOpKey) ? key.substr(kOpKey.size()) : short_kernel_name(key);
      Cause& cause = ops.try_emplace(name, Cause{meaning, 0, 0, name.empty() ? "(no name)" : name}).first->second;
      cause.*side += per_step.ps(op->second);
      left -= op->second;
    }
    rest[m] = per_step.ps(left);
  }
}

int64_t sum(const MeaningTimes& times) {
  int64_t total = 0;
  for (const int64_t time : times) total += time;
  return total;
}

MetricDelta metric(std::string name, std::string unit, Interval a, Interval b) {
  MetricDelta delta{std::move(name), std::move(unit), a, b};
  delta.delta = b.value - a.value;
  delta.noise = std::hypot(a.half_width, b.half_width);
  delta.beyond_noise = std::abs(delta.delta) > delta.noise;
  return delta;
}

Interval exact(double value) { return {value, 0}; }

// Of the steps that were compared; their spread between blocks of steps is the noise.
Interval step_length(const StepSample& sample) {
  if (!sample.traced()) return {};
  return {sample.mean_step_us(), interval_of_blocks(sample.step_us).half_width};
}

Interval whole_run(const RunData& run) {
  const auto pace = [](const Metric& m) { return Pace{static_cast<double>(m.step), m.wall_s}; };
  return {run.summary.us_per_step, mean_with_interval(pace_stretches_us(run.metrics, pace)).half_width};
}

// The newest steps without pauses and evaluations; of a trace that names no steps, the longest part without a rest of
// the tracing counts as one.
StepSample sample_of(const RunData& run) {
  StepSample sample = sample_steps(run.trace, steps_per_epoch(run.evaluations));
  if (sample.traced() || run.trace.span_count() == 0) return sample;
  const Breakdown whole = breakdown(run.trace);
  const StepWindowNs part = longest_traced(run.trace, {whole.begin, whole.end});
  add_parts(sample, run.trace, part.begin, part.end);
  sample.parts.steps = part.end - part.begin == whole.wall() ? whole.steps : 1;
  for (const KernelRow& row : work_table(run.trace, part.begin, part.end)) {
    WorkUse& use = sample.work[row.kind == SpanKind::GraphRun ? kWholeGraphs : row.key];
    use.count += static_cast<double>(row.time.count), use.us += static_cast<double>(row.time.total) * 1e-3;
  }
  return sample;
}

std::vector<MetricDelta> metric_deltas(const RunData& a, const StepSample& x, const RunData& b, const StepSample& y) {
  std::vector<MetricDelta> rows;
  const auto add = [&](const char* name, const char* unit, Interval of_a, Interval of_b) {
    if (!std::isnan(of_a.value) && !std::isnan(of_b.value)) rows.push_back(metric(name, unit, of_a, of_b));
  };
  const auto add_known = [&](const char* name, const char* unit, Interval of_a, Interval of_b) {
    if (of_a.value != 0 && of_b.value != 0) add(name, unit, of_a, of_b);  // imports leave them at 0
  };
  add("step time", "µs", step_length(x), step_length(y));
  add_known("time per step, whole run", "µs", whole_run(a), whole_run(b));
  if (a.summary.origin == "run" && b.summary.origin == "run") {
    add("allocator calls per step", "", exact(a.summary.allocator_calls_per_step),
        exact(b.summary.allocator_calls_per_step));
  }
  add("driver calls per step", "", exact(driver_calls_per_step(a.summary)), exact(driver_calls_per_step(b.summary)));
  add_known("peak memory", "B", exact(static_cast<double>(a.summary.peak_bytes)),
            exact(static_cast<double>(b.summary.peak_bytes)));
  add("final loss", "", exact(a.summary.final_loss), exact(b.summary.final_loss));
  add("final accuracy", "", exact(a.summary.final_accuracy), exact(b.summary.final_accuracy));
  return rows;
}

bool traced(const RunData& run) { return run.trace.span_count() > 0; }

}  // namespace

Waterfall waterfall(const Breakdown& a, const Breakdown& b) {
  const MeaningTimes x = per_step_ps(a), y = per_step_ps(b);
  Waterfall result{sum(x), sum(y), {}};
  for (size_t m = 0; m < kMeanings; ++m) {
    if (x[m] != 0 || y[m] != 0) result.causes.push_back({static_cast<Meaning>(m), x[m], y[m]});
  }
  sort_by_change(result.causes);
  return result;
}

Waterfall waterfall_by_op(const StepSample& a, const StepSample& b) {
  std::map<std::string, Cause> ops;
  MeaningTimes x{}, y{};
  add_by_op(a, &Cause::a_ps, ops, x);
  add_by_op(b, &Cause::b_ps, ops, y);
  Waterfall result{0, 0, {}};
  for (auto& [name, cause] : ops) result.causes.push_back(std::move(cause));
  for (size_t m = 0; m < kMeanings; ++m) {
    if (x[m] != 0 || y[m] != 0) result.causes.push_back({static_cast<Meaning>(m), x[m], y[m]});
  }
  for (const Cause& cause : result.causes) result.a_ps += cause.a_ps, result.b_ps += cause.b_ps;
  sort_by_change(result.causes);
  return result;
}

Waterfall folded(Waterfall by_op, size_t most) {
  auto& causes = by_op.causes;
  const auto ops = static_cast<size_t>(std::ranges::count_if(causes, is_op));
  if (ops <= most + 1) return by_op;
  Cause rest{Meaning::Other, 0, 0, std::to_string(ops - most) + " other ops"};
  size_t kept = 0;
  std::erase_if(causes, [&](const Cause& cause) {
    if (!is_op(cause) || kept++ < most) return false;
    rest.a_ps += cause.a_ps, rest.b_ps += cause.b_ps;
    return true;
  });
  const auto last = std::find_if(causes.rbegin(), causes.rend(), is_op);
  causes.insert(last.base(), rest);
  return by_op;
}

std::string cause_name(const Cause& cause) { return is_op(cause) ? cause.op : meaning_name(cause.meaning); }

bool splits_compare(const StepSample& a, const StepSample& b) {
  return a.traced() && b.traced() && a.work.empty() == b.work.empty();
}

double driver_calls_per_step(const RunSummary& run) {
  const auto counted = run.extra.find("driver_calls_per_step");
  if (counted != run.extra.end()) return std::strtod(counted->second.c_str(), nullptr);
  return run.origin == "record" && run.steps > 0 ? run.allocator_calls_per_step
                                                 : std::numeric_limits<double>::quiet_NaN();
}

bool overhead_measured(const RunSummary& run) { return run.overhead_share != 0 || run.overhead_spread > 0; }

std::vector<KernelDelta> kernel_deltas(const StepSample& a, const StepSample& b) {
  std::map<std::string, KernelDelta> rows;
  for (const auto& [name, use] : a.work) rows[name].a_count = use.count, rows[name].a_us = use.us;
  for (const auto& [name, use] : b.work) rows[name].b_count = use.count, rows[name].b_us = use.us;
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
  const StepSample x = sample_of(a), y = sample_of(b);
  result.a_traced = traced(a), result.b_traced = traced(b);
  result.a_work = !x.work.empty(), result.b_work = !y.work.empty();
  result.split = result.a_traced && result.b_traced && result.a_work == result.b_work;
  result.metrics = metric_deltas(a, x, b, y);
  if (result.split) {
    result.steps = waterfall(x.parts, y.parts);
    result.by_op = waterfall_by_op(x, y);
    result.kernels = kernel_deltas(x, y);
  } else {
    result.warnings.push_back("No causes and no kernels: that takes two runs that were traced equally closely.");
  }
  if (traced(a) && traced(b) && (!x.traced() || !y.traced())) {
    result.warnings.push_back("A trace without step marks counts as one step.");
  }
  return result;
}

}  // namespace ws::prof
