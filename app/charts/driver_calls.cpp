#include "app/charts/driver_calls.h"

#include <algorithm>

#include "profiling/analysis/trace_queries.h"

namespace ws::app {
namespace {

constexpr int64_t kStretches = 400;

struct Stretches {
  int64_t each = 1;
  std::vector<prof::CallSums> sums;
};

Stretches counted(const Run& run, int64_t steps) {
  const prof::AllocatorHistory& calls = run.allocator_calls;
  Stretches all{calls.steps_each(), calls.by_step()};
  const auto entries = static_cast<size_t>((steps + all.each - 1) / all.each);
  if (all.sums.size() < entries) all.sums.resize(entries);
  return all;
}

// Work before the first step or after the last one belongs to no step.
Stretches recorded(const Run& run, int64_t steps) {
  Stretches all{std::max<int64_t>(1, (steps + kStretches - 1) / kStretches), {}};
  const prof::Track* marks = first_track(run.marks(), prof::TrackKind::Steps);
  if (!marks || marks->blocks.empty() || steps == 0) return all;
  all.sums.resize(static_cast<size_t>((steps + all.each - 1) / all.each));
  const prof::TimeNs begin = marks->blocks.front().first, end = marks->blocks.back().reach;
  for (const prof::Track& track : run.trace.tracks()) {
    if (track.kind != prof::TrackKind::Api) continue;
    prof::for_each_span(track, begin, end, [&](const prof::Span& span) {
      const bool allocates = span.span_kind() == prof::SpanKind::Alloc;
      if ((!allocates && span.span_kind() != prof::SpanKind::Free) || span.start < begin) return true;
      const auto step = static_cast<int64_t>(std::max(0.0, run.stepAt(span.start)));
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
  const int64_t steps = run.stepsMade();
  const bool known = run.allocator_calls.in_steps().calls() > 0 || run.allocator_calls.empty();
  const bool of_driver = !run.allocator_calls.empty() || first_track(run.trace, prof::TrackKind::Api);
  if (steps == 0 || !of_driver) return {};
  const Stretches all = known && !run.allocator_calls.empty() ? counted(run, steps) : recorded(run, steps);
  std::vector<DriverPoint> points;
  for (size_t i = 0; i < all.sums.size(); ++i) {
    const int64_t first = static_cast<int64_t>(i) * all.each, end = std::min(steps, first + all.each);
    const auto count = static_cast<double>(std::max<int64_t>(1, end - first));
    points.push_back({static_cast<double>(end), static_cast<double>(run.timeOfStep(static_cast<double>(end))) * 1e-9,
                      static_cast<double>(all.sums[i].calls()) / count,
                      static_cast<double>(all.sums[i].ns) * 1e-3 / count});
  }
  return points;
}

}  // namespace ws::app
