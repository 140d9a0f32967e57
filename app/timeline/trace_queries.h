// Questions that the timeline and the details ask about a trace. Pure; each is bounded by binary search or a walk
// limit.
#pragma once
#include <algorithm>
#include <optional>

#include "app/timeline/time_scale.h"
#include "profiling/analysis/span_walk.h"

namespace ws::app {

inline constexpr size_t kWalkLimit = 4'000'000;  // spans of a row; the rest is not looked at

struct FoundSpan {
  size_t track = 0;
  prof::Span span;
};

// Calls fn(span) for the spans of a track that touch [begin, end), in order, until it answers false.
template <class Fn>
void for_each_span(const prof::Track& track, prof::TimeNs begin, prof::TimeNs end, Fn fn) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [&](const prof::SpanBlock& b) { return b.reach <= begin; });
  for (; block != track.blocks.end() && block->first < end; ++block)
    for (const prof::Span& span : block->spans) {
      if (span.start >= end) return;
      if (span.end() > begin && !fn(span)) return;
    }
}

const prof::Track* first_track(const prof::Trace& trace, prof::TrackKind kind);
const prof::Span* span_of_step(const prof::Trace& trace, int64_t step);  // exact
const prof::Span* nearest_step(const prof::Trace& trace, int64_t step);  // the last one not after it, else the first
const prof::Span* step_at(const prof::Trace& trace, prof::TimeNs time);  // the last that began by then, else the first
std::optional<FoundSpan> slowest_step(const prof::Trace& trace);
std::optional<TimeRange> longest_gap(const prof::Trace& trace);  // on a stream, between two spans of the run

using prof::on_gpu;
// The call that launched this span, or the first span on the GPU that this call launched.
std::optional<FoundSpan> partner(const prof::Trace& trace, size_t track, const prof::Span& span);
std::optional<FoundSpan> find_span(const prof::Trace& trace, const std::vector<prof::NameId>& names,
                                   const std::vector<prof::OpTag>& ops, prof::TimeNs from, bool forward);

struct Busy {
  prof::TimeNs busy = 0, idle = 0;
  bool known = true;  // false: too many spans to tell in a moment
};
Busy gpu_during(const prof::Trace& trace, TimeRange range);
struct SameName {
  uint64_t count = 0;
  prof::TimeNs total = 0;
};
SameName same_in_step(const prof::Trace& trace, const prof::Track& track, const prof::Span& span);

// From one step to the next, the median of the latest; 0: unknown. Evaluations and pauses do not change it.
prof::TimeNs step_period(const prof::Trace& marks);

// Copies what touches the range, with the names and details it needs, into an empty trace.
void copy_trace(const prof::Trace& from, TimeRange range, prof::Trace& to);

}  // namespace ws::app
