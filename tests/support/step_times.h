// The stretches between the host's marks of steps, each with its parts. For means per step programs use StepsOfRun.
#pragma once
#include <algorithm>
#include <vector>

#include "profiling/analysis/step_breakdown.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

struct StepTimes {
  int64_t step;
  Breakdown parts;  // from the start of a mark to the start of the next; parts.steps: the steps of one graph, for example
};

// The number of the next mark shows how many steps a mark stands for; the last one counts as the one before.
inline int64_t steps_of_mark(const std::vector<Span>& marks, size_t i) {
  if (marks.size() < 2) return 1;
  const size_t at = std::min(i, marks.size() - 2);
  return std::max<int64_t>(1, int64_t{marks[at + 1].step} - int64_t{marks[at].step});
}

inline std::vector<StepTimes> step_times(const Trace& trace) {
  std::vector<Span> marks;
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::Steps)
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        if (span.span_kind() == SpanKind::Step) marks.push_back(span);
      });
  std::ranges::sort(marks, {}, &Span::start);
  std::vector<StepTimes> result;
  for (size_t i = 0; i < marks.size(); ++i) {
    Breakdown parts = breakdown(trace, marks[i].start, i + 1 < marks.size() ? marks[i + 1].start : marks[i].end());
    parts.steps = steps_of_mark(marks, i);
    result.push_back({marks[i].step == 0 ? static_cast<int64_t>(i) : int64_t{marks[i].step} - 1, parts});
  }
  return result;
}

}  // namespace ws::prof
