#include "profiling/run_file/stored_spans.h"

#include <algorithm>

#include "profiling/analysis/gpu_steps.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"
#include "profiling/base/failure.h"

namespace ws::prof {

namespace {

constexpr size_t kBlocksAtOnce = 64;
constexpr TimeNs kEver = kAlways / 2;  // leaves headroom for sums

}  // namespace

StoredSpans::StoredSpans(const std::string& path, std::shared_ptr<const std::atomic<bool>> cancelled)
    : reader_(path), trace_(reader_.outline()), cancelled_(std::move(cancelled)) {}

bool StoredSpans::take(size_t track, size_t block, std::vector<Span>& into) {
  try {
    const auto more = reader_.spans(trace_, static_cast<TrackId>(track), block);
    into.insert(into.end(), more.begin(), more.end());
    return true;
  } catch (const Failure&) {
    unread_.emplace(track, block);
    return false;
  }
}

size_t StoredSpans::unread() const {
  size_t spans = 0;
  for (const auto& [track, block] : unread_) spans += trace_.tracks()[track].blocks[block].count;
  return spans;
}

// Blocks of a file may overlap if spans came late. A span is visited once no later block can begin before it.
void StoredSpans::each(size_t track, TimeNs begin, TimeNs end, const Visit& visit) {
  const auto& blocks = trace_.tracks()[track].blocks;
  const auto from = std::partition_point(blocks.begin(), blocks.end(),
                                         [begin](const SpanBlock& block) { return block.reach < begin; });
  std::vector<Span> waiting;
  for (auto b = static_cast<size_t>(from - blocks.begin()); b <= blocks.size() && !cancelled(); ++b) {
    const bool over = b == blocks.size() || blocks[b].first >= end;
    const TimeNs sure = over ? end : blocks[b].first;  // all spans that start before this are here
    order_by_start(waiting);
    auto span = waiting.begin();
    for (; span != waiting.end() && span->start < sure; ++span)
      if ((span->end() > begin || span->start >= begin) && !visit(*span)) return;
    waiting.erase(waiting.begin(), span);
    if (over) return;
    if (blocks[b].last >= begin) take(track, b, waiting);
  }
}

std::optional<StoredSpans::Found> StoredSpans::next(size_t track, TimeNs from, TimeNs until, const Visit& wanted) {
  std::optional<Found> found;
  each(track, from, until, [&](const Span& span) {
    if (span.start > from && wanted(span)) found = Found{track, span};
    return !found;
  });
  return found;
}

std::optional<StoredSpans::Found> StoredSpans::previous(size_t track, TimeNs from, TimeNs until, const Visit& wanted) {
  const auto& starts = trace_.tracks()[track].block_starts;
  std::optional<Found> found;
  TimeNs end = from;
  while (!found && end > until && !cancelled()) {
    const auto before = static_cast<size_t>(std::ranges::lower_bound(starts, end) - starts.begin());
    if (before == 0) break;
    const TimeNs begin = std::max(until, starts[before > kBlocksAtOnce ? before - kBlocksAtOnce : 0]);
    each(track, begin, end, [&](const Span& span) {
      if (span.start >= begin && span.start > until && wanted(span)) found = Found{track, span};
      return true;
    });
    end = begin;
  }
  return found;
}

std::optional<StoredSpans::Found> StoredSpans::slowest_step() {
  std::optional<Found> slowest;
  for (size_t t = 0; t < trace_.tracks().size(); ++t) {
    if (trace_.tracks()[t].kind != TrackKind::Steps) continue;
    each(t, -kEver, kEver, [&](const Span& span) {
      if (!slowest || span.duration > slowest->span.duration) slowest = Found{t, span};
      return true;
    });
  }
  return slowest;
}

std::optional<Span> StoredSpans::slowest_step_on_gpu() {
  const Track* longest = nullptr;
  for (const Track& track : trace_.tracks())
    if ((track.kind == TrackKind::Stream || track.kind == TrackKind::GraphLaunches) &&
        (!longest || track.blocks.size() > longest->blocks.size()))
      longest = &track;
  std::optional<Span> slowest;
  if (!longest) return slowest;
  GpuSteps steps;
  TimeNs seen = -kEver;
  const auto look = [&] {
    for (const Track& track : steps.trace().tracks()) {
      if (track.kind != TrackKind::Steps) continue;
      for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && block->last >= seen; ++block)
        for (const Span& step : block->spans)
          if (!slowest || step.duration > slowest->duration) slowest = step;
      seen = std::max(seen, track.blocks.empty() ? seen : track.blocks.back().first);
    }
  };
  // Filling does not change the starts; the copy is a precaution.
  const std::vector<TimeNs> starts = longest->block_starts;
  for (size_t b = 0; b < starts.size() && !cancelled(); b += kBlocksAtOnce) {
    const bool last = b + kBlocksAtOnce >= starts.size();
    const TimeNs begin = b == 0 ? -kEver : starts[b], end = last ? kEver : starts[b + kBlocksAtOnce];
    reader_.fill(trace_, begin, end);
    last ? steps.finish(trace_) : steps.update(trace_, end);
    look();
    trace_.evict_spans(0);
  }
  return slowest;
}

