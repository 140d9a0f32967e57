#include "app/charts/driver_calls.h"

#include <algorithm>
#include <cmath>

#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

constexpr int64_t kStretches = 400;

struct Steps {
  int64_t first = 0, end = 0;
};

struct Stretches {
  int64_t first = 0, each = 1;
  std::vector<prof::CallSums> sums;
};

// Steps keep their numbers: a recording may have only the steps 10 to 25 of its program.
Steps steps_of(const Run& run) {
  const prof::Track* marks = first_track(run.marks(), prof::TrackKind::Steps);
  if (run.hasChoices() || !marks || marks->blocks.empty() || marks->blocks.front().head.step == 0) return {0, run.stepsMade()};
  return {int64_t{marks->blocks.front().head.step} - 1, std::llround(run.stepAt(marks->blocks.back().reach)) + 1};
}

Stretches counted(const Run& run, Steps steps) {
  const prof::AllocatorHistory& calls = run.allocator_calls;
  Stretches all{0, calls.steps_each(), calls.by_step()};
  const auto entries = static_cast<size_t>((steps.end + all.each - 1) / all.each);
  if (all.sums.size() < entries) all.sums.resize(entries);
  return all;
}

// Work before the first step or after the last one belongs to no step.
Stretches recorded(const Run& run, Steps steps) {
  const int64_t count = steps.end - steps.first;
  Stretches all{steps.first, std::max<int64_t>(1, (count + kStretches - 1) / kStretches), {}};
  const prof::Track* marks = first_track(run.marks(), prof::TrackKind::Steps);
  if (!marks || marks->blocks.empty() || count <= 0) return all;
  all.sums.resize(static_cast<size_t>((count + all.each - 1) / all.each));
  const prof::TimeNs begin = marks->blocks.front().first, end = marks->blocks.back().reach;
  for (const prof::Track& track : run.trace.tracks()) {
    if (track.kind != prof::TrackKind::Api) continue;
    prof::for_each_span(track, begin, end, [&](const prof::Span& span) {
      const bool allocates = span.span_kind() == prof::SpanKind::Alloc;
      if ((!allocates && span.span_kind() != prof::SpanKind::Free) || span.start < begin) return true;
      const int64_t step = std::max<int64_t>(0, std::llround(run.stepAt(span.start)) - steps.first);
      prof::CallSums& sums = all.sums[std::min(all.sums.size() - 1, static_cast<size_t>(step / all.each))];
      ++(allocates ? sums.allocations : sums.frees), sums.ns += static_cast<int64_t>(span.duration);
      return true;
    });
  }
  return all;
}

}  // namespace

bool counted_by_driver_alone(const Run& run) {
  return run.recording || run.origin == RunOrigin::Imported || run.meters.empty();
}

std::vector<DriverPoint> driver_calls_over(const Run& run) {
  const Steps steps = steps_of(run);
  const bool known = run.allocator_calls.in_steps().calls() > 0 || run.allocator_calls.empty();
  const bool of_driver = !run.allocator_calls.empty() || first_track(run.trace, prof::TrackKind::Api);
  if (steps.end == 0 || !of_driver) return {};
  const Stretches all = known && !run.allocator_calls.empty() ? counted(run, steps) : recorded(run, steps);
  std::vector<DriverPoint> points;
  for (size_t i = 0; i < all.sums.size(); ++i) {
    const int64_t entry = all.first + static_cast<int64_t>(i) * all.each;
    const int64_t first = std::max(entry, steps.first), end = std::min(steps.end, entry + all.each);
    if (end <= first) continue;
    const auto count = static_cast<double>(end - first);
    points.push_back({static_cast<double>(first), static_cast<double>(end),
                      static_cast<double>(run.timeOfStep(static_cast<double>(end))) * 1e-9,
                      static_cast<double>(all.sums[i].calls()) / count,
                      static_cast<double>(all.sums[i].ns) * 1e-3 / count});
  }
  return points;
}

}  // namespace ws::app
