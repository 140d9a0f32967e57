#include "profiling/trace/lod.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstddef>

#include "profiling/trace/trace.h"

namespace ws::prof {

namespace {

// A position between spans. It names the first span that starts no earlier than some time.
struct Place {
  size_t block = 0, index = 0;
  auto operator<=>(const Place&) const = default;
};

struct Sums {
  size_t count = 0;
  MeaningTimes times{};
};

// Sums over all spans before a place.
Sums sums_before(const Track& track, Place place) {
  Sums sums;
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
  const size_t chunk = std::min((place.index + block.chunk_size / 2) / block.chunk_size, block.chunks.size() - 1);
  const size_t begin = chunk * block.chunk_size;  // start of the nearest chunk, before or after the place
  for (size_t m = 0; m < kMeanings; ++m) sums.times[m] += block.chunks[chunk][m];
  for (size_t i = begin; i < place.index; ++i) add_time(sums.times, block.spans[i]);
  for (size_t i = place.index; i < begin; ++i) add_time(sums.times, block.spans[i], -1);
  return sums;
}

// Returns the first index in [low, high) whose time is not before `time`. Times ascend. The search widens from a guess:
// a good guess reads only a few neighbouring entries.
template <class TimeAt>
size_t first_not_before(size_t low, size_t high, size_t guess, TimeNs time, TimeAt at) {
  size_t from = std::clamp(guess, low, high), to = from;
  if (from < high && at(from) < time) {
    for (size_t step = 1; to < high && at(to) < time; step *= 2) from = to + 1, to = std::min(to + step, high);
  } else {
    for (size_t step = 1; from > low && at(from - 1) >= time; step *= 2)
      to = from - 1, from -= std::min(step, from - low);
  }
  while (from < to) {
    const size_t middle = from + (to - from) / 2;
    at(middle) < time ? from = middle + 1 : to = middle;
  }
  return from;
}

// The last chunk that starts before `time`.
size_t chunk_before(const SpanBlock& block, TimeNs time) {
  const auto begin = block.chunk_starts.begin(), end = begin + static_cast<std::ptrdiff_t>(block.chunks.size());
  const auto at = std::lower_bound(begin, end, time);
  return at == begin ? 0 : static_cast<size_t>(at - begin) - 1;
}

size_t likely_place(const SpanBlock& block, size_t chunk, TimeNs time) {
  const bool last = chunk + 1 == block.chunks.size();
  const TimeNs begin = block.chunk_starts[chunk], end = last ? block.last : block.chunk_starts[chunk + 1];
  const double share = std::clamp(static_cast<double>(time - begin) / static_cast<double>(end - begin + 1), 0.0, 1.0);
  return chunk * block.chunk_size + static_cast<size_t>(share * static_cast<double>(block.chunk_size));
}

size_t place_in_block(const SpanBlock& block, TimeNs time) {
  const size_t chunk = chunk_before(block, time), begin = chunk * block.chunk_size;
  return first_not_before(begin, std::min(begin + block.chunk_size, block.spans.size()),
                          likely_place(block, chunk, time), time, [&](size_t i) { return block.spans[i].start; });
}

// The first block that does not start before `time`, searched from a guess.
size_t block_from(const Track& track, size_t guess, TimeNs time) {
  return first_not_before(0, track.block_starts.size(), guess, time, [&](size_t i) { return track.block_starts[i]; });
}

// First span with start >= time. `next` is the first block that does not start before `time`. An evicted block is one
// piece that counts by its start.
Place place_before(const Track& track, size_t next, TimeNs time) {
  if (next == 0 || !track.blocks[next - 1].resident()) return {next, 0};
  const size_t index = place_in_block(track.blocks[next - 1], time);
  return index == track.blocks[next - 1].spans.size() ? Place{next, 0} : Place{next - 1, index};
}

Place seek(const Track& track, TimeNs time) { return place_before(track, block_from(track, 0, time), time); }

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

// The last span before a place, or the head of the evicted block there.
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
  TimeNs begin, end;
  int pixels;
  double ns_per_pixel = static_cast<double>(end - begin) / pixels;
  double pixels_per_ns = pixels / static_cast<double>(end - begin);
  double x(TimeNs time) const { return static_cast<double>(time - begin) * pixels_per_ns; }
  TimeNs column_end(int pixel) const {
    return pixel + 1 < pixels ? begin + static_cast<TimeNs>(std::ceil((pixel + 1) * ns_per_pixel)) : end;
  }
};

bool alone(const Track& track, Place span, Place next) {
  const SpanBlock& block = track.blocks[span.block];
  if (!block.resident()) return false;
  const bool ends_block = span.index + 1 == block.spans.size();
  return next == (ends_block ? Place{span.block + 1, 0} : Place{span.block, span.index + 1});
}

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

// Finds where each column ends. Blocks are far apart in memory, so most of the time would be cache misses. Many columns
// are therefore looked up together, and their data is prefetched one round ahead.
class ColumnEnds {
 public:
  static constexpr int kTogether = 32;
  ColumnEnds(const Track& track, const Scale& scale) : track_(track), scale_(scale) {}

