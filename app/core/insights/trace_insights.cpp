#include "app/core/insights/trace_insights.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

using prof::Meaning;
using prof::Span;
using prof::SpanKind;
using prof::TimeNs;
using prof::Track;
using prof::TrackKind;

constexpr double kShareWorthSaying = 0.05;     // of the time that is judged
constexpr double kIdle = 0.4;             // a GPU that idles more has a cause worth finding
constexpr TimeNs kTiny = 5'000;           // a launch costs as much
constexpr uint64_t kManyTiny = 200;
constexpr size_t kMostSpans = 400'000;    // what can be judged in a moment

struct Gap {
  TimeNs length = 0, begin = 0;
  std::optional<prof::FoundSpan> next;  // what ended it
};

// What the rules ask for, found in one walk over the spans.
struct Seen {
  uint64_t kernels = 0, tiny = 0, waits = 0, allocator_calls = 0, copies = 0, copied_bytes = 0;
  TimeNs wait_time = 0, allocator_time = 0;
  std::optional<prof::FoundSpan> longest_wait, longest_allocation, longest_copy, commonest_tiny;
  std::unordered_map<uint32_t, uint64_t> tiny_by_name;
  Gap gap;
};

bool is_copy(const Span& span) { return span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset; }
bool is_allocation(const Span& span) {
  return span.span_kind() == SpanKind::Alloc || span.span_kind() == SpanKind::Free ||
         (span.span_kind() == SpanKind::Api && span.span_meaning() == Meaning::Allocation);
}
bool is_wait(const Span& span) {
  return span.span_kind() == SpanKind::Sync ||
         (span.span_kind() == SpanKind::Api && span.span_meaning() == Meaning::Sync);
}

void keep_longest(std::optional<prof::FoundSpan>& kept, size_t track, const Span& span) {
  if (!kept || span.duration > kept->span.duration) kept = prof::FoundSpan{track, span};
}

void see_gpu(Seen& seen, const prof::Trace& trace, size_t track, const Span& span) {
  if (is_copy(span)) {
    ++seen.copies;
    seen.copied_bytes += trace.detail(span.detail).bytes;
    return keep_longest(seen.longest_copy, track, span);
  }
  if (!prof::is_kernel(span)) return;
  ++seen.kernels;
  if (static_cast<TimeNs>(span.duration) >= kTiny) return;
  ++seen.tiny;
  ++seen.tiny_by_name[static_cast<uint32_t>(span.name)];
}

void see_call(Seen& seen, const Track& track, size_t index, const Span& span) {
  if (is_allocation(span)) {
    ++seen.allocator_calls;
    seen.allocator_time += static_cast<TimeNs>(span.duration);
    keep_longest(seen.longest_allocation, index, span);
  } else if (is_wait(span) && !prof::is_stream_wait(track, span)) {
    ++seen.waits;
    seen.wait_time += static_cast<TimeNs>(span.duration);
    keep_longest(seen.longest_wait, index, span);
  }
}

// Over all streams together: from where all are done to where the first goes on.
void find_gap(Seen& seen, const TraceLook& look) {
  std::vector<prof::FoundSpan> work;
  const auto& tracks = look.trace->tracks();
  for (size_t i = 0; i < tracks.size(); ++i)
    if (prof::on_gpu(tracks[i]))
      prof::for_each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
        if (is_copy(span) || prof::is_kernel(span)) work.push_back({i, span});
        return true;
      });
  std::ranges::sort(work, {}, [](const prof::FoundSpan& place) { return place.span.start; });
  TimeNs done = work.empty() ? 0 : work.front().span.start;
  for (const prof::FoundSpan& place : work) {
    if (place.span.start - done > seen.gap.length) seen.gap = {place.span.start - done, done, place};
    done = std::max(done, place.span.end());
  }
}

