#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/activity.h"
#include "profiling/base/statistics.h"

namespace ws::prof {
namespace {


constexpr size_t kPartnerLimit = 300'000, kMostParts = 2'000'000;
constexpr size_t kStrangers = 64, kPeriods = 41;

const Span* steps_upper(const Track& track, auto before) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [&](const SpanBlock& b) { return b.count > 0 && before(b.head); });
  if (block == track.blocks.begin()) return nullptr;
  --block;
  if (!block->resident()) return &block->head;
  auto span = std::partition_point(block->spans.begin(), block->spans.end(), before);
  return span == block->spans.begin() ? nullptr : &*(span - 1);
}

const Span* first_span(const Track& track) { return track.blocks.empty() ? nullptr : &track.blocks.front().head; }

// Visits spans backwards, beginning with the last span that starts before `from`.
template <class Fn>
void for_each_back(const Track& track, TimeNs from, Fn fn) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [&](const SpanBlock& b) { return b.first < from; });
  while (block != track.blocks.begin()) {
    --block;
    for (auto span = block->spans.rbegin(); span != block->spans.rend(); ++span)
      if (span->start < from && !fn(*span)) return;
  }
}

bool is_call_track(const Track& track) { return track.kind == TrackKind::Api; }

std::optional<Span> correlated_before(const Track& track, TimeNs from, uint32_t correlation) {
  std::optional<Span> found;
  size_t seen = 0;
  for_each_back(track, from, [&](const Span& s) {
    if (s.correlation == correlation) found = s;
    return !found && ++seen < kPartnerLimit;
  });
  return found;
}

std::optional<Span> correlated_after(const Track& track, TimeNs from, uint32_t correlation) {
  std::optional<Span> found;
  size_t seen = 0;
  for_each_span(track, from, INT64_MAX, [&](const Span& s) {
    if (s.correlation == correlation) found = s;
    return !found && ++seen < kPartnerLimit;
  });
  return found;
}

bool listed(const auto& list, auto value) { return std::find(list.begin(), list.end(), value) != list.end(); }

}  // namespace

const Track* first_track(const Trace& trace, TrackKind kind) {
  const auto wanted = [kind](const Track& track) { return track.kind == kind && track.spans > 0; };
  for (const Track& track : tracks_of_steps(trace))
    if (wanted(track)) return &track;
  const auto any = std::ranges::find_if(trace.tracks(), wanted);
  return any == trace.tracks().end() ? nullptr : &*any;
}

const Span* nearest_step(const Trace& trace, int64_t step) {
  const Track* track = first_track(trace, TrackKind::Steps);
  if (!track) return nullptr;
  const Span* found = steps_upper(*track, [&](const Span& s) { return static_cast<int64_t>(s.step) <= step + 1; });
  return found ? found : first_span(*track);
}

const Span* span_of_step(const Trace& trace, int64_t step) {
  const Span* found = nearest_step(trace, step);
  return found && static_cast<int64_t>(found->step) == step + 1 ? found : nullptr;
}

const Span* step_at(const Trace& trace, TimeNs time) {
  const Track* track = first_track(trace, TrackKind::Steps);
  if (!track) return nullptr;
  const Span* found = steps_upper(*track, [&](const Span& s) { return s.start <= time; });
  return found ? found : first_span(*track);
}

std::optional<FoundSpan> slowest_step(const Trace& trace) {
  std::optional<FoundSpan> slowest;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    if (trace.tracks()[i].kind != TrackKind::Steps) continue;
    for (const auto& block : trace.tracks()[i].blocks)
      for (const Span& span : block.spans)
        if (!slowest || span.duration > slowest->span.duration) slowest = FoundSpan{i, span};
  }
  return slowest;
}

std::optional<TimeRange> longest_gap(const Trace& trace) {
  std::optional<TimeRange> longest;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Stream) continue;
    size_t seen = 0;
    TimeNs next = INT64_MAX;
    for_each_back(track, INT64_MAX, [&](const Span& s) {
      if (next != INT64_MAX && next > s.end() && (!longest || next - s.end() > longest->length()))
        longest = TimeRange{s.end(), next};
      next = std::min(next, s.start);
      return ++seen < kWalkLimit;
    });
  }
  return longest;
}

std::optional<FoundSpan> partner(const Trace& trace, size_t track, const Span& span) {
  if (span.correlation == 0) return std::nullopt;
  const Track& own = trace.tracks()[track];
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    const Track& other = trace.tracks()[i];
    std::optional<Span> found;
    if (on_gpu(own) && is_call_track(other)) found = correlated_before(other, span.end(), span.correlation);
    if (is_call_track(own) && on_gpu(other)) found = correlated_after(other, span.start, span.correlation);
    if (found) return FoundSpan{i, *found};
  }
  return std::nullopt;
}

