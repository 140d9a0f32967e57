#include "profiling/trace.h"

#include <algorithm>
#include <functional>

namespace ws::prof {

size_t Trace::DetailHash::operator()(const Detail& d) const {
  size_t hash = std::hash<std::string>{}(d.copy_kind);
  for (uint64_t part : {static_cast<uint64_t>(d.grid[0]), static_cast<uint64_t>(d.grid[1]), static_cast<uint64_t>(d.grid[2]),
                        static_cast<uint64_t>(d.block[0]), static_cast<uint64_t>(d.block[1]), static_cast<uint64_t>(d.block[2]),
                        static_cast<uint64_t>(d.registers), static_cast<uint64_t>(d.static_shared), static_cast<uint64_t>(d.dynamic_shared), d.bytes})
    hash = hash * 1099511628211ull ^ part;
  return hash;
}

NameId Trace::intern(std::string_view name) {
  const auto found = name_ids_.find(name);
  if (found != name_ids_.end()) return found->second;
  const auto id = static_cast<NameId>(names_.size());
  names_.emplace_back(name);
  name_ids_.emplace(names_.back(), id);
  return id;
}

DetailId Trace::intern(const Detail& detail) {
  const auto found = detail_ids_.find(detail);
  if (found != detail_ids_.end()) return found->second;
  if (details_.size() > UINT16_MAX) return DetailId{0};
  const auto id = static_cast<DetailId>(details_.size());
  details_.push_back(detail);
  detail_ids_.emplace(detail, id);
  return id;
}

TrackId Trace::track(TrackKind kind, std::string_view name, std::string_view group, int depth) {
  for (size_t i = 0; i < tracks_.size(); ++i)
    if (tracks_[i].kind == kind && tracks_[i].name == name && tracks_[i].group == group && tracks_[i].depth == depth) return static_cast<TrackId>(i);
  tracks_.push_back({kind, std::string(name), std::string(group), depth, {}, 0});
  return static_cast<TrackId>(tracks_.size() - 1);
}

TrackId Trace::counter(std::string_view name, std::string_view unit) {
  for (size_t i = 0; i < counters_.size(); ++i)
    if (counters_[i].name == name) return static_cast<TrackId>(i);
  counters_.push_back({std::string(name), std::string(unit), {}});
  return static_cast<TrackId>(counters_.size() - 1);
}

namespace {

void widen(SpanBlock& block, const Span& span) {
  if (block.spans.empty()) block.first = span.start, block.last = span.end();
  block.first = std::min(block.first, span.start);
  block.last = std::max(block.last, span.end());
}

}  // namespace

void Trace::append(TrackId id, const Span& span) {
  Track& track = tracks_[static_cast<size_t>(id)];
  if (track.blocks.empty() || track.blocks.back().spans.size() >= SpanBlock::kCapacity) {
    track.blocks.emplace_back();
    track.blocks.back().spans.reserve(SpanBlock::kCapacity);
  }
  // A late span goes back to the block that it belongs to; input is nearly sorted, so that is seldom far.
  size_t at = track.blocks.size() - 1;
  while (at > 0 && !track.blocks[at - 1].spans.empty() && span.start < track.blocks[at - 1].spans.back().start) --at;
  SpanBlock& block = track.blocks[at];
  widen(block, span);
  const auto place = std::upper_bound(block.spans.begin(), block.spans.end(), span.start, [](TimeNs t, const Span& s) { return t < s.start; });
  block.spans.insert(place, span);
  ++track.spans;
}

void Trace::append(TrackId track, std::span<const Span> spans) {
  for (const Span& span : spans) append(track, span);
}

void Trace::append_counter(TrackId track, CounterPoint point) { counters_[static_cast<size_t>(track)].points.push_back(point); }

TimeNs Trace::first_time() const {
  TimeNs first = INT64_MAX;
  for (const Track& t : tracks_)
    if (!t.blocks.empty()) first = std::min(first, t.blocks.front().first);
  return first == INT64_MAX ? 0 : first;
}

TimeNs Trace::last_time() const {
  TimeNs last = 0;
  for (const Track& t : tracks_)
    for (auto block = t.blocks.rbegin(); block != t.blocks.rend() && block - t.blocks.rbegin() < 2; ++block) last = std::max(last, block->last);
  return last;
}

size_t Trace::span_count() const {
  size_t sum = 0;
  for (const Track& t : tracks_) sum += t.spans;
  return sum;
}

size_t Trace::resident_bytes() const {
  size_t sum = memory_.size() * sizeof(MemoryEvent);
  for (const Track& t : tracks_) sum += t.spans * sizeof(Span);
  for (const CounterTrack& c : counters_) sum += c.points.size() * sizeof(CounterPoint);
  return sum;
}

void Trace::evict(size_t budget) {
  while (resident_bytes() > budget) {
    Track* oldest = nullptr;
    for (Track& t : tracks_)
      if (t.blocks.size() > 1 && (!oldest || t.blocks.front().first < oldest->blocks.front().first)) oldest = &t;
    if (!oldest) return;
    losses.evicted_spans += oldest->blocks.front().spans.size();
    oldest->spans -= oldest->blocks.front().spans.size();
    oldest->blocks.pop_front();
  }
}

}  // namespace ws::prof