Seen look_at(const TraceLook& look) {
  Seen seen;
  const auto& tracks = look.trace->tracks();
  for (size_t i = 0; i < tracks.size(); ++i) {
    const bool gpu = prof::on_gpu(tracks[i]), calls = tracks[i].kind == TrackKind::Api;
    if (!gpu && !calls) continue;
    prof::for_each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
      gpu ? see_gpu(seen, *look.trace, i, span) : see_call(seen, tracks[i], i, span);
      return true;
    });
  }
  find_gap(seen, look);
  const auto most = std::ranges::max_element(seen.tiny_by_name, {}, [](const auto& entry) { return entry.second; });
  for (size_t i = 0; most != seen.tiny_by_name.end() && i < tracks.size() && !seen.commonest_tiny; ++i)
    if (prof::on_gpu(tracks[i]))
      prof::for_each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
        const bool wanted = static_cast<uint32_t>(span.name) == most->first && prof::is_kernel(span) &&
                            static_cast<TimeNs>(span.duration) < kTiny;
        if (wanted) seen.commonest_tiny = prof::FoundSpan{i, span};
        return !wanted;
      });
  return seen;
}

// With some of what comes before and after it.
void show_at(Insight& insight, const std::optional<prof::FoundSpan>& place, TimeNs gap_before = 0) {
  insight.place = place;
  if (!place) return;
  const TimeNs own = static_cast<TimeNs>(place->span.duration);
  const TimeNs margin = gap_before > 0 ? gap_before / 4 : std::max<TimeNs>(20 * own, 20'000);
  insight.around = {place->span.start - gap_before - margin, place->span.end() + margin};
}

std::string time(double ns) { return time_text(ns * 1e-3); }

struct Judged {
  const TraceLook& look;
  const Seen& seen;
  const RunFacts& facts;
  prof::Activity activity;
  double wall() const { return static_cast<double>(look.end - look.begin); }
  double part(Meaning m) const { return facts.part(m) * 1e3; }  // ns
};

using Found = std::optional<Insight>;

// What the host did while the GPU had nothing to do.
std::string why_idle(const Judged& j) {
  const std::pair<Meaning, const char*> causes[] = {
      {Meaning::Allocation, "Most of that time the host is inside the allocator."},
      {Meaning::Sync, "Most of that time the host waits for work that is already done, and then prepares the next."},
      {Meaning::Launch, "Most of that time the next launch is still on its way from the host."},
      {Meaning::Idle, "Most of that time the host does something else than CUDA: look at its own code there, at loading "
                      "data, or at Python."}};
  const auto most = std::ranges::max_element(causes, {}, [&](const auto& cause) { return j.part(cause.first); });
  return most->second;
}

Found idle_gpu(const Judged& j) {
  const double idle = j.wall() - static_cast<double>(j.activity.busy + j.activity.untraced);
  if (j.seen.kernels == 0 || idle < kIdle * j.wall()) return {};
  Insight found{"idle GPU",
                "the GPU does nothing for " + percent(idle / j.wall(), 0) + " of " + time(j.wall()),
                why_idle(j) + " “Show” goes to the longest gap.",
                {},
                0,
                Meaning::Idle};
  show_at(found, j.seen.gap.next, j.seen.gap.length);
  found.cost_ns = idle;
  return found;
}

Found tiny_kernels(const Judged& j) {
  if (j.seen.tiny < kManyTiny || j.seen.tiny * 2 < j.seen.kernels) return {};
  Insight found{"tiny kernels",
                count_text(static_cast<double>(j.seen.tiny)) + " of " +
                    count_text(static_cast<double>(j.seen.kernels)) + " kernels run for less than 5 µs",
                "Launching such a kernel takes the host as long as the GPU needs to run it. Fuse neighbours, raise the "
                "batch, or launch many at once as a CUDA graph.",
                {},
                0,
                Meaning::Launch};
  show_at(found, j.seen.commonest_tiny);
  found.cost_ns = static_cast<double>(j.seen.tiny) * kTiny;
  return found;
}

Found waits(const Judged& j) {
  const double spent = j.part(Meaning::Sync);
  if (j.seen.waits == 0 || spent < kShareWorthSaying * j.wall()) return {};
  Insight found{"waits",
                "the host waits " + count_text(static_cast<double>(j.seen.waits)) + " times while the GPU does nothing: " +
                    time(spent) + ", " + percent(spent / j.wall(), 0) + " of the time",
                "Each wait ends after the GPU has run dry. Wait only where a result is read; in PyTorch, .item() and "
                ".cpu() wait too.",
                {},
                0,
                Meaning::Sync};
  show_at(found, j.seen.longest_wait);
  found.cost_ns = spent;
  return found;
}

Found slowest_gap(const Judged& j) {
  const auto length = static_cast<double>(j.seen.gap.length);
  if (!j.seen.gap.next || length < kShareWorthSaying * j.wall()) return {};
  Insight found{"slowest gap",
                "the longest gap on the GPU lasts " + time(length) + ", " + percent(length / j.wall(), 0) +
                    " of the time",
                "It ends with " + prof::short_kernel_name(j.look.trace->name(j.seen.gap.next->span.name)) +
                    ". A single gap of this size is often a first call, a file that is read, or an evaluation.",
                {},
                0,
                Meaning::Idle};
  show_at(found, j.seen.gap.next, j.seen.gap.length);
  found.cost_ns = length;
  return found;
}

Found bare_copies(const Judged& j) {
  const auto bare = static_cast<double>(j.activity.copies - j.activity.overlap);
  if (j.seen.copies == 0 || bare < kShareWorthSaying * j.wall()) return {};
  Insight found{"unoverlapped copies",
                "copies take " + time(bare) + ", " + percent(bare / j.wall(), 0) + " of the time, with no kernel beside them",
                count_text(static_cast<double>(j.seen.copies)) + " copies move " +
                    bytes_text(static_cast<double>(j.seen.copied_bytes)) +
                    ". From pinned memory and on a stream of their own they run while kernels do.",
                {},
                0,
                Meaning::Copy};
  show_at(found, j.seen.longest_copy);
  found.cost_ns = bare;
  return found;
}

Found allocator_traffic(const Judged& j) {
  const auto spent = static_cast<double>(j.seen.allocator_time);
  if (j.seen.allocator_calls == 0 || spent < kShareWorthSaying * j.wall()) return {};
  Insight found{"allocator traffic",
                count_text(static_cast<double>(j.seen.allocator_calls)) + " calls of the allocator take the host " +
                    time(spent) + ", " + percent(spent / j.wall(), 0) + " of the time",
                "Freeing memory often waits for the whole GPU. Take buffers once and use them again, or use a pool.",
                {},
                0,
                Meaning::Allocation};
  show_at(found, j.seen.longest_allocation);
  found.cost_ns = spent;
  return found;
}

constexpr Found (*kTraceRules[])(const Judged&) = {idle_gpu,    tiny_kernels, waits,
                                              slowest_gap, bare_copies,  allocator_traffic};

// Spans that only the file has are not judged: after the newest block that is not in memory.
TimeNs in_memory_since(const prof::Trace& trace) {
  TimeNs since = trace.first_time();
  for (const Track& track : trace.tracks())
    for (const prof::SpanBlock& block : track.blocks)
      if (!block.resident()) since = std::max(since, block.last);
  return since;
}

}  // namespace

