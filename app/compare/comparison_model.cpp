#include "app/compare/comparison_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/executor.h"

namespace ws::app {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kNewestSteps = 2000;

std::vector<const prof::Span*> newest_steps(const prof::Trace& trace) {
  std::vector<const prof::Span*> steps;
  for (const prof::Track& track : trace.tracks()) {
    if (track.kind != prof::TrackKind::Steps) continue;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && steps.size() < kNewestSteps; ++block)
      for (auto span = block->spans.rbegin(); span != block->spans.rend() && steps.size() < kNewestSteps; ++span) steps.push_back(&*span);
    if (!steps.empty()) break;
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

// From one step's start to the next: gaps between steps belong to the step before.
std::vector<double> step_lengths(const std::vector<const prof::Span*>& steps) {
  std::vector<double> us;
  for (size_t i = 0; i + 1 < steps.size(); ++i) us.push_back(static_cast<double>(steps[i + 1]->start - steps[i]->start) * 1e-3);
  return us;
}

struct Sample {
  prof::Breakdown parts;
  std::vector<double> step_us;
  std::vector<const prof::Span*> steps;
};

Sample sample_of(const prof::Trace& trace) {
  Sample sample;
  sample.steps = newest_steps(trace);
  if (sample.steps.size() < 2) return sample;
  sample.parts = prof::breakdown(trace, sample.steps.front()->start, sample.steps.back()->start);
  sample.parts.steps = static_cast<int64_t>(sample.steps.size()) - 1;
  sample.step_us = step_lengths(sample.steps);
  return sample;
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return kUnknown;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

double kernels_per_step(const Sample& s, const Run& run) {
  if (s.steps.size() < 2) return kUnknown;
  uint64_t count = 0;
  for (const prof::KernelRow& row : prof::kernel_table(run.trace, s.parts.begin, s.parts.end)) count += row.time.count;
  return count ? static_cast<double>(count) / static_cast<double>(s.parts.steps) : kUnknown;
}

double busy_share(const Sample& s) {
  if (s.parts.wall() <= 0) return kUnknown;
  return 100.0 * static_cast<double>(s.parts.kernels() + s.parts.times[static_cast<size_t>(prof::Meaning::Copy)]) / static_cast<double>(s.parts.wall());
}

double calls_per_step(const Run& run) {
  if (!run.summary || run.summary->steps == 0) return run.meters.empty() ? kUnknown : run.meters.back().allocate + run.meters.back().free;
  return static_cast<double>(run.summary->calls.device_allocate + run.summary->calls.device_free) / static_cast<double>(run.summary->steps);
}

double peak_mib(const Run& run) {
  const int64_t bytes = run.summary ? run.summary->peak_bytes : run.progress ? run.progress->memory.peak : 0;
  return bytes > 0 ? static_cast<double>(bytes) / (1 << 20) : kUnknown;
}

double time_to(const Run& run, double accuracy) {
  for (const EvalPoint& p : run.evals)
    if (p.accuracy >= accuracy) return p.wall_s;
  return kUnknown;
}

enum class Better { Lower, Higher, Neither };

class Measures {
 public:
  explicit Measures(std::vector<MeasureRow>& rows) : rows_(rows) {}
  void group(const QString& name) { group_ = name; }
  void add(const QString& name, const QString& unit, double a, double b, Better better, int decimals, double noise = 0) {
    if (std::isnan(a) && std::isnan(b)) return;
    MeasureRow row{group_, name, unit, a, b, noise, decimals, Verdict::Neutral};
    const double delta = b - a;
    const double floor = std::max(noise, 0.5 * std::pow(10.0, -decimals));
    if (!std::isnan(delta) && std::abs(delta) <= floor) row.verdict = Verdict::WithinNoise;
    else if (!std::isnan(delta) && better != Better::Neither) row.verdict = (delta < 0) == (better == Better::Lower) ? Verdict::Better : Verdict::Worse;
    rows_.push_back(row);
  }

 private:
  std::vector<MeasureRow>& rows_;
  QString group_;
};

double step_us(const Run& run, const Sample& sample) {
  return sample.parts.steps > 0 ? static_cast<double>(sample.parts.wall()) * 1e-3 / static_cast<double>(sample.parts.steps) : run.usPerStep();
}

void add_measures(PairComparison& out, const Run& a, const Sample& sa, const Run& b, const Sample& sb) {
  Measures m(out.measures);
  m.group(QObject::tr("Time"));
  m.add(QObject::tr("step, mean"), "µs", step_us(a, sa), step_us(b, sb), Better::Lower, 1, out.half_width_us);
  m.add(QObject::tr("step, median"), "µs", percentile(sa.step_us, 0.5), percentile(sb.step_us, 0.5), Better::Lower, 1, out.half_width_us);
  m.add(QObject::tr("step, 99th percentile"), "µs", percentile(sa.step_us, 0.99), percentile(sb.step_us, 0.99), Better::Lower, 1, 3 * out.half_width_us);
  m.add(QObject::tr("training time"), "s", a.summary ? a.summary->wall_s : kUnknown, b.summary ? b.summary->wall_s : kUnknown, Better::Lower, 2);
  if (!a.evals.empty() && !b.evals.empty() && !a.regression()) {
    const double reached = 0.99 * std::min(a.bestEval()->accuracy, b.bestEval()->accuracy);
    m.add(QObject::tr("time to %1 % test accuracy").arg(100 * reached, 0, 'f', 1), "s", time_to(a, reached), time_to(b, reached), Better::Lower, 2);
  }
  m.group(QObject::tr("GPU and host"));
  m.add(QObject::tr("kernels a step"), "", kernels_per_step(sa, a), kernels_per_step(sb, b), Better::Lower, 1);
  m.add(QObject::tr("busy"), "%", busy_share(sa), busy_share(sb), Better::Higher, 1);
  m.add(QObject::tr("tracing costs"), "%", 100 * a.overhead_share, 100 * b.overhead_share, Better::Neither, 1);
  m.group(QObject::tr("Memory"));
  m.add(QObject::tr("driver calls a step"), "", calls_per_step(a), calls_per_step(b), Better::Lower, 1);
  m.add(QObject::tr("peak in a step"), "MiB", peak_mib(a), peak_mib(b), Better::Lower, 2);
  m.group(QObject::tr("Result"));
  m.add(QObject::tr("first loss"), "", a.steps.empty() ? kUnknown : static_cast<double>(a.steps.front().loss), b.steps.empty() ? kUnknown : static_cast<double>(b.steps.front().loss), Better::Lower, 4);
  if (!a.evals.empty() && !b.evals.empty()) {
    m.add(QObject::tr("test loss, last"), "", a.evals.back().loss, b.evals.back().loss, Better::Lower, 4);
    if (!a.regression()) m.add(QObject::tr("test accuracy, last"), "%", 100 * a.evals.back().accuracy, 100 * b.evals.back().accuracy, Better::Higher, 2, 0.2);
  }
}

void name_mismatches(QStringList& out, const Run& a, const Run& b) {
  if (!(a.spec.model == b.spec.model) && (a.spec.model.hidden != b.spec.model.hidden || a.spec.model.kind != b.spec.model.kind)) out << QObject::tr("the models differ: kernels are not like for like");
  if (a.spec.data.name != b.spec.data.name) out << QObject::tr("the data sets differ: losses are not comparable");
  if (a.spec.train.batch != b.spec.train.batch) out << QObject::tr("the batches differ: compare samples a second, not steps");
  if (a.device != b.device) out << QObject::tr("trained on different devices: %1 and %2").arg(a.device, b.device);
  if ((a.trace.span_count() == 0) != (b.trace.span_count() == 0)) out << QObject::tr("only one was traced: its step time contains the tracing");
  if (a.spec.exec.precision != b.spec.exec.precision) out << QObject::tr("precision differs: losses are close, not equal");
}

}  // namespace

StepWindowNs median_step(const prof::Trace& trace) {
  const auto steps = newest_steps(trace);
  if (steps.size() < 2) return {};
  const auto lengths = step_lengths(steps);
  const double middle = percentile(lengths, 0.5);
  const auto nearest = std::min_element(lengths.begin(), lengths.end(), [&](double x, double y) { return std::abs(x - middle) < std::abs(y - middle); });
  const auto i = static_cast<size_t>(nearest - lengths.begin());
  return {steps[i]->start, steps[i + 1]->start};
}

PairComparison compare_runs(const Run& baseline, const Run& candidate) {
  PairComparison out;
  const Sample a = sample_of(baseline.trace), b = sample_of(candidate.trace);
  out.traced = a.parts.steps > 0 && b.parts.steps > 0;
  out.baseline_us = step_us(baseline, a);
  out.candidate_us = step_us(candidate, b);
  const double ha = prof::estimate(a.step_us).half_width, hb = prof::estimate(b.step_us).half_width;
  out.half_width_us = out.traced ? std::hypot(ha, hb) : 0;
  out.beyond_noise = std::abs(out.candidate_us - out.baseline_us) > out.half_width_us && out.candidate_us != out.baseline_us;
  if (out.traced) {
    out.waterfall = prof::waterfall(a.parts, b.parts);
    out.kernels = prof::kernel_deltas(baseline.trace, a.parts.steps, candidate.trace, b.parts.steps);
    out.baseline_step = median_step(baseline.trace);
    out.candidate_step = median_step(candidate.trace);
  }
  out.choices = diff(baseline.spec, candidate.spec);
  name_mismatches(out.warnings, baseline, candidate);
  add_measures(out, baseline, a, candidate, b);
  return out;
}

prof::Breakdown newest_breakdown(const prof::Trace& trace) { return sample_of(trace).parts; }

QString verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::Better: return QObject::tr("better");
    case Verdict::Worse: return QObject::tr("worse");
    case Verdict::WithinNoise: return QObject::tr("within noise");
    case Verdict::Neutral: return {};
  }
  return {};
}

}  // namespace ws::app
