#include "app/workspace/compared_live_run.h"

#include "app/workspace/rank_count.h"
#include "profiling/analysis/memory_history.h"

namespace ws::app {
namespace {

// The window keeps the marks of our runs. The GPU steps of another program are computed here.
prof::StepsOfRun steps_of(const Run& run) {
  const prof::StepFacts facts{.per_epoch = run.stepsPerEpoch(), .since = run.steadySince(), .clock_error = clock_error(run), .run_steps = run.summary ? run.summary->steps : 0};
  const bool known = run.origin != RunOrigin::Imported || run.hasGpuSteps();
  return known ? prof::StepsOfRun(run.marks(), run.trace, facts) : prof::StepsOfRun::of(run.trace, facts);
}

void take_results(ComparedRun& out, const Run& run) {
  out.tracing_cost = run.tracing_cost;
  if (!run.steps.empty()) out.first_loss = static_cast<double>(run.steps.front().loss);
  for (const EvalPoint& e : run.evals)
    out.evaluations.push_back({static_cast<int64_t>(e.step), e.epoch, e.wall_s, e.loss, e.accuracy});
}

}  // namespace

std::string program_of(const Run& run) {
  std::vector<std::string> words;
  for (const QString& word : run.command) words.push_back(word.toStdString());
  return program_of(words);
}

prof::StepSample sample_of(const Run& run) {
  prof::StepSample sample = steps_of(run).sample();
  prof::scale_median(sample, run.step_time.us.value);
  return sample;
}

prof::StepCausesFacts causes_facts(const Run& run) {
  constexpr size_t kMostSpans = 100'000;
  return {.steps_per_epoch = run.stepsPerEpoch(), .since = run.steadySince(), .own_training = run.hasChoices(), .fused = run.hasChoices() && run.spec.exec.fusion != Fusion::Off, .step_us = run.step_time.us, .most_spans = kMostSpans};
}

prof::StepCauses causes_of(const Run& run) { return prof::step_causes(run.trace, causes_facts(run)); }

ComparedRun compared_run(const Run& run) {
  ComparedRun out;
  out.name = run.title.toStdString(), out.device = run.device.toStdString();
  if (run.hasChoices()) out.spec = run.spec;
  out.imported = run.origin == RunOrigin::Imported;
  out.program = program_of(run);
  out.python_level = run.record_level.toStdString();
  out.steps = run.summary ? run.summary->steps : 0;
  if (run.summary && run.summary->wall_s > 0) out.wall_s = run.summary->wall_s;
  out.whole_run_us = run.meanUs();
  out.driver_calls = run.driverCalls();
  out.peak_bytes = run.peakBytes();
  if (const uint64_t live = out.peak_bytes > 0 ? 0 : prof::peak_live(run.trace); live > 0) out.peak_bytes = static_cast<double>(live);
  take_results(out, run);
  take_trace(out, steps_of(run));
  out.stalls = prof::stalls_of_run(run.trace);
  out.time = out.one_step ? prof::step_time(out.sample, {}, 0, run.stepsOf()) : run.step_time;
  prof::scale_median(out.sample, out.time.us.value);
  return out;
}

}  // namespace ws::app