  // Ends of kTogether columns, beginning with column `first`.
  const std::array<Place, kTogether>& find(int first) {
    Times times;
    for (int i = 0; i < kTogether; ++i) times[i] = scale_.column_end(first + i);
    const bool one_block = block_from(track_, block_ + stride_ * kTogether, times.back()) == block_;
    one_block ? find_in_block(times) : find_in_blocks(times);
    return ends_;
  }

 private:
  using Times = std::array<TimeNs, kTogether>;

  void find_in_block(const Times& times) {
    Place at = ends_.back();
    for (int i = 0; i < kTogether; ends_[i++] = at) {
      if (at.block == block_) continue;  // no more spans in this block
      const auto& spans = track_.blocks[at.block].spans;
      at.index = first_not_before(at.index, spans.size(), at.index, times[i], [&](size_t s) { return spans[s].start; });
      if (at.index == spans.size()) at = {block_, 0};
    }
  }

  void find_in_blocks(const Times& times) {
    std::array<size_t, kTogether> next;
    for (int i = 0; i < kTogether; ++i) {
      const size_t before = block_;
      block_ = next[i] = block_from(track_, block_ + stride_, times[i]);
      stride_ = block_ - before;
      if (block_ == 0) continue;
      const auto* header = reinterpret_cast<const char*>(&track_.blocks[block_ - 1]);
      for (size_t line = 0; line < offsetof(SpanBlock, total); line += 64) __builtin_prefetch(header + line);
    }
    for (int i = 0; i < kTogether; ++i) {
      if (next[i] == 0 || !track_.blocks[next[i] - 1].resident()) continue;
      const SpanBlock& block = track_.blocks[next[i] - 1];
      const size_t chunk = chunk_before(block, times[i]), place = likely_place(block, chunk, times[i]);
      __builtin_prefetch(&block.chunks[chunk]);
      __builtin_prefetch(&block.spans[std::min(place, block.spans.size() - 1)]);
    }
    for (int i = 0; i < kTogether; ++i) ends_[i] = place_before(track_, next[i], times[i]);
  }

  const Track& track_;
  const Scale& scale_;
  size_t block_ = 0, stride_ = 0;  // where the last column ended, and how many blocks it covered
  std::array<Place, kTogether> ends_{};
};

}  // namespace

std::vector<LodRect> lod(const Track& track, TimeNs begin, TimeNs end, int pixels) {
  std::vector<LodRect> rects;
  if (end <= begin || pixels <= 0 || track.blocks.empty()) return rects;
  const Scale scale{begin, end, pixels};
  ColumnEnds ends(track, scale);
  Place place = first_ending_after(track, begin);
  Sums sums;
  Place sums_at{track.blocks.size() + 1, 0};
  for (int first = 0; first < pixels; first += ColumnEnds::kTogether) {
    for (const Place next : ends.find(first)) {
      if (!(place < next)) continue;
      if (alone(track, place, next)) {
        rects.push_back(single(scale, span_at(track, place)));
      } else {
        if (!(sums_at == place)) sums = sums_before(track, place);
        const Sums after = sums_before(track, next);
        rects.push_back(folded(scale, track, place, next, sums, after));
        sums = after;
        sums_at = next;
      }
      place = next;
    }
  }
  return rects;
}

std::vector<LodPoint> lod(const CounterTrack& counter, TimeNs begin, TimeNs end, int pixels) {
  std::vector<LodPoint> columns;
  if (end <= begin || pixels <= 0) return columns;
  const double pixels_per_ns = pixels / static_cast<double>(end - begin);
  auto at = std::ranges::lower_bound(counter.points, begin, {}, &CounterPoint::time);
  if (at != counter.points.begin()) {  // the value at the left edge
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

// True if `test` is true for all blocks that touch the range. Stops at the first block that fails.
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
  all_blocks(track, begin, end, [&](const SpanBlock& b) { count += b.resident() ? 0 : b.count; return true; });
  return count;
}

size_t spans_about(const Track& track, TimeNs begin, TimeNs end) {
  size_t count = 0;
  all_blocks(track, begin, end, [&](const SpanBlock& b) { count += b.count; return true; });
  return count;
}

bool in_memory(const Track& track, TimeNs begin, TimeNs end) {
  return all_blocks(track, begin, end, [](const SpanBlock& block) { return block.resident(); });
}

const Span* next_named(const Track& track, NameId name, TimeNs after) {
  for (Place at = seek(track, after + 1); at.block < track.blocks.size(); at = {at.block + 1, 0}) {
    const auto& spans = track.blocks[at.block].spans;
    for (size_t i = at.index; i < spans.size(); ++i) {
      if (spans[i].name == name) return &spans[i];
    }
  }
  return nullptr;
}

const Span* previous_named(const Track& track, NameId name, TimeNs before) {
  const Place end = seek(track, before);
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
