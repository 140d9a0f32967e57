#include "profiling/causes/step_causes.h"

#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/analysis/step_time.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/failure.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

std::vector<TimeNs> marks_in(const Trace& trace, TimeRange window) {
  std::vector<TimeNs> marks;
  if (const Track* track = first_track(trace, TrackKind::Steps))
    each_span(*track, window.begin, window.end, [&](const Span& step) {
      if (window.contains(step.start)) marks.push_back(step.start);
    });
  return marks;
}

}  // namespace

StepCauses step_causes(const RunData& run) {
  const Trace& trace = run.trace;
  GpuSteps gpu;
  const bool ahead = host_ran_ahead(trace);
  if (ahead) gpu.finish(trace);
  const Trace& marks = ahead ? gpu.trace() : trace;
  const StepSample sample = sample_steps(marks, trace, run.summary.steps_per_epoch, {.since = steady_since(run.marks)});
  StepCauses causes;
  TimeRange window{sample.row.begin, sample.row.end};
  causes.whole_trace = window.length() <= 0;
  if (causes.whole_trace) window = {trace.first_time(), trace.last_time() + 1};
  causes.graph = cause_graph(trace, window);
  if (causes.graph.nodes.empty())
    throw Failure("The run has no calls, kernels or ops to replay. Record it with --trace kernels or full.");
  causes.marks = marks_in(trace, window);
  if (!causes.whole_trace) {
    causes.cuts = marks_in(marks, window);
    causes.steps = static_cast<double>(causes.cuts.size()) * static_cast<double>(sample.stride);
    causes.cuts.push_back(window.end);
  }
  causes.step_us = step_time(run, sample).us;
  if (!(causes.step_us.value > 0)) causes.step_us = {static_cast<double>(window.length()) * 1e-3 / causes.steps, 0};
  return causes;
}

}  // namespace ws::prof
