#include "app/workspace/comparison_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/core/comparison/mismatches.h"
#include "app/core/runs/data_shape.h"
#include "app/core/comparison/compared_step.h"
#include "engine/executor/executor.h"
#include "profiling/analysis/activity.h"

namespace ws::app {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

bool has_choices(const Run& run) { return run.origin != RunOrigin::Imported || !run.spec.name.empty(); }

// So many rows of a test set say no more of an accuracy; both are shares.
double accuracy_half_width(const Run& run, double accuracy) {
  const auto rows = static_cast<double>(data_shape(run.spec.data).test);
  if (rows <= 0) return 0;
  const double share = std::clamp(accuracy, 0.0, 1.0);
  return 1.96 * std::sqrt((share * (1 - share) + 0.96 / rows) / rows);
}

double busy_share(const RunSample& s) {
  if (!s.traced() || s.parts.wall() <= 0) return kUnknown;
  return 100.0 * static_cast<double>(s.parts.kernels() + s.parts.times[static_cast<size_t>(prof::Meaning::Copy)]) /
         static_cast<double>(s.parts.wall());
}

struct Reached {
  double seconds = kUnknown, half_width = 0;
};

// When the first evaluation had it. Another one may have, as far as its rows can tell: so far the time is not known.
Reached time_to(const Run& run, double accuracy, bool rows_known) {
  Reached at;
  double early = kUnknown, late = kUnknown;
  for (const EvalPoint& p : run.evals) {
    const double noise = rows_known ? accuracy_half_width(run, p.accuracy) : 0;
    if (std::isnan(early) && p.accuracy + noise >= accuracy) early = p.wall_s;
    if (std::isnan(at.seconds) && p.accuracy >= accuracy) at.seconds = p.wall_s;
    if (std::isnan(late) && p.accuracy - noise >= accuracy) late = p.wall_s;
  }
  if (std::isnan(at.seconds)) return at;
  if (std::isnan(late)) late = run.evals.back().wall_s;
  at.half_width = std::max(at.seconds - early, late - at.seconds);
  return at;
}

double step_us(const Run& run, const RunSample& sample) {
  const double us = compared_step_us(sample, run.usPerStep());
  return us > 0 ? us : kUnknown;
}

class Measures {
 public:
  void group(const QString& name) { group_ = name; }
  void add(const QString& name, const QString& unit, double value, Better better, int decimals, double noise = 0) {
    rows.push_back({group_, name, unit, value, std::isfinite(noise) ? noise : 0, better, decimals});
  }
  std::vector<MeasureValue> rows;

 private:
  QString group_;
};

void add_times(Measures& m, const Run& run, const RunSample& s, double reached) {
  const double us = step_us(run, s), noise = step_half_width(run, s), samples = rows_of_a_step(run) * 1e6 / us;
  m.group(QObject::tr("Time"));
  m.add(QObject::tr("step, mean"), "µs", us, Better::Lower, 1, noise);
  m.add(QObject::tr("step, median"), "µs", percentile(s.step_us, 0.5), Better::Lower, 1, percentile_of_blocks(s.step_us, 0.5).half_width);
  m.add(QObject::tr("step, 99th percentile"), "µs", percentile(s.step_us, 0.99), Better::Lower, 1,
        percentile_of_blocks(s.step_us, 0.99).half_width);
  // As far as a step that takes so much longer brings it down: where noise is large, up is further than down.
  m.add(QObject::tr("throughput"), QObject::tr("samples/s"), samples, Better::Higher, 0,
        samples * noise / (us + noise));
  const double wall = run.summary ? run.summary->wall_s : kUnknown;
  m.add(QObject::tr("training time"), "s", wall, Better::Neither, 2, wall * noise / us);  // of more steps it is longer
  if (reached <= 0) return;
  const Reached at = time_to(run, reached, has_choices(run));
  m.add(QObject::tr("time to %1 % accuracy").arg(100 * reached, 0, 'f', 1), "s", at.seconds, Better::Lower, 2,
        std::hypot(at.half_width, at.seconds * noise / us));
}

// Of the newest long row of steps: how late work starts, and how much copying hides behind computing.
void add_gpu(Measures& m, const Run& run, const RunSample& s) {
  double delay = kUnknown, hidden = kUnknown;
  if (s.traced() && s.row.end > s.row.begin) {
    const prof::DurationStats late = prof::launch_delay(run.trace, s.row.begin, s.row.end);
    const prof::Activity activity = prof::activity(run.trace, s.row.begin, s.row.end);
    if (late.count > 0) delay = static_cast<double>(late.median) * 1e-3;
    if (activity.copies > 0 && activity.kernels > 0) hidden = 100 * activity.hidden_copies();
  }
  m.add(QObject::tr("launch delay, median"), "µs", delay, Better::Neither, 2);  // a host far ahead is no harm
  m.add(QObject::tr("copies beside kernels"), "%", hidden, Better::Higher, 1);
}

}  // namespace

