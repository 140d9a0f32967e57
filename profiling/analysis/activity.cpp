#include "profiling/analysis/activity.h"

#include <unordered_map>

#include "profiling/analysis/span_walk.h"

namespace ws::prof {

Activity activity(const Trace& trace, TimeNs begin, TimeNs end) {
  struct Edge {
    TimeNs time;
    bool kernel;
    int change;
  };
  std::vector<Edge> edges;
  for (const Track& track : trace.tracks()) {
    if (!on_gpu(track)) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const bool copy = span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset;
      const TimeNs from = std::max(span.start, begin), to = std::min(span.end(), end);
      if (from >= to || !(copy || is_kernel(span))) return;
      edges.push_back({from, !copy, 1});
      edges.push_back({to, !copy, -1});
    });
  }
  std::ranges::sort(edges, {}, &Edge::time);
  Activity result;
  result.wall = std::max<TimeNs>(end - begin, 0);
  int kernels = 0, copies = 0;
  TimeNs now = begin;
  for (const Edge& edge : edges) {
    const int64_t length = edge.time - now;
    if (kernels + copies > 0) result.busy += length;
    if (kernels > 0) result.kernels += length;
    if (copies > 0) result.copies += length;
    if (kernels > 0 && copies > 0) result.overlap += length;
    (edge.kernel ? kernels : copies) += edge.change;
    now = edge.time;
  }
  return result;
}

DurationStats launch_delay(const Trace& trace, TimeNs begin, TimeNs end) {
  std::unordered_map<uint32_t, TimeNs> calls;
  for (const Track& track : trace.tracks()) {
    if (on_gpu(track) || track.kind == TrackKind::Inner) continue;
    each_span(track, begin, end, [&](const Span& span) {
      if (span.correlation != 0) calls.try_emplace(span.correlation, span.start);
    });
  }
  std::vector<int64_t> delays;
  for (const Track& track : trace.tracks()) {
    if (!on_gpu(track)) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const auto call = span.correlation == 0 ? calls.end() : calls.find(span.correlation);
      if (call != calls.end()) delays.push_back(span.start - call->second);
    });
  }
  return stats_of(delays);
}

}  // namespace ws::prof
