#include "app/workspace/compared_live_run.h"

namespace ws::app {
namespace {

constexpr double kUnknown = ComparedRun::kUnknown;

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

// The marks that the window keeps are those of a run of ours; where another program's steps ran is found here.
template <class Take>
void with_marks(const Run& run, Take take) {
  if (run.origin != RunOrigin::Imported || run.hasGpuSteps()) return take(run.marks());
  const prof::GpuSteps on_gpu = steps_on_gpu(run.trace, nullptr);
  take(on_gpu.empty() ? run.trace : on_gpu.trace());
}

void take_results(ComparedRun& out, const Run& run) {
  if (run.overheadMeasured()) out.overhead_share = run.overhead_share, out.overhead_spread = run.overhead_spread;
  if (!run.steps.empty()) out.first_loss = static_cast<double>(run.steps.front().loss);
  for (const EvalPoint& e : run.evals)
    out.evaluations.push_back({static_cast<int64_t>(e.step), e.epoch, e.wall_s, e.loss, e.accuracy});
}

}  // namespace

bool has_choices(const Run& run) { return run.origin != RunOrigin::Imported || !run.spec.name.empty(); }

prof::StepSample sample_of(const Run& run) {
  prof::StepSample sample;
  with_marks(run, [&](const prof::Trace& marks) {
    sample = prof::sample_steps(marks, run.trace, run.stepsPerEpoch());
  });
  return sample;
}

ComparedRun compared_run(const Run& run) {
  ComparedRun out;
  out.name = run.title.toStdString(), out.device = run.device.toStdString();
  if (has_choices(run)) out.spec = run.spec;
  out.imported = run.origin == RunOrigin::Imported;
  out.steps = run.summary ? run.summary->steps : 0;
  if (run.summary && run.summary->wall_s > 0) out.wall_s = run.summary->wall_s;
  out.whole_run_us = run.usPerStep();
  out.driver_calls = driver_calls(run);
  out.peak_bytes = peak_bytes(run);
  take_results(out, run);
  with_marks(run, [&](const prof::Trace& marks) { take_trace(out, marks, run.trace, run.stepsPerEpoch()); });
  const auto pace = [](const StepPoint& p) { return prof::Pace{p.step, p.wall_s}; };
  out.time = prof::step_time(out.sample, run.steps, pace, out.whole_run_us);
  return out;
}

}  // namespace ws::app
