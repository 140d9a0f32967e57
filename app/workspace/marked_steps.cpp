#include "app/workspace/marked_steps.h"

#include <algorithm>

#include "profiling/trace/span_walk.h"

namespace ws::app {

prof::TimeRange marked_steps(const prof::Trace& trace) {
  prof::TimeRange range{prof::kAlways, -prof::kAlways};
  for (const prof::Track& track : trace.tracks())
    if (track.kind == prof::TrackKind::Steps)
      prof::each_span(track, -prof::kAlways, prof::kAlways, [&](const prof::Span& step) {
        range = {std::min(range.begin, step.start), std::max(range.end, step.end())};
      });
  return range.begin < range.end ? range : prof::TimeRange{};
}

}  // namespace ws::app
