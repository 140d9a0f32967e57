#include "profiling/analysis/step_time.h"

#include <string_view>

namespace ws::prof {
namespace {

StepTime of_samples(const std::vector<double>& us, double half_width, StepsOf whose) {
  StepTime time{{median(us), half_width}, percentile(us, 0.05), percentile(us, 0.95)};
  // Other programs come and go between two runs. The interval within one run does not include this.
  if (whose == StepsOf::Training && varies_widely(time))
    time.us.half_width = std::max(half_width, (time.p95_us - time.p5_us) / 2);
  return time;
}

StepTime without_spread(double us) {
  StepTime time;
  if (us > 0) time.us.value = us;
  return time;
}

}  // namespace

StepTime step_time(const StepSample& sample, const std::vector<Pace>& losses, double whole_run_us, StepsOf whose) {
  const bool sampled = !sample.step_us.empty() || sample.traced();
  if (!sampled || sample.marks_only) {
    const std::vector<double> us = pace_stretches_us(losses);
    if (!us.empty()) return of_samples(us, mean_with_interval(us).half_width, whose);  // each stretch is a block of steps
    if (!sampled || whole_run_us > 0) return without_spread(whole_run_us);
  }
  if (!sample.step_us.empty()) return of_samples(sample.step_us, percentile_of_blocks(sample.step_us, 0.5).half_width, whose);
  return without_spread(sample.mean_step_us());  // a trace without step marks
}

StepTime step_time(const RunData& run, const StepSample& sample) {
  const StepsOf whose = run.summary.origin == "run" ? StepsOf::Training : StepsOf::Program;
  if (run.summary.step_time.known()) {
    StepTime stored = run.summary.step_time;  // of an earlier version, the interval may be the whole spread
    if (whose == StepsOf::Program && varies_widely(stored) && !sample.step_us.empty())
      stored.us.half_width = percentile_of_blocks(sample.step_us, 0.5).half_width;
    return stored;
  }
  PaceLog losses;
  const int64_t since = steady_since(run.marks);
  for (const Metric& m : run.metrics)
    if (m.step >= since) losses.add({static_cast<double>(m.step), m.wall_s});
  return step_time(sample, losses.seen(), run.summary.us_per_step, whose);
}

StepTime step_time(const FoundSteps& found, bool gpu) {
  if (gpu && !found.kernels) return {};
  Trace trace;
  const NameId none = trace.intern("");
  trace.append(trace.track(TrackKind::Steps, "steps", "CPU"), found.spans(none));
  for (const FoundStep& stretch : found.untraced) {
    Span span;
    span.start = stretch.start, span.duration = static_cast<uint64_t>(stretch.end - stretch.start), span.name = none;
    trace.append(trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), span);
  }
  StepSample sample = sample_steps(trace, trace, 0, {.lengths_only = true});
  sample.marks_only = false;
  return step_time(sample, {}, found.us_each, StepsOf::Program);
}

bool varies_widely(const StepTime& time) {
  constexpr double kWide = 0.5;  // share of the median; on a quiet machine p5 to p95 differ by a few per cent
  return time.has_spread() && time.p95_us - time.p5_us > kWide * time.us.value;
}

int64_t steady_since(const std::vector<ChangeMark>& marks) {
  constexpr std::string_view kExecution = "exec.";  // prefix of the names of execution settings
  int64_t since = 0;
  for (const ChangeMark& mark : marks)
    if (mark.text.starts_with(kExecution)) since = std::max(since, mark.step);
  return since;
}

}  // namespace ws::prof