std::optional<FoundSpan> find_span(const Trace& trace, const std::vector<NameId>& names,
                                   const std::vector<OpTag>& ops, TimeNs from, bool forward) {
  std::optional<FoundSpan> best;
  for (size_t i = 0; i < trace.tracks().size(); ++i) {
    size_t seen = 0;
    const auto visit = [&](const Span& s) {
      const bool hit = listed(names, s.name) || (s.op != kNoOp && listed(ops, s.op));
      if (forward ? s.start <= from : s.start >= from) return true;
      if (hit && (!best || (forward ? s.start < best->span.start : s.start > best->span.start))) best = FoundSpan{i, s};
      return !hit && ++seen < kWalkLimit;
    };
    if (forward)
      for_each_span(trace.tracks()[i], from, INT64_MAX, visit);
    else
      for_each_back(trace.tracks()[i], from, visit);
  }
  return best;
}

Busy gpu_during(const Trace& trace, TimeRange range, std::optional<int> rank) {
  const int of = rank.value_or(rank_of_steps(trace));
  size_t parts = 0;
  for (const Track& track : trace.tracks()) {
    if (!on_gpu(track) || !is_of_rank(track, of)) continue;
    for_each_span(track, range.begin, range.end, [&](const Span&) { return ++parts < kMostParts; });
  }
  if (parts >= kMostParts) return {0, 0, false};
  const Activity all = activity(trace, range.begin, range.end, of);
  return {all.busy, range.length() - all.busy - all.waiting};
}

// Uses the step number of the span if it has one: GPU work may be far behind the host's step.
SameName same_in_step(const Trace& trace, const Track& track, const Span& span) {
  SameName result;
  const auto count = [&](const Span& s) {
    if (s.name == span.name) ++result.count, result.total += static_cast<TimeNs>(s.duration);
  };
  if (span.step == 0) {
    if (const Span* step = step_at(trace, span.start))
      for_each_span(track, step->start, step->end(), [&](const Span& s) { count(s); return true; });
    return result;
  }
  size_t strangers = 0;
  const auto same_step = [&](const Span& s) {
    if (s.step == span.step) count(s);
    strangers = s.step == span.step || s.step == 0 ? 0 : strangers + 1;
    return strangers < kStrangers;  // a few late spans of a neighbouring step may be in between
  };
  for_each_back(track, span.start, same_step);
  strangers = 0;
  for_each_span(track, span.start, INT64_MAX, [&](const Span& s) { return s.start < span.start || same_step(s); });
  return result;
}

TimeNs step_period(const Trace& marks) {
  const Track* track = first_track(marks, TrackKind::Steps);
  if (!track) return 0;
  std::vector<TimeNs> periods;
  std::optional<Span> next;
  for_each_back(*track, INT64_MAX, [&](const Span& s) {
    if (next) {
      const TimeNs steps = next->step > s.step && s.step > 0 ? next->step - s.step : 1;
      periods.push_back((next->start - s.start) / steps);
    }
    next = s;
    return periods.size() < kPeriods;
  });
  if (periods.empty()) return next ? static_cast<TimeNs>(next->duration) : 0;
  return middle_value(periods);
}

void copy_trace(const Trace& from, TimeRange range, Trace& to) {
  // Interns names and details in the same order, so that the ids stay valid.
  for (size_t i = 0; i < from.name_count(); ++i) to.intern(from, static_cast<NameId>(i));
  for (size_t i = 1; i < from.detail_count(); ++i) to.intern(from.detail(static_cast<DetailId>(i)));
  to.ops = from.ops, to.memory_sources = from.memory_sources;
  for (const Track& track : from.tracks()) {
    const TrackId id = to.track(track.kind, track.name, track.group, track.depth, track.rank);
    for_each_span(track, range.begin, range.end, [&](const Span& s) { to.append(id, s); return true; });
  }
  for (const auto& counter : from.counters()) {
    const TrackId id = to.counter(counter.name, counter.unit, counter.kind);
    auto first = std::partition_point(counter.points.begin(), counter.points.end(),
                                      [&](const CounterPoint& p) { return p.time < range.begin; });
    for (; first != counter.points.end() && first->time < range.end; ++first) to.append_counter(id, *first);
  }
  for (const auto& event : from.memory())
    if (range.contains(event.time)) to.append_memory(event);
}

}  // namespace ws::prof
