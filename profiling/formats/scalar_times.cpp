#include "profiling/formats/scalar_times.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

using StepEnds = std::unordered_map<int64_t, TimeNs>;

StepEnds step_ends(const Trace& trace, TrackKind kind) {
  StepEnds ends;
  for (const Track& track : trace.tracks()) {
    if (track.kind != kind) continue;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if (span.step == 0) return;
      TimeNs& end = ends.try_emplace(int64_t{span.step} - 1, span.end()).first->second;
      end = std::max(end, span.end());
    });
  }
  return ends;
}

}  // namespace

ScalarTimes::ScalarTimes(const RunData& run) {
  if (run.metrics.empty()) return;
  StepEnds ends = step_ends(run.trace, TrackKind::Steps);
  if (ends.empty()) ends = step_ends(run.trace, TrackKind::Stream);
  for (const Metric& m : run.metrics)
    if (const auto end = ends.find(m.step); end != ends.end() && std::isfinite(m.wall_s))
      known_.push_back({m.step, end->second, m.wall_s});
  std::ranges::stable_sort(known_, {}, &Known::step);
}

TimeNs ScalarTimes::at(int64_t step, double wall_s) const {
  const auto ns = [](double seconds) {
    constexpr double kMost = 1e9;  // seconds: a limit for times in damaged files
    return static_cast<TimeNs>(std::llround((std::isfinite(seconds) ? std::clamp(seconds, -kMost, kMost) : 0) * 1e9));
  };
  if (known_.empty()) return ns(wall_s);
  const auto after = std::ranges::upper_bound(known_, step, {}, &Known::step);
  const Known& known = after == known_.begin() ? *after : *std::prev(after);
  return known.end + ns(wall_s - known.wall_s);
}

}  // namespace ws::prof
