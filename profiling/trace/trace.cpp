#include "profiling/trace/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "profiling/annotate/code_stack.h"
#include "profiling/trace/code_places.h"

namespace ws::prof {

namespace {

// Appends a span. It must start no earlier than the last span of the block.
void push(SpanBlock& block, const Span& span) {
  if (block.spans.size() == block.chunks.size() * block.chunk_size) {
    block.chunk_starts[block.chunks.size()] = span.start;
    block.chunks.push_back(block.total);
  }
  if (block.count == 0) {
    block.first = span.start;
    block.last = span.end();
    block.head = span;
  }
  block.spans.push_back(span);
  ++block.count;
  block.last = std::max(block.last, span.end());
  block.reach = std::max(block.reach, span.end());
  add_time(block.total, span);
}

void rebuild(SpanBlock& block) {
  std::vector<Span> spans = std::move(block.spans);
  block.spans.clear();
  block.spans.reserve(SpanBlock::kCapacity);
  block.chunks.clear();
  block.chunk_size = std::max(SpanBlock::kCapacity, spans.size() + SpanBlock::kChunks - 1) / SpanBlock::kChunks;
  block.total = {};
  block.count = 0;
  for (const Span& span : spans) push(block, span);
}

// Updates the running sums of all blocks, beginning with block `from`.
void carry(Track& track, size_t from) {
  for (size_t i = from; i < track.blocks.size(); ++i) {
    SpanBlock& block = track.blocks[i];
    track.block_starts[i] = block.first;
    block.reach = block.last;
    if (i == 0) continue;
    const SpanBlock& previous = track.blocks[i - 1];
    block.reach = std::max(block.last, previous.reach);
    block.count_before = previous.count_before + previous.count;
    for (size_t m = 0; m < kMeanings; ++m) block.before[m] = previous.before[m] + previous.total[m];
  }
}

constexpr size_t kMostEvictedBlocks = 1 << 13;  // per track; with more, pairs of neighbours are merged

bool can_be_one(const SpanBlock& block, const SpanBlock& next) {
  constexpr uint32_t kMostSpans = 1 << 17;  // viewed spans are read block by block, so blocks stay small
  return !block.resident() && !next.resident() && block.count + next.count <= kMostSpans;
}

// Adds the sums of the next block.
void join(SpanBlock& block, const SpanBlock& next) {
  block.count += next.count;
  for (size_t m = 0; m < kMeanings; ++m) block.total[m] += next.total[m];
  block.last = std::max(block.last, next.last);
  block.reach = next.reach;
}

// Merges up to `wanted` pairs of evicted neighbours, oldest first. This makes old times coarser.
void merge_oldest(Track& track, size_t wanted) {
  auto& blocks = track.blocks;
  size_t kept = 1, at = 1, merged = 0;
  for (bool fresh = true; at < blocks.size() && merged < wanted; ++at) {
    if (fresh && can_be_one(blocks[kept - 1], blocks[at])) {
      join(blocks[kept - 1], blocks[at]);
      ++merged, fresh = false;
      continue;
    }
    if (kept != at) blocks[kept] = std::move(blocks[at]), track.block_starts[kept] = track.block_starts[at];
    ++kept, fresh = true;
  }
  const auto from = static_cast<std::ptrdiff_t>(kept), to = static_cast<std::ptrdiff_t>(at);
  blocks.erase(blocks.begin() + from, blocks.begin() + to);
  track.block_starts.erase(track.block_starts.begin() + from, track.block_starts.begin() + to);
}

size_t bytes_of(const SpanBlock& block) {
  return sizeof(SpanBlock) + block.spans.capacity() * sizeof(Span) + block.chunks.capacity() * sizeof(MeaningTimes);
}

}  // namespace

void order_by_start(std::vector<Span>& spans) { std::ranges::stable_sort(spans, {}, &Span::start); }

void Losses::add(const Losses& more) {
  dropped_records += more.dropped_records;
  invalid_records += more.invalid_records;
  unjoined_kernels += more.unjoined_kernels;
  evicted_spans += more.evicted_spans;
}

NameId Trace::intern(std::string_view name) {
  if (const auto at = name_ids_.find(name); at != name_ids_.end()) return at->second;
  const auto id = static_cast<NameId>(names_.size());
  names_.emplace_back(name);
  name_ids_.emplace(names_.back(), id);
  return id;
}

NameId Trace::intern(const std::shared_ptr<const CodeStack>& stack) {
  if (const auto at = stack_names_.find(stack.get()); at != stack_names_.end()) return at->second;
  const uint64_t hash = stack_hash(*stack);
  const int64_t known =
      stack_places_.find(hash, [&](size_t name) { return *stacks_.at(static_cast<uint32_t>(name)) == *stack; });
  if (known >= 0) return static_cast<NameId>(known);
  const auto id = static_cast<NameId>(names_.size());
  names_.push_back(stack_text(*stack));
  stacks_.emplace(static_cast<uint32_t>(id), stack);
  stack_names_.emplace(stack.get(), id);
  stack_places_.add(hash, static_cast<size_t>(id));
  return id;
}

const std::shared_ptr<const CodeStack>& Trace::shared_stack(NameId id) const {
  static const std::shared_ptr<const CodeStack> none;
  const auto at = stacks_.find(static_cast<uint32_t>(id));
  return at == stacks_.end() ? none : at->second;
}

size_t Trace::DetailHash::operator()(const Detail& d) const {
  uint64_t hash = std::hash<std::string>{}(d.copy_kind);
  const auto mix = [&hash](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u; hash ^= hash >> 32; };
  for (int i = 0; i < 3; ++i) mix(static_cast<uint64_t>(d.grid[i]) << 32 | static_cast<uint32_t>(d.block[i]));
  mix(static_cast<uint64_t>(d.registers) << 32 | static_cast<uint32_t>(d.static_shared));
  mix(static_cast<uint64_t>(d.dynamic_shared));
  mix(d.bytes);
  return hash;
}

DetailId Trace::intern(const Detail& detail) {
  if (detail == Detail{}) return DetailId{0};
  if (const auto at = detail_ids_.find(detail); at != detail_ids_.end()) return at->second;
  if (details_.size() > 0xffff) return DetailId{0};  // all ids are used: these spans have no details
  const auto id = static_cast<DetailId>(details_.size());
  details_.push_back(detail);
  detail_ids_.emplace(detail, id);
  return id;
}

TrackId Trace::track(TrackKind kind, std::string_view name, std::string_view group, int depth, int rank) {
  const uint64_t hash = row_hash(kind, name, group, depth, rank);
  const int64_t known = track_places_.find(hash, [&](size_t place) {
    const Track& track = tracks_[place];
    return track.kind == kind && track.depth == depth && track.rank == rank && track.name == name &&
           track.group == group;
  });
  if (known >= 0) return static_cast<TrackId>(known);
  Track track;
  track.kind = kind;
  track.name = name;
  track.group = group;
  track.depth = depth;
  track.rank = rank;
  track_places_.add(hash, tracks_.size());
  tracks_.push_back(std::move(track));
  return static_cast<TrackId>(tracks_.size() - 1);
}

TrackId Trace::counter(std::string_view name, std::string_view unit, CounterKind kind) {
  const uint64_t hash = mixed(mixed(0, name), unit);
  const int64_t known = counter_places_.find(
      hash, [&](size_t place) { return counters_[place].name == name && counters_[place].unit == unit; });
  if (known >= 0) return static_cast<TrackId>(known);
  counter_places_.add(hash, counters_.size());
  counters_.push_back({std::string(name), std::string(unit), kind, {}});
  return static_cast<TrackId>(counters_.size() - 1);
}

SpanBlock& Trace::open_block(Track& track, const Span& span) {
  if (!track.blocks.empty()) {
    SpanBlock& last = track.blocks.back();
    if (last.count < SpanBlock::kCapacity && last.resident()) return last;
  }
  SpanBlock block;
  block.spans.reserve(SpanBlock::kCapacity);
  block.first = span.start;
  block.last = block.reach = span.end();
  track.blocks.push_back(std::move(block));
  track.block_starts.push_back(span.start);
  carry(track, track.blocks.size() - 1);
  return track.blocks.back();
}

// Inserts into the block that covers the time, and splits the block if it gets too large.
void Trace::insert_late(Track& track, const Span& span) {
  const auto at = std::upper_bound(track.block_starts.begin(), track.block_starts.end(), span.start);
  size_t index = at == track.block_starts.begin() ? 0 : static_cast<size_t>(at - track.block_starts.begin()) - 1;
  while (index < track.blocks.size() && !track.blocks[index].resident()) ++index;  // not into an evicted block
  if (index == track.blocks.size()) return push(open_block(track, span), span);
  SpanBlock& block = track.blocks[index];
  block.spans.insert(std::ranges::upper_bound(block.spans, span.start, {}, &Span::start), span);
  if (block.spans.size() > SpanBlock::kCapacity) {
    SpanBlock tail;
    tail.spans.assign(block.spans.begin() + SpanBlock::kCapacity / 2, block.spans.end());
    block.spans.resize(SpanBlock::kCapacity / 2);
    rebuild(tail);
    track.blocks.insert(track.blocks.begin() + static_cast<std::ptrdiff_t>(index) + 1, std::move(tail));
    track.block_starts.insert(track.block_starts.begin() + static_cast<std::ptrdiff_t>(index) + 1, 0);
  }
  rebuild(track.blocks[index]);
  carry(track, index);
}

void Trace::append(TrackId id, const Span& span) {
  Track& track = tracks_[static_cast<size_t>(id)];
  if (track.spans++ > 0 && span.start < track.last_start) return insert_late(track, span);
  track.last_start = span.start;
  push(open_block(track, span), span);
}

void Trace::append(TrackId track, std::span<const Span> spans) {
  for (const Span& span : spans) append(track, span);
}

void Trace::drop_steps(TrackId id, uint32_t first) {
  Track& track = tracks_[static_cast<size_t>(id)];
  while (!track.blocks.empty() && track.blocks.back().head.step >= first) {
    track.spans -= track.blocks.back().count;
    track.blocks.pop_back(), track.block_starts.pop_back();
  }
  track.last_start = 0;
  if (track.blocks.empty()) return;
  if (SpanBlock& last = track.blocks.back(); last.resident()) {
    const size_t before = last.spans.size();
    std::erase_if(last.spans, [first](const Span& span) { return span.step >= first; });
    track.spans -= before - last.spans.size();
    if (last.spans.size() != before) rebuild(last), carry(track, track.blocks.size() - 1);
    track.last_start = last.spans.back().start;
  } else {
    track.last_start = last.last;
  }
}

void Trace::append_counter(TrackId track, CounterPoint point) {
  auto& points = counters_[static_cast<size_t>(track)].points;
  if (points.empty() || points.back().time <= point.time) return points.push_back(point);
  const auto at = std::ranges::upper_bound(points, point.time, {}, &CounterPoint::time);
  points.insert(at, point);
}

void Trace::append_counter(TrackId track, std::vector<CounterPoint> fresh) {
  auto& points = counters_[static_cast<size_t>(track)].points;
  std::ranges::stable_sort(fresh, {}, &CounterPoint::time);
  const bool late = !points.empty() && !fresh.empty() && fresh.front().time < points.back().time;
  points.insert(points.end(), fresh.begin(), fresh.end());
  if (late) std::ranges::stable_sort(points, {}, &CounterPoint::time);
}

TimeNs Trace::first_time() const {
  TimeNs first = std::numeric_limits<TimeNs>::max();
  for (const Track& track : tracks_) {
    if (!track.blocks.empty()) first = std::min(first, track.blocks.front().first);
  }
  for (const CounterTrack& counter : counters_) {
    if (!counter.points.empty()) first = std::min(first, counter.points.front().time);
  }
  return first == std::numeric_limits<TimeNs>::max() ? 0 : first;
}

TimeNs Trace::last_time() const {
  TimeNs last = std::numeric_limits<TimeNs>::min();
  for (const Track& track : tracks_) {
    if (!track.blocks.empty()) last = std::max(last, track.blocks.back().reach);
  }
  for (const CounterTrack& counter : counters_) {
    if (!counter.points.empty()) last = std::max(last, counter.points.back().time);
  }
  return last == std::numeric_limits<TimeNs>::min() ? 0 : last;
}

size_t Trace::span_count() const {
  size_t count = 0;
  for (const Track& track : tracks_) count += track.spans;
  return count;
}

size_t Trace::resident_bytes() const {
  size_t bytes = memory_.size() * sizeof(MemoryEvent);
  for (const Track& track : tracks_) {
    for (const SpanBlock& block : track.blocks) bytes += bytes_of(block);
  }
  for (const CounterTrack& counter : counters_) bytes += counter.points.size() * sizeof(CounterPoint);
  return bytes;
}

void Trace::evict(size_t budget, TimeNs keep_begin, TimeNs keep_end) {
  evict_memory(budget / 4);
  thin_counters(budget / 4);
  evict_spans(budget, keep_begin, keep_end);
  for (Track& track : tracks_)
    if (track.blocks.size() > kMostEvictedBlocks && !track.blocks[kMostEvictedBlocks].resident())
      merge_oldest(track, kMostEvictedBlocks / 4);
}

// Shrinks to half the budget, so that this happens rarely. Keeps the events of blocks that are still live: without them
// the rest of the history would be wrong.
void Trace::evict_memory(size_t budget) {
  if (memory_.size() * sizeof(MemoryEvent) <= budget) return;
  const auto old_end = memory_.end() - static_cast<std::ptrdiff_t>(budget / 2 / sizeof(MemoryEvent));
  std::map<std::pair<bool, uint64_t>, MemoryEvent> live;
  for (auto event = memory_.begin(); event != old_end; ++event) {
    const bool segment = event->kind == MemoryAction::Reserve || event->kind == MemoryAction::Release;
    const std::pair key(segment, event->address);
    if (event->kind == MemoryAction::Allocate || event->kind == MemoryAction::Reserve)
      live.insert_or_assign(key, *event);
    else
      live.erase(key);
  }
  std::vector<MemoryEvent> kept;
  for (const auto& [key, event] : live) kept.push_back(event);
  std::ranges::stable_sort(kept, {}, &MemoryEvent::time);
  memory_.erase(memory_.begin(), old_end);
  memory_.insert(memory_.begin(), kept.begin(), kept.end());
}

// Keeps the larger point of each pair, because peaks matter most.
void Trace::thin_counters(size_t budget) {
  size_t points = 0;
  for (const CounterTrack& counter : counters_) points += counter.points.size();
  if (points * sizeof(CounterPoint) <= budget) return;
  for (CounterTrack& counter : counters_) {
    auto& list = counter.points;
    const size_t old = list.size() / 2 / 2 * 2;
    for (size_t i = 0; i < old; i += 2) list[i / 2] = {list[i].time, std::max(list[i].value, list[i + 1].value)};
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(old / 2), list.begin() + static_cast<std::ptrdiff_t>(old));
  }
}