TraceLook look_of(const prof::Trace& trace) {
  TraceLook look{&trace, in_memory_since(trace), trace.last_time()};
  const TimeNs all = look.end - trace.first_time();
  if (const size_t spans = trace.span_count(); spans > kMostSpans)
    look.begin = std::max(look.begin, look.end - static_cast<TimeNs>(static_cast<double>(all) * kMostSpans /
                                                                     static_cast<double>(spans)));
  look.whole = look.begin == trace.first_time();
  return look;
}

RunFacts facts_of(const TraceLook& look) {
  prof::Breakdown parts = prof::breakdown(*look.trace, look.begin, look.end);
  parts.steps = look.end > look.begin ? 1 : 0;
  RunFacts facts = facts_of(RunSpec{}, parts, true);
  facts.whole_trace = true;
  return facts;
}

std::vector<Insight> trace_insights(const TraceLook& look) {
  std::vector<Insight> found;
  if (look.end <= look.begin) return found;
  const Seen seen = look_at(look);
  const RunFacts facts = facts_of(look);
  const Judged judged{look, seen, facts, prof::activity(*look.trace, look.begin, look.end)};
  for (const auto rule : kTraceRules)
    if (auto insight = rule(judged)) found.push_back(std::move(*insight));
  std::ranges::stable_sort(found, std::greater<>{}, &Insight::cost_ns);
  return found;
}

}  // namespace ws::app
