#include "profiling/analysis/collective_waits.h"

#include <algorithm>
#include <set>

#include "profiling/base/text.h"

namespace ws::prof {
namespace {

bool touches(const SpanBlock& block, TimeRange range) { return block.first < range.end && block.reach > range.begin; }

// Blocks are whole, so that calls beside the range are there, too.
ReadBlock blocks_in(const Trace& trace, TimeRange range) {
  return [&trace, range](size_t track, size_t block, const UseSpans& use) {
    const SpanBlock& one = trace.tracks()[track].blocks[block];
    if (touches(one, range)) use(one.spans);
  };
}

bool compares(const Trace& trace, TimeRange range, size_t most) {
  std::set<int> ranks;
  size_t spans = 0;
  for (const Track& track : trace.tracks()) {
    if (track.rank < 0 || track.time_of(Meaning::Communication) == 0) continue;
    ranks.insert(track.rank);
    auto block = std::ranges::lower_bound(track.blocks, range.end, {}, &SpanBlock::first);
    while (block != track.blocks.begin() && spans <= most && (--block)->reach > range.begin) spans += block->count;
  }
  return ranks.size() > 1 && spans <= most;
}

}  // namespace

Arrivals arrivals(const Collectives& found, const MatchedCalls& matched, size_t match) {
  Arrivals all{kAlways, -kAlways};
  for (size_t r = 0; r < matched.ranks; ++r) {
    const uint32_t index = matched.index(match, r);
    if (index == MatchedCalls::kNone) continue;
    const TimeNs begin = found.calls[r][index].begin;
    all.first = std::min(all.first, begin);
    if (begin > all.last) all.last = begin, all.last_rank = r;
    ++all.count;
  }
  return all;
}

CollectiveParts parts_of(const CollectiveCall& call, const Arrivals& arrivals) {
  return {arrivals.last - call.begin, std::max<TimeNs>(0, call.end - arrivals.last)};
}

std::string parts_text(const CollectiveParts& parts) {
  const auto text = [](TimeNs ns) { return time_text(static_cast<double>(ns) * 1e-3); };
  return "waits " + text(parts.wait) + ", transfers " + text(parts.transfer);
}

std::optional<CollectiveParts> parts_of_collective(const Trace& trace, const Track& track, const Span& span, TimeNs clock_error) {
  if (track.rank < 0 || span.span_meaning() != Meaning::Communication) return std::nullopt;
  return CollectiveWaits(trace, {span.start, span.end()}, clock_error).of(track.rank, span);
}

CollectiveWaits::CollectiveWaits(const Trace& trace, TimeRange range, TimeNs clock_error, size_t most) {
  if (!compares(trace, range, most)) return;
  Collectives found;
  found.add(trace, blocks_in(trace, range));
  const MatchedCalls matched = match_by_time(found, clock_error);
  for (size_t m = 0; m < matched.size(); ++m) {
    const Arrivals all = arrivals(found, matched, m);
    if (all.count < 2) continue;
    for (size_t r = 0; r < matched.ranks; ++r) {
      if (matched.index(m, r) == MatchedCalls::kNone) continue;
      const CollectiveCall& call = found.calls[r][matched.index(m, r)];
      calls_[found.ranks[r]].push_back({call.begin, call.end, parts_of(call, all)});
    }
  }
  for (auto& [rank, calls] : calls_) std::ranges::sort(calls, {}, &Known::begin);
}

std::optional<CollectiveParts> CollectiveWaits::of(int rank, const Span& span) const {
  const auto calls = calls_.find(rank);
  if (calls == calls_.end()) return std::nullopt;
  auto at = std::ranges::lower_bound(calls->second, span.start, {}, &Known::begin);
  for (; at != calls->second.end() && at->begin == span.start; ++at)
    if (at->end == span.end()) return at->parts;
  return std::nullopt;
}

}  // namespace ws::prof