// Evicts the oldest blocks of all tracks first. The last block of a track stays, because it is still being filled.
void Trace::evict_spans(size_t budget, TimeNs keep_begin, TimeNs keep_end) {
  size_t bytes = resident_bytes();
  if (bytes <= budget) return;
  using Candidate = std::pair<TimeNs, std::pair<size_t, size_t>>;  // its start; its track and its index
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> oldest;
  const auto offer = [&](size_t track, size_t from) {
    const auto& blocks = tracks_[track].blocks;
    const auto stays = [&](const SpanBlock& block) {
      return block.spans.empty() || (block.first < keep_end && block.last >= keep_begin);
    };
    while (from < blocks.size() && stays(blocks[from])) ++from;
    if (from + 1 < blocks.size()) oldest.push({blocks[from].first, {track, from}});
  };
  for (size_t t = 0; t < tracks_.size(); ++t) offer(t, 0);
  while (bytes > budget && !oldest.empty()) {
    const auto [track, place] = oldest.top().second;
    oldest.pop();
    SpanBlock& block = tracks_[track].blocks[place];
    bytes -= bytes_of(block) - sizeof(SpanBlock);
    if (!backed) losses.evicted_spans += block.count;
    std::vector<Span>().swap(block.spans);  // assigning {} would not free the memory
    std::vector<MeaningTimes>().swap(block.chunks);
    offer(track, place + 1);
  }
}

