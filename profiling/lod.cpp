#include "profiling/lod.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace ws::prof {

namespace {

// A place between spans: the first span not before some time.
struct Place {
  size_t block = 0, index = 0;
  bool operator==(const Place&) const = default;
};

struct Sums {
  size_t count = 0;
  MeaningTimes times{};
};

// Sums over all spans before a place.
Sums sums_before(const Track& track, Place place) {
  Sums sums;
  if (track.blocks.empty()) return sums;
  if (place.block == track.blocks.size()) {
    const SpanBlock& last = track.blocks.back();
    sums.count = last.count_before + last.count;
    for (size_t m = 0; m < kMeanings; ++m) sums.times[m] = last.before[m] + last.total[m];
    return sums;
  }
  const SpanBlock& block = track.blocks[place.block];
  sums.count = block.count_before + place.index;
  sums.times = block.before;
  if (place.index == 0) return sums;
  const size_t chunk = std::min(place.index / SpanBlock::kChunk, block.chunks.size() - 1);
  for (size_t m = 0; m < kMeanings; ++m) sums.times[m] += block.chunks[chunk].before[m];
  for (size_t i = chunk * SpanBlock::kChunk; i < place.index; ++i) {
    const Span& span = block.spans[i];
    sums.times[std::min<size_t>(span.meaning, kMeanings - 1)] += static_cast<int64_t>(span.duration);
  }
  return sums;
}

size_t place_in_block(const SpanBlock& block, TimeNs time) {
  if (block.first >= time) return 0;
  const auto chunk = std::ranges::lower_bound(block.chunks, time, {}, &SpanChunk::first);
  const size_t end =
      std::min(static_cast<size_t>(chunk - block.chunks.begin()) * SpanBlock::kChunk, block.spans.size());
  const size_t begin = end == 0 ? 0 : (static_cast<size_t>(chunk - block.chunks.begin()) - 1) * SpanBlock::kChunk;
  const auto from = block.spans.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto to = block.spans.begin() + static_cast<std::ptrdiff_t>(end);
  return static_cast<size_t>(std::ranges::lower_bound(from, to, time, {}, &Span::start) - block.spans.begin());
}

// First span with start >= time, at or after `from`. A block out of memory is one piece and counts by its start.
Place seek(const Track& track, Place from, TimeNs time) {
  const auto& starts = track.block_starts;
  size_t low = from.block, step = 1;  // galloping: the next pixel is near
  while (low + step < starts.size() && starts[low + step] < time) low += step, step *= 2;
  const auto end = starts.begin() + static_cast<std::ptrdiff_t>(std::min(low + step, starts.size()));
  const auto at = std::lower_bound(starts.begin() + static_cast<std::ptrdiff_t>(low), end, time);
  const auto next = static_cast<size_t>(at - starts.begin());
  if (next == from.block) return from;
  const SpanBlock& block = track.blocks[next - 1];
  if (!block.resident()) return {next, 0};
  const size_t index = place_in_block(block, time);
  const Place place = index == block.spans.size() ? Place{next, 0} : Place{next - 1, index};
  return place.block == from.block ? Place{place.block, std::max(place.index, from.index)} : place;
}

// First span that ends after `time`.
Place first_ending_after(const Track& track, TimeNs time) {
  const auto at = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                       [time](const SpanBlock& block) { return block.reach <= time; });
  const auto block = static_cast<size_t>(at - track.blocks.begin());
  if (at == track.blocks.end() || !at->resident()) return {block, 0};
  const auto span = std::ranges::find_if(at->spans, [time](const Span& s) { return s.end() > time; });
  return {block, static_cast<size_t>(span - at->spans.begin())};
}

const Span& span_at(const Track& track, Place place) {
  const SpanBlock& block = track.blocks[place.block];
  return block.resident() ? block.spans[place.index] : block.head;
}

// The last span before a place, or the block out of memory that stands there.
const Span& span_before(const Track& track, Place place) {
  const SpanBlock& block = track.blocks[place.index > 0 ? place.block : place.block - 1];
  if (!block.resident()) return block.head;
  return place.index > 0 ? block.spans[place.index - 1] : block.spans.back();
}

TimeNs end_before(const Track& track, Place place) {
  const SpanBlock& block = track.blocks[place.index > 0 ? place.block : place.block - 1];
  return block.resident() ? span_before(track, place).end() : block.last;
}

