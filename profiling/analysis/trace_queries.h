// Queries about a trace for the timeline and the details. Pure functions; binary search or a limit bounds the cost of
// each.
#pragma once
#include <algorithm>
#include <optional>

#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

inline constexpr size_t kWalkLimit = 4'000'000;  // spans per row; the rest is ignored

struct FoundSpan {
  size_t track = 0;
  Span span;
};

// Calls fn(span) for the spans of a track that touch [begin, end), in order, until it returns false.
template <class Fn>
void for_each_span(const Track& track, TimeNs begin, TimeNs end, Fn fn) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [&](const SpanBlock& b) { return b.reach <= begin; });
  for (; block != track.blocks.end() && block->first < end; ++block)
    for (const Span& span : block->spans) {
      if (span.start >= end) return;
      if (span.end() > begin && !fn(span)) return;
    }
}

// The first one with spans; with several ranks, the first of the rank whose steps stand for the run.
const Track* first_track(const Trace& trace, TrackKind kind);
const Span* span_of_step(const Trace& trace, int64_t step);  // exact
const Span* nearest_step(const Trace& trace, int64_t step);  // the last step not after it, or the first step
const Span* step_at(const Trace& trace, TimeNs time);  // the last step that began by then, or the first step
std::optional<FoundSpan> slowest_step(const Trace& trace);
std::optional<TimeRange> longest_gap(const Trace& trace);  // on a stream, between two spans of the run

// Returns the call that launched this span, or the first GPU span that this call launched.
std::optional<FoundSpan> partner(const Trace& trace, size_t track, const Span& span);
std::optional<FoundSpan> find_span(const Trace& trace, const std::vector<NameId>& names,
                                   const std::vector<OpTag>& ops, TimeNs from, bool forward);

struct Busy {
  TimeNs busy = 0, idle = 0;
  bool known = true;  // false: too many spans to count quickly
};
// The GPU of this rank; nullopt: of the rank whose steps stand for the run.
Busy gpu_during(const Trace& trace, TimeRange range, std::optional<int> rank = {});
struct SameName {
  uint64_t count = 0;
  TimeNs total = 0;
};
SameName same_in_step(const Trace& trace, const Track& track, const Span& span);

// Median time from one step to the next, over the latest steps; 0: unknown. Evaluations and pauses do not affect it.
TimeNs step_period(const Trace& marks);

// Copies everything that touches the range, with the names and details it needs, into an empty trace.
void copy_trace(const Trace& from, TimeRange range, Trace& to);

}  // namespace ws::prof