// An unreadable block counts as busy from its first span to its last.
std::optional<StoredSpans::Gap> StoredSpans::longest_gap() {
  std::optional<Gap> longest;
  for (size_t t = 0; t < trace_.tracks().size(); ++t) {
    if (trace_.tracks()[t].kind != TrackKind::Stream) continue;
    std::optional<TimeNs> busy_until;
    const auto busy = [&](TimeNs begin, TimeNs end) {
      if (busy_until && begin > *busy_until && (!longest || begin - *busy_until > longest->end - longest->begin))
        longest = Gap{*busy_until, begin};
      busy_until = std::max(busy_until.value_or(end), end);
    };
    size_t next = 0;  // index into the blocks
    const auto pass_unread = [&](TimeNs before) {
      const auto& blocks = trace_.tracks()[t].blocks;
      for (auto at = unread_.lower_bound({t, next});
           at != unread_.end() && at->first == t && blocks[at->second].first <= before; ++at) {
        busy(blocks[at->second].first, blocks[at->second].last);
        next = at->second + 1;
      }
    };
    each(t, -kEver, kEver, [&](const Span& span) {
      pass_unread(span.start);
      busy(span.start, span.end());
      return true;
    });
    pass_unread(kEver);
  }
  return longest;
}

// Splits a range into pieces that contain at most kBlocksAtOnce blocks of a row.
std::vector<TimeNs> StoredSpans::windows(TimeNs begin, TimeNs end) const {
  const Track* longest = nullptr;
  for (const Track& track : trace_.tracks())
    if (on_gpu(track) && (!longest || track.blocks.size() > longest->blocks.size())) longest = &track;
  std::vector<TimeNs> edges{begin};
  for (size_t b = kBlocksAtOnce; longest && b < longest->block_starts.size(); b += kBlocksAtOnce)
    if (const TimeNs at = longest->block_starts[b]; at > edges.back() && at < end) edges.push_back(at);
  edges.push_back(end);
  return edges;
}

void StoredSpans::copy(size_t track, TimeNs begin, TimeNs end, Trace& to) {
  const Track& from = trace_.tracks()[track];
  const TrackId row = to.track(from.kind, from.name, from.group, from.depth, from.rank);
  each(track, begin, end, [&](const Span& span) { to.append(row, span); return true; });
}

void StoredSpans::add_unread(Trace& to, TimeNs begin, TimeNs end) const {
  constexpr TimeNs kLongest = TimeNs{1} << 39;  // the longest span that can be stored
  const TrackId unread = to.track(TrackKind::Untraced, kUntracedTrack, "CPU");
  for (const auto& [t, b] : unread_) {
    if (!on_gpu(trace_.tracks()[t])) continue;
    const SpanBlock& block = trace_.tracks()[t].blocks[b];
    const TimeNs until = std::min(block.last, end);
    for (TimeNs at = std::max(block.first, begin); at < until; at += kLongest) {
      Span rest;
      rest.start = at;
      rest.duration = static_cast<uint64_t>(std::min(until - at, kLongest));
      to.append(unread, rest);
    }
  }
}

Activity StoredSpans::activity(TimeNs begin, TimeNs end) {
  Activity all;
  const int rank = rank_of_steps(trace_);
  const std::vector<TimeNs> edges = windows(begin, end);
  for (size_t w = 0; w + 1 < edges.size() && !cancelled(); ++w) {
    Trace part;
    for (size_t t = 0; t < trace_.tracks().size(); ++t)
      if (const Track& track = trace_.tracks()[t]; (is_of_rank(track, rank) && (on_gpu(track) || untraced(track))) || track.time_of(Meaning::Communication) > 0)
        copy(t, edges[w], edges[w + 1], part);
    add_unread(part, edges[w], edges[w + 1]);
    const Activity here = prof::activity(part, edges[w], edges[w + 1], rank);
    all.wall += here.wall, all.untraced += here.untraced, all.busy += here.busy, all.waiting += here.waiting;
    all.kernels += here.kernels, all.copies += here.copies, all.overlap += here.overlap;
  }
  return all;
}

std::vector<RangeSum> StoredSpans::sum_by_name(size_t track, TimeNs begin, TimeNs end) {
  NameSums sums;
  each(track, begin, end, [&](const Span& span) { sums.add(span, begin, end); return true; });
  return sums.largest_first();
}

ReadBlock StoredSpans::reading() {
  return [this](size_t track, size_t block, const UseSpans& use) {
    std::vector<Span> spans;
    if (!cancelled() && take(track, block, spans)) use(spans);
  };
}

MultiprocessorReport StoredSpans::multiprocessors() { return multiprocessor_report(trace_, reading()); }

RankReport StoredSpans::ranks() {
  RunData newest;
  newest.summary = reader_.summary(), newest.trace = reader_.newest_trace();
  newest.evaluations = reader_.evaluations(), newest.marks = reader_.marks();
  RankReport report = rank_report(trace_, reading(), clock_error_of(reader_.summary()), sample_of_ranks(newest));
  add_summary(report, reader_.summary());
  if (const size_t lost = unread(); lost > 0)
    report.notes.push_back(std::to_string(lost) + " spans cannot be read: their collectives are not compared.");
  return report;
}

}  // namespace ws::prof
