#include "profiling/causes/span_path.h"

#include <algorithm>

#include "profiling/analysis/trace_queries.h"
#include "profiling/base/text.h"
#include "profiling/causes/critical_path.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

std::string path_text(const PathOfSpan& span) {
  const auto us = [](int64_t ns) { return time_text(static_cast<double>(ns) * 1e-3); };
  if (span.on_path()) return span.path_ns < span.lasts_ns ? us(span.path_ns) + " of " + us(span.lasts_ns) : "all of " + us(span.lasts_ns);
  if (span.slack_ns == kNoSlack) return "not on it";
  return span.slack_ns > 0 ? "not on it, could take " + us(span.slack_ns) + " longer" : "not on it, has no time to spare";
}

SpanPath::SpanPath(const CauseGraph& graph, const Trace& trace) : window_(graph.window) {
  const Timing timing = measured_timing(graph);
  const CriticalPath path = critical_path(graph, timing, replay(graph, timing));
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const CauseNode& n = graph.nodes[node];
    // A wait for data lies between calls, and is no span.
    if (n.kind == NodeKind::Meeting || n.kind == NodeKind::DataWait) continue;
    if (n.track >= rows_.size()) rows_.resize(n.track + 1);
    rows_[n.track].push_back({n.start, n.end(), path.node_ns[node], path.slack_ns[node], 0});
  }
  for (const PathPiece& piece : path.pieces)
    if (const CauseNode& node = graph.nodes[piece.to / 2]; runs_on_host(node.kind)) host_[node.rank].push_back({piece.begin, piece.end, piece.end - piece.begin, kNoSlack, 0});
  const auto order = [](std::vector<Piece>& row) {
    std::ranges::stable_sort(row, {}, &Piece::begin);
    for (size_t i = 1; i < row.size(); ++i) row[i].path_before = row[i - 1].path_before + row[i - 1].path_ns;
  };
  for (std::vector<Piece>& row : rows_) order(row);
  for (auto& [rank, pieces] : host_) order(pieces);
  ranges_.resize(trace.tracks().size());
  for (size_t track = 0; track < ranges_.size(); ++track)
    if (const TrackKind kind = trace.tracks()[track].kind; !row(track) && (kind == TrackKind::Ranges || kind == TrackKind::CpuThread)) ranges_[track] = host_.try_emplace(trace.tracks()[track].rank).first->first;
}

const std::vector<SpanPath::Piece>* SpanPath::row(size_t track) const { return track < rows_.size() && !rows_[track].empty() ? &rows_[track] : nullptr; }

// A span that waits for the one before it, or one with others inside, has a later begin in the graph, or several pieces.
std::optional<PathOfSpan> SpanPath::of(size_t track, const Span& span) const {
  const std::vector<Piece>* pieces = row(track);
  if (!window_.contains(span.start)) return std::nullopt;
  if (const std::vector<Piece>* path = host(track)) return PathOfSpan{path_until(*path, span.end()) - path_until(*path, span.start), static_cast<int64_t>(span.duration), kNoSlack};
  if (!pieces) return std::nullopt;
  PathOfSpan found{0, static_cast<int64_t>(span.duration), 0};
  TimeNs end = -kAlways;
  for (auto piece = std::ranges::lower_bound(*pieces, span.start, {}, &Piece::begin); piece != pieces->end() && piece->begin <= span.end(); ++piece) {
    if (piece->end > span.end()) continue;
    found.path_ns += piece->path_ns;
    if (piece->end > end || (piece->end == end && piece->slack_ns < found.slack_ns)) found.slack_ns = piece->slack_ns, end = piece->end;
  }
  return end == -kAlways ? std::nullopt : std::optional(found);
}

// Time on the path counts from the begin of its piece.
int64_t SpanPath::path_until(const std::vector<Piece>& row, TimeNs time) {
  const auto after = std::ranges::lower_bound(row, time, {}, &Piece::begin);
  if (after == row.begin()) return 0;
  const Piece& last = *(after - 1);
  return last.path_before + std::min(last.path_ns, time - last.begin);
}

std::optional<int64_t> SpanPath::on_path(size_t track, TimeRange range) const {
  const std::vector<Piece>* pieces = host(track) ? host(track) : row(track);
  if (!pieces || !window_.contains(range.begin) || range.end > window_.end) return std::nullopt;
  return path_until(*pieces, range.end) - path_until(*pieces, range.begin);
}

bool may_have_causes(const Track& track) { return on_gpu(track) || track.kind == TrackKind::Api || track.kind == TrackKind::CpuThread || track.kind == TrackKind::Ranges; }

bool may_have_causes(const Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [](const Track& track) { return track.spans > 0 && may_have_causes(track); });
}

namespace {

bool fits(const Trace& trace, TimeRange range, size_t most_spans) {
  size_t spans = 0;
  for (const Track& track : trace.tracks()) {
    if (!may_have_causes(track)) continue;
    if (!in_memory(track, range.begin, range.end) || (spans += spans_about(track, range.begin, range.end)) > most_spans) return false;
  }
  return true;
}

// From the first step that begins in the range to the last one.
StepsAround whole_steps(const Trace& marks, TimeRange range) {
  StepsAround found{range, {}};
  const Track* track = first_track(marks, TrackKind::Steps);
  std::vector<Span> steps;
  if (track)
    each_span(*track, range.begin, range.end, [&](const Span& step) {
      if (step.start >= range.begin) steps.push_back(step);
    });
  if (steps.empty()) return found;
  found.window.begin = steps.front().start;
  if (steps.size() > 1 && steps.back().end() > range.end) found.window.end = steps.back().start, steps.pop_back();
  found.which.count = std::ssize(steps);
  if (steps.front().step > 0) found.which.first = int64_t{steps.front().step} - 1, found.which.last = int64_t{steps.back().step} - 1;
  return found;
}

}  // namespace

StepsAround steps_around(const Trace& trace, const Trace& marks, TimeRange view, size_t most_spans) {
  const TimeRange all{trace.first_time(), trace.last_time() + 1};
  view = {std::max(view.begin, all.begin), std::min(view.end, all.end)};
  if (view.length() <= 0) return {};
  const TimeNs middle = view.begin + view.length() / 2;
  const auto around = [&](TimeNs half) { return TimeRange{std::max(all.begin, middle - half), std::min(all.end, middle + half)}; };
  const auto grown = [](TimeNs half) { return half + half / 4 + 1; };
  TimeNs half = view.length() / 2 + 1;
  while (half > 1 && !fits(trace, around(half), most_spans)) half /= 2;
  if (half <= 1) return {};
  while (around(half) != all && fits(trace, around(grown(half)), most_spans)) half = grown(half);
  return whole_steps(marks, around(half));
}

}  // namespace ws::prof