void Trace::drop_points() {
  memory_.clear();
  for (CounterTrack& counter : counters_) counter.points.clear();
}

void Trace::forget_saved() {
  drop_points();
  for (Track& track : tracks_) {
    if (track.blocks.size() < 2) continue;
    const auto saved = static_cast<std::ptrdiff_t>(track.blocks.size() - 1);
    track.blocks.erase(track.blocks.begin(), track.blocks.begin() + saved);
    track.block_starts.erase(track.block_starts.begin(), track.block_starts.begin() + saved);
    track.forgotten += static_cast<size_t>(saved);
  }
}

void Trace::add_stub(TrackId id, SpanBlock&& stub) {
  Track& track = tracks_[static_cast<size_t>(id)];
  track.spans += stub.count;
  track.last_start = std::max(track.last_start, stub.last);
  track.blocks.push_back(std::move(stub));
  track.block_starts.push_back(0);
  carry(track, track.blocks.size() - 1);
}

bool Trace::fill(TrackId id, size_t index, std::vector<Span>&& spans) {
  Track& track = tracks_[static_cast<size_t>(id)];
  if (index >= track.blocks.size()) return false;
  SpanBlock& block = track.blocks[index];
  if (block.resident()) return true;
  if (spans.size() != block.count || spans.front().start != block.first) return false;
  block.spans = std::move(spans);
  if (!std::ranges::is_sorted(block.spans, {}, &Span::start)) std::ranges::stable_sort(block.spans, {}, &Span::start);
  const auto [total, last] = std::pair(block.total, block.last);
  rebuild(block);
  if (block.total != total || block.last != last) carry(track, index);  // the sums in the file were damaged
  return true;
}

}  // namespace ws::prof