Meaning greatest(const MeaningTimes& times) {
  size_t best = static_cast<size_t>(Meaning::Allocation);
  for (size_t m = 0; m < kMeanings; ++m) {
    if (times[m] > times[best]) best = m;
  }
  return static_cast<Meaning>(best);
}

struct Scale {
  TimeNs begin;
  double pixels_per_ns, ns_per_pixel;
  int pixels;
  double x(TimeNs time) const { return static_cast<double>(time - begin) * pixels_per_ns; }
  // The column right of the one that `time` is in. Rounding must not leave us in the same column for ever.
  TimeNs next_column(TimeNs time) const {
    const double column = std::max(0.0, std::floor(x(time)));
    return std::max(time + 1, begin + static_cast<TimeNs>(std::ceil((column + 1) * ns_per_pixel)));
  }
};

LodRect single(const Scale& scale, const Span& span) {
  const auto x0 = static_cast<float>(std::max(0.0, scale.x(span.start)));
  const auto x1 = static_cast<float>(std::min<double>(scale.pixels, scale.x(span.end())));
  return {x0, x1, span, 1, 1.0f, span.span_meaning()};
}

LodRect folded(const Scale& scale, const Track& track, Place from, Place to, const Sums& a, const Sums& b) {
  const Span& first = span_at(track, from);
  const Span& last = span_before(track, to);
  const TimeNs begin = std::max(first.start, scale.begin);
  const TimeNs end = std::max({first.end(), end_before(track, to), begin + 1});
  MeaningTimes times;
  int64_t covered = 0;
  for (size_t m = 0; m < kMeanings; ++m) covered += times[m] = b.times[m] - a.times[m];
  LodRect rect{static_cast<float>(scale.x(begin)),
               static_cast<float>(std::min<double>(scale.pixels, scale.x(end))),
               last.duration > first.duration ? last : first,
               static_cast<uint32_t>(b.count - a.count),
               1.0f,
               greatest(times)};
  rect.busy = static_cast<float>(std::min(1.0, static_cast<double>(covered) / static_cast<double>(end - begin)));
  if (std::max(first.duration, last.duration) < scale.ns_per_pixel) rect.span = first;
  return rect;
}

void prefetch(const Track& track, TimeNs time, size_t near_block) {
  const auto from = track.block_starts.begin() + static_cast<std::ptrdiff_t>(near_block);
  const auto to = track.block_starts.end() - from > 512 ? from + 512 : track.block_starts.end();
  const auto at = std::lower_bound(from, to, time);
  if (at == to || at == track.block_starts.begin()) return;
  const SpanBlock& block = track.blocks[static_cast<size_t>(at - track.block_starts.begin()) - 1];
  __builtin_prefetch(&block.first);
  __builtin_prefetch(&block.before);
  __builtin_prefetch(&block.chunks);
}

}  // namespace

std::vector<LodRect> lod(const Track& track, TimeNs begin, TimeNs end, int pixels) {
  std::vector<LodRect> rects;
  if (end <= begin || pixels <= 0 || track.blocks.empty()) return rects;
  const double length = static_cast<double>(end - begin);
  const Scale scale{begin, pixels / length, length / pixels, pixels};
  Place place = first_ending_after(track, begin);
  Sums sums;
  Place sums_at{track.blocks.size() + 1, 0};
  while (place.block < track.blocks.size() && span_at(track, place).start < end) {
    const Span& span = span_at(track, place);
    const TimeNs column_end = std::min(end, scale.next_column(std::max(span.start, begin)));
    prefetch(track, column_end + static_cast<TimeNs>(2 * scale.ns_per_pixel), place.block);
    const Place next = seek(track, place, column_end);
    const bool alone =
        track.blocks[place.block].resident() &&
        (next == Place{place.block, place.index + 1} ||
         (next == Place{place.block + 1, 0} && place.index + 1 == track.blocks[place.block].spans.size()));
    if (alone) {
      rects.push_back(single(scale, span));
    } else {
      if (!(sums_at == place)) sums = sums_before(track, place);
      const Sums after = sums_before(track, next);
      rects.push_back(folded(scale, track, place, next, sums, after));
      sums = after;
      sums_at = next;
    }
    place = next;
  }
  return rects;
}

