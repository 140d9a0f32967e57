// Walks over the spans of a track that are in memory.
#pragma once
#include <algorithm>
#include <ranges>

#include "profiling/trace/trace.h"

namespace ws::prof {

// Calls visit(span) for each span that overlaps the range, in order of start.
template <class Visit>
void each_span(const Track& track, TimeNs begin, TimeNs end, Visit visit) {
  const auto from = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                         [&](const SpanBlock& b) { return b.reach <= begin; });
  for (auto block = from; block != track.blocks.end() && block->first < end; ++block) {
    for (const Span& span : block->spans) {
      if (span.start >= end) break;
      if (span.end() > begin || span.start >= begin) visit(span);
    }
  }
}

// The rank whose steps stand for the run: the lowest one with marks of its own. -1: all work counts.
inline int rank_of_steps(const Trace& trace) {
  int lowest = -1;
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::Steps && track.rank >= 0 && track.spans > 0 && (lowest < 0 || track.rank < lowest))
      lowest = track.rank;
  return lowest;
}
// True if the rank did this work, or all ranks share it; -1: any rank.
inline bool is_of_rank(const Track& track, int rank) { return rank < 0 || track.rank < 0 || track.rank == rank; }
inline auto tracks_of_rank(const Trace& trace, int rank) {
  return std::views::filter(trace.tracks(), [rank](const Track& track) { return is_of_rank(track, rank); });
}
// The tracks that a step of the run consists of.
inline auto tracks_of_steps(const Trace& trace) { return tracks_of_rank(trace, rank_of_steps(trace)); }
// True if at least two ranks left a span.
inline bool several_ranks(const Trace& trace) {
  int first = -1;
  for (const Track& track : trace.tracks()) {
    if (track.rank < 0 || track.spans == 0) continue;
    if (first >= 0 && track.rank != first) return true;
    first = track.rank;
  }
  return false;
}

inline bool runs_on_gpu(TrackKind kind) {
  return kind == TrackKind::Stream || kind == TrackKind::Copies || kind == TrackKind::GraphLaunches;
}
inline bool on_gpu(const Track& track) { return runs_on_gpu(track.kind); }
// True if a kernel or a copy was recorded, or a launched graph.
inline bool used_gpu(const Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [](const Track& track) { return on_gpu(track) && track.spans > 0; });
}
// True for the track that shows when tracing paused on purpose.
inline bool untraced(const Track& track) { return track.kind == TrackKind::Untraced; }
// True for a wait that the driver recorded. The waiting call is also on the track of its thread.
inline bool is_stream_wait(const Track& track, const Span& span) {
  return track.kind == TrackKind::StreamWaits && span.span_kind() == SpanKind::Sync;
}
// True for a row of collectives whose kernels were not recorded.
inline bool times_collectives(const Track& track) { return track.kind == TrackKind::Collectives && track.spans > 0; }
inline bool is_kernel(const Span& span) {
  return span.span_kind() == SpanKind::Kernel || span.span_kind() == SpanKind::GraphRun;
}

}  // namespace ws::prof
