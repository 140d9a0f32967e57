// An ended run of known steps, without training one.
#pragma once
#include <memory>

#include "app/workspace/compared_live_run.h"
#include "profiling/analysis/steps_of_run.h"
#include "engine/passes/compile.h"
#include "engine/plan/model.h"
#include "tests/support/synthetic_trace.h"

namespace ws::test {

using app::Run;

inline constexpr int64_t kSteps = 400;

// Computes the figures of a run as its end does.
inline void measure_steps(Run& run) {
  prof::PaceLog losses;
  for (const app::StepPoint& p : run.steps) losses.add({p.step, p.wall_s});
  run.step_time = prof::step_time(app::sample_of(run), losses.seen(), run.meanUs());
}

inline std::unique_ptr<Run> made(const QString& title, StepStyle style, int slot, int64_t steps = kSteps) {
  auto run = std::make_unique<Run>();
  run->title = title;
  run->slot = slot;
  run->device = "NVIDIA H200";
  run->spec.exec.allocator = style == StepStyle::GraphArena ? Allocator::Arena : Allocator::Direct;
  add_steps(run->trace, style, 0, steps);
  Summary summary;
  summary.steps = steps;
  summary.wall_s = 1 + slot;
  summary.us_per_step = 100;
  summary.peak_bytes = (slot + 1) << 20;
  summary.calls.device_allocate = steps * slot;
  summary.spec = run->spec;
  run->summary = summary;
  for (int64_t i = 0; i < steps; ++i)
    run->steps.push_back({double(i), double(i) * 1e-4, 0, float(2.3 / (1 + 0.01 * double(i))), 0.5F});
  run->evals.push_back({double(steps), 0.5, 1, 0.3, 0.9});
  run->evals.push_back({double(steps), 1.0, 2, 0.2, 0.96});
  measure_steps(*run);
  return run;
}

// A run of a hundred steps of which only the trace is known.
inline std::unique_ptr<Run> traced(StepStyle style) {
  auto run = std::make_unique<Run>();
  run->id = "r", run->title = "a run", run->slot = 0, run->summary = Summary{}, run->device = "NVIDIA H200";
  add_steps(run->trace, style, 0, 100);
  measure_steps(*run);
  return run;
}

inline RunSpec iris_spec() {
  RunSpec spec;
  spec.data.name = "iris", spec.model.hidden = {16}, spec.train.batch = 30, spec.exec.device = Device::Cpu;
  return spec;
}

// A run of that network, with its plan.
inline std::unique_ptr<Run> planned(Allocator allocator, Fusion fusion) {
  auto run = traced(StepStyle::GraphArena);
  run->spec = iris_spec();
  run->spec.exec.allocator = allocator, run->spec.exec.fusion = fusion;
  run->plan = compile(run->spec, make_model(run->spec.model, 4, 3), 30);
  return run;
}

}  // namespace ws::test