std::vector<LodPoint> lod(const CounterTrack& counter, TimeNs begin, TimeNs end, int pixels) {
  std::vector<LodPoint> columns;
  if (end <= begin || pixels <= 0) return columns;
  const double pixels_per_ns = pixels / static_cast<double>(end - begin);
  auto at = std::ranges::lower_bound(counter.points, begin, {}, &CounterPoint::time);
  if (at != counter.points.begin()) {  // the value that holds at the left edge
    const double value = std::prev(at)->value;
    columns.push_back({0, value, value, value});
  }
  for (; at != counter.points.end() && at->time < end; ++at) {
    const auto x = static_cast<float>(std::floor(static_cast<double>(at->time - begin) * pixels_per_ns));
    if (columns.empty() || columns.back().x < x) {
      columns.push_back({x, at->value, at->value, at->value});
      continue;
    }
    LodPoint& column = columns.back();
    column.min = std::min(column.min, at->value);
    column.max = std::max(column.max, at->value);
    column.last = at->value;
  }
  return columns;
}

namespace {

// Whether all blocks that touch the range are as `test` says; it sees no more once one is not.
template <class Test>
bool all_blocks(const Track& track, TimeNs begin, TimeNs end, Test test) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [begin](const SpanBlock& b) { return b.reach < begin; });
  for (; block != track.blocks.end() && block->first < end; ++block)
    if (block->last >= begin && !test(*block)) return false;
  return true;
}

}  // namespace

size_t spans_out_of_memory(const Track& track, TimeNs begin, TimeNs end) {
  size_t count = 0;
  all_blocks(track, begin, end, [&](const SpanBlock& b) { return count += b.resident() ? 0 : b.count, true; });
  return count;
}

size_t spans_about(const Track& track, TimeNs begin, TimeNs end) {
  size_t count = 0;
  all_blocks(track, begin, end, [&](const SpanBlock& b) { return count += b.count, true; });
  return count;
}

bool in_memory(const Track& track, TimeNs begin, TimeNs end) {
  return all_blocks(track, begin, end, [](const SpanBlock& block) { return block.resident(); });
}

const Span* find_at(const Track& track, TimeNs time) {
  for (Place at = first_ending_after(track, time); at.block < track.blocks.size(); at = {at.block + 1, 0}) {
    const SpanBlock& block = track.blocks[at.block];
    if (block.first > time) return nullptr;
    for (size_t i = at.index; i < block.spans.size() && block.spans[i].start <= time; ++i) {
      if (block.spans[i].end() > time) return &block.spans[i];
    }
  }
  return nullptr;
}

const Span* next_named(const Track& track, NameId name, TimeNs after) {
  for (Place at = seek(track, {}, after + 1); at.block < track.blocks.size(); at = {at.block + 1, 0}) {
    const auto& spans = track.blocks[at.block].spans;
    for (size_t i = at.index; i < spans.size(); ++i) {
      if (spans[i].name == name) return &spans[i];
    }
  }
  return nullptr;
}

const Span* previous_named(const Track& track, NameId name, TimeNs before) {
  const Place end = seek(track, {}, before);
  for (size_t b = std::min(end.block + 1, track.blocks.size()); b-- > 0;) {
    const auto& spans = track.blocks[b].spans;
    for (size_t i = b == end.block ? end.index : spans.size(); i-- > 0;) {
      if (spans[i].name == name) return &spans[i];
    }
  }
  return nullptr;
}

void NameSums::add(const Span& span, TimeNs begin, TimeNs end) {
  if (span.start >= end || (span.end() <= begin && span.duration > 0)) return;
  const auto key = static_cast<uint32_t>(span.name);
  RangeSum& sum = sums_.try_emplace(key, RangeSum{span.name, span.span_meaning(), 0, 0}).first->second;
  ++sum.count;
  sum.total_ns += std::min(span.end(), end) - std::max(span.start, begin);
}

std::vector<RangeSum> NameSums::largest_first() const {
  std::vector<RangeSum> result;
  for (const auto& [name, sum] : sums_) result.push_back(sum);
  std::ranges::sort(result, [](const RangeSum& a, const RangeSum& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  return result;
}

std::vector<RangeSum> sum_by_name(const Track& track, TimeNs begin, TimeNs end) {
  NameSums sums;
  for (Place at = first_ending_after(track, begin); at.block < track.blocks.size(); at = {at.block + 1, 0}) {
    const auto& block = track.blocks[at.block];
    if (block.first >= end) break;
    for (size_t i = at.index; i < block.spans.size() && block.spans[i].start < end; ++i)
      sums.add(block.spans[i], begin, end);
  }
  return sums.largest_first();
}

}  // namespace ws::prof