double rows_of_a_step(const Run& run) {
  if (!has_choices(run)) return kUnknown;  // its batch is not the one that a run has here
  if (run.spec.train.batch > 0) return static_cast<double>(run.spec.train.batch);
  const double us = run.usPerStep();  // the whole set: known from what the run itself counted
  return run.summary && us > 0 ? run.summary->samples_per_s * us * 1e-6 : kUnknown;
}

// From the steps that were traced; of a run without them from when its losses came in.
double step_half_width(const Run& run, const RunSample& sample) {
  if (sample.traced()) return interval_of_blocks(sample.step_us).half_width;
  const auto pace = [](const StepPoint& p) { return prof::Pace{p.step, p.wall_s}; };
  return mean_with_interval(prof::pace_stretches_us(run.steps, pace)).half_width;
}

double driver_calls(const Run& run) {
  if (run.origin == RunOrigin::Imported && (!run.summary || run.summary->calls.device_allocate == 0)) return kUnknown;
  if (!run.summary || run.summary->steps == 0)
    return run.meters.empty() ? kUnknown : run.meters.back().allocate + run.meters.back().free;
  return static_cast<double>(run.summary->calls.device_allocate + run.summary->calls.device_free) /
         static_cast<double>(run.summary->steps);
}

double peak_bytes(const Run& run) {
  const int64_t bytes = run.summary ? run.summary->peak_bytes : run.progress ? run.progress->memory.peak : 0;
  return bytes > 0 ? static_cast<double>(bytes) : kUnknown;
}

std::vector<MeasureValue> measures_of(const Run& run, const RunSample& s, double reached) {
  Measures m;
  add_times(m, run, s, reached);
  m.group(QObject::tr("GPU and host"));
  m.add(QObject::tr("kernels a step"), "", s.traced() ? s.kernels_per_step : kUnknown, Better::Lower, 1);
  const double busy = busy_share(s);
  m.add(QObject::tr("busy"), "%", busy, Better::Higher, 1, busy * interval_of_blocks(s.step_us).half_width / step_us(run, s));
  add_gpu(m, run, s);
  // Less than nothing is noise.
  m.add(QObject::tr("tracing costs"), "%", run.overheadMeasured() ? 100 * std::max(run.overhead_share, 0.0) : kUnknown,
        Better::Neither, 1, 50 * run.overhead_spread);
  m.group(QObject::tr("Memory"));
  m.add(QObject::tr("driver calls a step"), "", driver_calls(run), Better::Lower, 1);
  m.add(QObject::tr("peak in a step"), "KiB", peak_bytes(run) / 1024, Better::Lower, 1);
  m.group(QObject::tr("Result"));
  m.add(QObject::tr("first loss"), "", run.steps.empty() ? kUnknown : static_cast<double>(run.steps.front().loss),
        Better::Lower, 4);
  m.add(QObject::tr("test loss, last"), "", run.evals.empty() ? kUnknown : run.evals.back().loss, Better::Lower, 4);
  m.add(QObject::tr("test accuracy, last"), "%",
        run.evals.empty() || run.regression() ? kUnknown : 100 * run.evals.back().accuracy, Better::Higher, 2,
        has_choices(run) && !run.evals.empty() ? 100 * accuracy_half_width(run, run.evals.back().accuracy) : 0);
  return std::move(m.rows);
}

