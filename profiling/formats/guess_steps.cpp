#include "profiling/formats/guess_steps.h"

#include <algorithm>
#include <limits>

#include "profiling/analysis/step_finder.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

namespace {

using SpansOfRows = std::map<TraceBuilder::Row, std::vector<Span>>;

// Host ranges whose names `wanted` accepts, in order of time.
template <class Wanted>
std::vector<Span> ranges(const Trace& trace, const SpansOfRows& rows, Wanted wanted) {
  std::vector<Span> found;
  for (const auto& [row, spans] : rows) {
    if (broad_kind(row.kind) != TrackKind::Phases || row.group != "CPU") continue;
    std::ranges::copy_if(spans, std::back_inserter(found), [&](const Span& s) { return wanted(trace.name(s.name)); });
  }
  order_by_start(found);
  return found;
}

std::vector<FoundStep> by_name(const Trace& trace, const SpansOfRows& rows) {
  std::vector<FoundStep> found;
  for (const Span& range : ranges(trace, rows, names_a_step)) found.push_back({range.start, range.end()});
  return steps_of_ranges(std::move(found));
}

TimeNs first_on_host(const SpansOfRows& rows) {
  TimeNs first = std::numeric_limits<TimeNs>::max();
  for (const auto& [row, spans] : rows) {
    if (row.kind != TrackKind::CpuThread && broad_kind(row.kind) != TrackKind::Phases && row.kind != TrackKind::Api) continue;
    for (const Span& span : spans) first = std::min(first, span.start);
  }
  return first;
}

// PyTorch calls the end of a step "Optimizer.step#Adam.step". With several optimizers, the last one ends the step.
std::vector<FoundStep> by_optimizer(const Trace& trace, const SpansOfRows& rows) {
  const auto ends = ranges(trace, rows, [](const std::string& name) { return name.starts_with("Optimizer.step#"); });
  std::vector<FoundStep> steps;
  TimeNs begin = first_on_host(rows);
  for (const Span& end : ends) {
    if (end.name != ends.back().name) continue;
    steps.push_back({begin, end.end()});
    begin = end.end();
  }
  return steps;
}

std::vector<FoundStep> by_pattern(const SpansOfRows& rows) {
  const std::vector<Span>* busiest = nullptr;
  for (const auto& [row, spans] : rows) {
    if (row.kind == TrackKind::Stream && (!busiest || spans.size() > busiest->size())) busiest = &spans;
  }
  if (!busiest) return {};
  std::vector<SeenKernel> kernels;
  for (const Span& span : *busiest) kernels.push_back({span.start, span.end(), static_cast<uint32_t>(span.name)});
  std::ranges::stable_sort(kernels, {}, &SeenKernel::start);
  return find_steps(kernels);
}

}  // namespace

GuessedSteps guess_steps(Trace& trace, const SpansOfRows& rows) {
  GuessedSteps guess;
  std::vector<FoundStep> found = by_name(trace, rows);
  if (found.empty()) found = by_optimizer(trace, rows);
  if (found.empty()) {
    found = by_pattern(rows);
    guess.on_gpu = true;
  }
  if (found.empty()) return guess;
  FoundSteps steps;
  steps.steps = std::move(found);
  guess.steps = steps.spans(trace.intern("step"));
  for (Span& step : guess.steps) step.flags = kImported | kEstimated;
  return guess;
}

}  // namespace ws::prof
