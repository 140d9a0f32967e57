// What a report takes from a run file, or from another program's trace.
#include <algorithm>
#include <cmath>

#include "app/core/report/report.h"
#include "app/core/comparison/compared_step.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/convert.h"

namespace ws::app {
namespace {

// As the window samples it: the newest steps, where the GPU ran them when the host runs ahead.
void take_steps(const prof::Trace& trace, const std::vector<prof::Evaluation>& evaluations, ReportRun& run) {
  prof::GpuSteps steps;
  if (!run.imported && !run.spec.empty() && host_runs_ahead(run.spec[0])) steps.finish(trace);
  const prof::Trace& marks = steps.empty() ? trace : steps.trace();
  run.sample = prof::sample_steps(marks, trace, prof::steps_per_epoch(evaluations));
  run.step = step_picture(marks, trace, run.sample);
  const int64_t batch = run.spec.empty() ? 0 : run.spec[0].train.batch;
  take_speed(run, run.whole_us_per_step, static_cast<double>(std::max<int64_t>(0, batch)));
  run.losses = lost_records(trace.losses);
  run.traced = traced_as(trace.span_count() > 0, !run.sample.work.empty());
}

void take_curves(const std::vector<prof::Metric>& metrics, const std::vector<prof::Evaluation>& evaluations,
                 ReportRun& run) {
  for (const prof::Metric& m : metrics) run.loss.push_back({static_cast<double>(m.step), m.wall_s, m.loss});
  for (const prof::Evaluation& e : evaluations)
    run.accuracy.push_back({static_cast<double>(e.step), e.wall_s, 100 * e.test_accuracy});
  std::erase_if(run.accuracy, [](const ReportRun::Point& p) { return std::isnan(p.value); });
  const auto pace = [](const prof::Metric& m) { return prof::Pace{static_cast<double>(m.step), m.wall_s}; };
  run.half_width_us = run.sample.traced() ? interval_of_blocks(run.sample.step_us).half_width
                                          : mean_with_interval(prof::pace_stretches_us(metrics, pace)).half_width;
}

ReportRun run_of(const prof::RunSummary& s, const std::string& path) {
  ReportRun run;
  run.title = s.name.empty() ? path : s.name;
  run.device = s.device;
  run.created = s.created;
  run.status = s.status;
  if (auto spec = spec_of(s)) run.spec.push_back(std::move(*spec));
  run.imported = s.origin != "run";
  run.whole_us_per_step = s.us_per_step;
  run.wall_s = s.wall_s;
  run.steps = s.steps;
  run.peak_bytes = static_cast<double>(s.peak_bytes);
  run.allocator_calls_per_step = prof::driver_calls_per_step(s);
  run.overhead_share = prof::overhead_measured(s) ? s.overhead_share : std::nan("");
  run.overhead_spread = s.overhead_spread;
  return run;
}

// What another program wrote is in memory as a whole.
ReportRun run_of_import(const std::string& path) {
  const prof::RunData data = prof::import_run(path);
  ReportRun run = run_of(data.summary, path);
  take_steps(data.trace, data.evaluations, run);
  take_curves(data.metrics, data.evaluations, run);
  return run;
}

}  // namespace

ReportRun report_run_of_file(const std::string& path) {
  if (!path.ends_with(".wsrun")) return run_of_import(path);
  prof::RunFileReader reader(path);
  ReportRun run = run_of(reader.summary(), path);
  const prof::Trace trace = newest_trace(reader);
  take_steps(trace, reader.evaluations(), run);
  take_curves(reader.metrics(), reader.evaluations(), run);
  return run;
}

std::string lost_records(const prof::Losses& losses) {
  const std::string wrong = prof::losses_text(losses);
  if (losses.dropped_records == 0) return wrong;
  return std::to_string(losses.dropped_records) + " dropped" + (wrong.empty() ? "" : ", " + wrong);
}

}  // namespace ws::app