void share_units(std::vector<std::vector<MeasureValue>>& runs) {
  constexpr double kLarge = 1024;
  for (size_t row = 0; !runs.empty() && row < runs.front().size(); ++row) {
    if (runs.front()[row].unit != "KiB") continue;
    if (std::ranges::none_of(runs, [row](const auto& run) { return run[row].value >= kLarge; })) continue;
    for (auto& run : runs) run[row].unit = "MiB", run[row].value /= 1024, run[row].decimals = 2;
  }
}

double shared_accuracy(const std::vector<const Run*>& runs) {
  double least = 1;
  for (const Run* run : runs) {
    const EvalPoint* best = run->regression() ? nullptr : run->bestEval();
    if (!best || !std::isfinite(best->accuracy)) return 0;
    least = std::min(least, best->accuracy);
  }
  return runs.empty() ? 0 : 0.99 * least;
}

MeasureDelta delta_of(const MeasureValue& a, const MeasureValue& b) {
  MeasureDelta d;
  d.delta = b.value - a.value;
  d.noise = std::hypot(a.half_width, b.half_width);
  d.relative = a.value != 0 && a.unit != "%" ? 100 * d.delta / a.value : kUnknown;  // no percent of a percentage
  const double floor = std::max(d.noise, 0.5 * std::pow(10.0, -a.decimals));
  if (std::isnan(d.delta)) return d;
  constexpr double kNothing = 0.05;  // percent, which is written as none
  if (std::abs(d.delta) <= floor || std::abs(d.relative) < kNothing)
    d.verdict = Verdict::WithinNoise;
  else if (a.better != Better::Neither)
    d.verdict = (d.delta < 0) == (a.better == Better::Lower) ? Verdict::Better : Verdict::Worse;
  return d;
}

namespace {

ComparedRun compared(const Run& run, const RunSample& sample) {
  return {has_choices(run) ? &run.spec : nullptr, run.device.toStdString(), run.summary ? run.summary->steps : 0,
          traced_as(run.trace.span_count() > 0, !sample.work.empty()), run.origin == RunOrigin::Imported};
}

}  // namespace

PairComparison compare_runs(const Run& baseline, const RunSample& a, const Run& candidate, const RunSample& b) {
  PairComparison out;
  out.traced = prof::splits_compare(a, b);
  out.baseline_us = step_us(baseline, a);
  out.candidate_us = step_us(candidate, b);
  out.half_width_us = std::hypot(step_half_width(baseline, a), step_half_width(candidate, b));
  const double delta = out.candidate_us - out.baseline_us;
  out.beyond_noise = std::abs(delta) > out.half_width_us;
  if (out.traced) {
    out.waterfall = prof::waterfall(a.parts, b.parts);
    out.by_op = prof::waterfall_by_op(a, b);
    out.kernels = prof::kernel_deltas(a, b);
  }
  out.choices_known = has_choices(baseline) && has_choices(candidate);
  if (out.choices_known) out.choices = diff(baseline.spec, candidate.spec);
  for (const std::string& sentence : mismatches(compared(baseline, a), compared(candidate, b)))
    out.warnings << QString::fromStdString(sentence);
  return out;
}

PairComparison compare_runs(const Run& baseline, const Run& candidate) {
  return compare_runs(baseline, sample_of(baseline), candidate, sample_of(candidate));
}

std::vector<ChoiceRow> differing_choices(const std::vector<const Run*>& runs) {
  std::vector<ChoiceRow> rows;
  for (const Field& f : fields()) {
    ChoiceRow row{std::string(f.key), {}};
    std::set<std::string> different;
    for (const Run* run : runs) {
      row.values.push_back(has_choices(*run) ? field_text(run->spec, f.key) : "–");
      if (has_choices(*run)) different.insert(row.values.back());
    }
    if (different.size() > 1) rows.push_back(std::move(row));
  }
  return rows;
}

QString verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::Better:
      return QObject::tr("better");
    case Verdict::Worse:
      return QObject::tr("worse");
    case Verdict::WithinNoise:
      return QObject::tr("within noise");
    case Verdict::Neutral:
      return {};
  }
  return {};
}

QString verdict_mark(Verdict verdict) {
  return verdict == Verdict::Better        ? QStringLiteral("✓ ")
         : verdict == Verdict::Worse       ? QStringLiteral("▲ ")
         : verdict == Verdict::WithinNoise ? QStringLiteral("◌ ")
                                           : QString();
}

}  // namespace ws::app
