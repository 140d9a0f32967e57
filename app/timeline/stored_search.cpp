#include "app/timeline/stored_search.h"

#include <algorithm>

namespace ws::app {

std::optional<StoredHit> hit_of(prof::StoredSpans& file, const std::optional<prof::StoredSpans::Found>& found) {
  if (!found) return std::nullopt;
  const prof::Trace& trace = file.trace();
  const prof::Track& track = trace.tracks()[found->track];
  return StoredHit{
      track.kind, track.name, track.group, trace.name(found->span.name), track.depth, trace.detail(found->span.detail),
      found->span};
}

std::optional<size_t> track_of(const prof::Trace& trace, const prof::Track& like) {
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    const prof::Track& track = trace.tracks()[i];
    if (track.kind == like.kind && track.depth == like.depth && track.name == like.name && track.group == like.group)
      return i;
  }
  return std::nullopt;
}

std::optional<prof::FoundSpan> found_in(prof::Trace& trace, const StoredHit& hit) {
  prof::Track like;
  like.kind = hit.kind, like.name = hit.track, like.group = hit.group, like.depth = hit.depth;
  const auto track = track_of(trace, like);
  if (!track) return std::nullopt;
  prof::FoundSpan found{*track, hit.span};
  found.span.name = trace.intern(hit.name);
  found.span.detail = trace.intern(hit.detail);
  return found;
}

namespace {

template <class SumOf>
StoredSums named(const prof::Trace& trace, SumOf sum_of) {
  StoredSums all;
  for (size_t t = 0; t < trace.tracks().size(); ++t) {
    const prof::Track& track = trace.tracks()[t];
    StoredSums::Row row{prof::broad_kind(track.kind), track.name, {}};
    for (const prof::RangeSum& sum : sum_of(t))
      row.sums.push_back({trace.name(sum.name), sum.meaning, sum.count, sum.total_ns});
    if (!row.sums.empty()) all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace

StoredSums sums_in(prof::StoredSpans& file, TimeRange range) {
  StoredSums sums = named(file.trace(), [&](size_t track) { return file.sum_by_name(track, range.begin, range.end); });
  if (first_track(file.trace(), prof::TrackKind::Stream) || first_track(file.trace(), prof::TrackKind::GraphLaunches))
    sums.gpu = file.activity(range.begin, range.end);
  return sums;
}

StoredSums sums_in(const prof::Trace& trace, TimeRange range) {
  return named(trace, [&](size_t t) { return prof::sum_by_name(trace.tracks()[t], range.begin, range.end); });
}

bool in_memory(const prof::Trace& trace, TimeRange range, const std::function<bool(const prof::Track&)>& wanted) {
  return std::ranges::all_of(trace.tracks(), [&](const prof::Track& track) {
    return (wanted && !wanted(track)) || prof::in_memory(track, range.begin, range.end);
  });
}

}  // namespace ws::app
