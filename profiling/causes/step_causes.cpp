#include "profiling/causes/step_causes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/failure.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

constexpr int64_t kGapOfOwnGraphs = -300;  // ns from the end of a kernel to the next one, against kernels that were launched one by one; H200
constexpr int64_t kGapOfOwnFused = 0;      // their kernels are launched to begin early; ten pairs of recordings on an H200 have 0.1 µs and less
constexpr int kEventCallsOfOwnLoader = 5;  // two records and three waits: it has two blocks of pinned memory in turn

std::vector<Span> steps_in(const Trace& trace, TimeRange window) {
  std::vector<Span> steps;
  if (const Track* track = first_track(trace, TrackKind::Steps))
    each_span(*track, window.begin, window.end, [&](const Span& step) {
      if (window.contains(step.start)) steps.push_back(step);
    });
  return steps;
}

std::vector<TimeNs> marks_in(const Trace& trace, TimeRange window) {
  std::vector<TimeNs> marks;
  for (const Span& step : steps_in(trace, window)) marks.push_back(step.start);
  return marks;
}

StepRange range_of(const std::vector<Span>& steps, int64_t stride) {
  StepRange range{.count = std::ssize(steps) * stride};
  if (!steps.empty() && steps.front().step > 0) range.first = int64_t{steps.front().step} - 1, range.last = int64_t{steps.back().step} - 1 + stride - 1;
  return range;
}

size_t spans_in(const Trace& trace, TimeRange window) {
  size_t spans = 0;
  for (const Track& track : trace.tracks())
    if (track.kind != TrackKind::Inner) spans += spans_about(track, window.begin, window.end);
  return spans;
}

// The newest part of a trace without steps, with about so many spans.
TimeRange newest_part(const Trace& trace, TimeRange window, size_t most_spans) {
  const size_t spans = spans_in(trace, window);
  if (spans <= most_spans) return window;
  return {window.end - static_cast<TimeNs>(static_cast<double>(window.length()) * static_cast<double>(most_spans) / static_cast<double>(spans)), window.end};
}

// The newest steps of the window with at most so many spans, and four steps at least.
TimeRange fewer_steps(const Trace& trace, TimeRange window, const std::vector<TimeNs>& marks, size_t most_spans) {
  constexpr size_t kFewest = 4;
  const size_t spans = spans_in(trace, window);
  if (spans <= most_spans || marks.size() <= kFewest) return window;
  const size_t steps = std::max(kFewest, marks.size() * most_spans / spans);
  return {marks[marks.size() - std::min(steps, marks.size())], window.end};
}

bool fuses(const std::string& spec) {
  const nlohmann::json choices = nlohmann::json::parse(spec, nullptr, false);
  const nlohmann::json::json_pointer fusion("/exec/fusion");
  return choices.contains(fusion) && choices.at(fusion) != "off";
}

}  // namespace

int64_t usual_gap_ns(const StepCausesFacts& facts) { return facts.own_training && facts.fused ? kGapOfOwnFused : kUsualGap; }

StepCauses step_causes(const Trace& trace, const StepCausesFacts& facts) {
  const StepsOfRun steps = StepsOfRun::of(trace, {.per_epoch = facts.steps_per_epoch, .since = facts.since});
  const Trace& marks = steps.marks();
  const StepSample sample = steps.sample();
  StepCauses causes;
  TimeRange window{sample.row.begin, sample.row.end};
  causes.whole_trace = window.length() <= 0;
  if (causes.whole_trace) window = newest_part(trace, {trace.first_time(), trace.last_time() + 1}, facts.most_spans);
  else window = fewer_steps(trace, window, marks_in(marks, window), facts.most_spans);
  causes.graph = cause_graph(trace, window, usual_gap_ns(facts));
  if (causes.graph.nodes.empty()) throw Failure(kNothingToReplay);
  causes.marks = marks_in(trace, window);
  if (!causes.whole_trace) {
    causes.cuts = marks_in(marks, window);
    causes.steps = static_cast<double>(causes.cuts.size()) * static_cast<double>(sample.stride);
    causes.which = range_of(steps_in(marks, window), sample.stride);
    causes.cuts.push_back(window.end);
  }
  causes.step_us = facts.step_us;
  if (facts.own_training) causes.graph_gap_ns = kGapOfOwnGraphs, causes.pinned_copy_calls = kEventCallsOfOwnLoader;
  if (!(causes.step_us.value > 0)) causes.step_us = {static_cast<double>(window.length()) * 1e-3 / causes.steps, 0};
  return causes;
}

StepCauses step_causes(const RunData& run) {
  StepCausesFacts facts{.steps_per_epoch = run.summary.steps_per_epoch, .since = steady_since(run.marks), .own_training = !run.summary.spec.empty(), .step_us = run.summary.step_time.us};
  facts.fused = fuses(run.summary.spec);
  if (facts.step_us.value > 0) return step_causes(run.trace, facts);
  const StepsOfRun steps = StepsOfRun::of(run.trace, {.per_epoch = facts.steps_per_epoch, .since = facts.since});
  facts.step_us = step_time(run, steps.sample({.lengths_only = true})).us;
  return step_causes(run.trace, facts);
}

}  // namespace ws::prof
