#include "profiling/analysis/activity.h"

#include <limits>
#include <unordered_map>

#include "profiling/analysis/collective_waits.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

enum Lane { kKernelLane, kCopyLane, kRestLane, kRankWaitLane, kLanes };
struct LaneEdge {
  TimeNs time;
  Lane what;
  int change;
};

std::vector<LaneEdge> lane_edges(const Trace& trace, int rank, TimeNs begin, TimeNs end) {
  std::vector<LaneEdge> edges;
  const CollectiveWaits waits(trace, {begin, end}, 0, std::numeric_limits<size_t>::max());
  for (const Track& track : tracks_of_rank(trace, rank)) {
    const bool is_pause = untraced(track);
    if (!is_pause && !on_gpu(track)) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const bool copy = span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset;
      const TimeNs from = std::max(span.start, begin), to = std::min(span.end(), end);
      if (from >= to || !(is_pause || copy || is_kernel(span))) return;
      const Lane what = is_pause ? kRestLane : copy ? kCopyLane : kKernelLane;
      edges.push_back({from, what, 1});
      edges.push_back({to, what, -1});
      const auto parts = span.span_meaning() == Meaning::Communication ? waits.of(track.rank, span) : std::nullopt;
      const TimeNs arrived = parts ? std::min(span.start + parts->wait, end) : from;
      if (arrived <= from) return;
      edges.push_back({from, kRankWaitLane, 1});
      edges.push_back({arrived, kRankWaitLane, -1});
    });
  }
  std::ranges::sort(edges, {}, &LaneEdge::time);
  return edges;
}

}  // namespace

Activity activity(const Trace& trace, TimeNs begin, TimeNs end, std::optional<int> rank) {
  Activity result;
  int running[kLanes] = {};
  TimeNs now = begin;
  for (const LaneEdge& edge : lane_edges(trace, rank.value_or(rank_of_steps(trace)), begin, end)) {
    const int64_t length = edge.time - now;
    if (running[kRestLane] > 0) {
      result.untraced += length;
    } else {
      const int works = running[kKernelLane] + running[kCopyLane];
      if (works > 0) (works > running[kRankWaitLane] ? result.busy : result.waiting) += length;
      if (running[kKernelLane] > 0) result.kernels += length;
      if (running[kCopyLane] > 0) result.copies += length;
      if (running[kKernelLane] > 0 && running[kCopyLane] > 0) result.overlap += length;
    }
    running[edge.what] += edge.change;
    now = edge.time;
  }
  result.wall = std::max<TimeNs>(end - begin, 0) - result.untraced;
  return result;
}

CoveredTime untraced_time(const Trace& trace, TimeNs begin, TimeNs end) {
  std::vector<TimeRange> stretches;
  for (const Track& track : trace.tracks())
    if (untraced(track))
      each_span(track, begin, end, [&](const Span& span) { stretches.push_back({span.start, span.end()}); });
  return CoveredTime(std::move(stretches));
}

DurationStats launch_delay(const Trace& trace, TimeNs begin, TimeNs end) {
  std::unordered_map<uint32_t, TimeNs> calls;
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind != TrackKind::Api) continue;
    each_span(track, begin, end, [&](const Span& span) {
      if (span.correlation != 0) calls.try_emplace(span.correlation, span.start);
    });
  }
  // Kernels of one graph share its launch. The later ones wait for each other, not for the launch, so only the first
  // counts.
  std::unordered_map<uint32_t, TimeNs> begun;
  for (const Track& track : tracks_of_steps(trace)) {
    if (!on_gpu(track)) continue;
    each_span(track, begin, end, [&](const Span& span) {
      if (!calls.contains(span.correlation)) return;
      TimeNs& first = begun.try_emplace(span.correlation, span.start).first->second;
      first = std::min(first, span.start);
    });
  }
  std::vector<int64_t> delays;
  for (const auto& [correlation, first] : begun) delays.push_back(first - calls[correlation]);
  return stats_of(delays);
}

}  // namespace ws::prof
