#include "app/core/insights/trace_insights.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <iterator>
#include <unordered_map>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/sort_rows.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

using prof::Meaning;
using prof::Span;
using prof::SpanKind;
using prof::TimeNs;
using prof::Track;
using prof::TrackKind;

constexpr double kShareWorthSaying = 0.05;  // share of the judged time
constexpr double kIdle = 0.4;               // if the GPU idles more, the cause is worth finding
constexpr TimeNs kTiny = 5'000;             // about the cost of a launch
constexpr uint64_t kManyTiny = 200;
constexpr size_t kMostSpans = 400'000;  // what can be judged without a noticeable delay

struct Gap {
  TimeNs length = 0;
  std::optional<prof::FoundSpan> next;  // the span that ended it
};

// Spans of one kind: count, total time, and the longest.
struct Tally {
  uint64_t count = 0;
  TimeNs time = 0;
  std::optional<prof::FoundSpan> longest;

  void add(size_t track, const Span& span) {
    ++count;
    time += static_cast<TimeNs>(span.duration);
    if (!longest || span.duration > longest->span.duration) longest = prof::FoundSpan{track, span};
  }
};

// The facts that the rules need, from one pass over the spans.
struct Seen {
  Tally waits, allocations, copies;
  uint64_t kernels = 0, tiny = 0, copied_bytes = 0;
  std::optional<prof::FoundSpan> commonest_tiny;
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

void see_gpu(Seen& seen, const prof::Trace& trace, size_t track, const Span& span) {
  if (is_copy(span)) {
    seen.copied_bytes += trace.detail(span.detail).bytes;
    return seen.copies.add(track, span);
  }
  if (!prof::is_kernel(span)) return;
  ++seen.kernels;
  if (static_cast<TimeNs>(span.duration) >= kTiny) return;
  ++seen.tiny;
  ++seen.tiny_by_name[static_cast<uint32_t>(span.name)];
}

void see_call(Seen& seen, const Track& track, size_t index, const Span& span) {
  if (is_allocation(span))
    seen.allocations.add(index, span);
  else if (is_wait(span) && !prof::is_stream_wait(track, span))
    seen.waits.add(index, span);
}

// The rank whose steps stand for the run is judged, as in the split of the step.
bool is_judged(const TraceLook& look, const Track& track) { return prof::is_of_rank(track, prof::rank_of_steps(*look.trace)); }

// Finds the longest gap over all streams together, from the end of all work to the next start. What is idle between two
// trace windows is not known.
void find_gap(Seen& seen, const TraceLook& look) {
  std::vector<prof::FoundSpan> work;
  const auto& tracks = look.trace->tracks();
  for (size_t i = 0; i < tracks.size(); ++i)
    if (prof::on_gpu(tracks[i]) && is_judged(look, tracks[i]))
      prof::for_each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
        if (is_copy(span) || prof::is_kernel(span)) work.push_back({i, span});
        return true;
      });
  std::ranges::sort(work, {}, [](const prof::FoundSpan& place) { return place.span.start; });
  const prof::CoveredTime untraced = prof::untraced_time(*look.trace, look.begin, look.end);
  TimeNs done = work.empty() ? 0 : work.front().span.start;
  for (const prof::FoundSpan& place : work) {
    if (place.span.start - done > seen.gap.length && untraced.within({done, place.span.start}) == 0) seen.gap = {place.span.start - done, place};
    done = std::max(done, place.span.end());
  }
}

// Finds the first tiny kernel with the most common name.
std::optional<prof::FoundSpan> find_commonest_tiny(const Seen& seen, const TraceLook& look) {
  const auto most = std::ranges::max_element(seen.tiny_by_name, {}, [](const auto& entry) { return entry.second; });
  if (most == seen.tiny_by_name.end()) return {};
  std::optional<prof::FoundSpan> found;
  const auto& tracks = look.trace->tracks();
  for (size_t i = 0; i < tracks.size() && !found; ++i)
    if (prof::on_gpu(tracks[i]) && is_judged(look, tracks[i]))
      prof::for_each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
        const bool wanted = static_cast<uint32_t>(span.name) == most->first && prof::is_kernel(span) &&
                            static_cast<TimeNs>(span.duration) < kTiny;
        if (wanted) found = prof::FoundSpan{i, span};
        return !wanted;
      });
  return found;
}

Seen look_at(const TraceLook& look) {
  Seen seen;
  const prof::CoveredTime pauses(look.pauses);
  const auto& tracks = look.trace->tracks();
  for (size_t i = 0; i < tracks.size(); ++i) {
    const bool gpu = prof::on_gpu(tracks[i]), calls = tracks[i].kind == TrackKind::Api;
    if ((!gpu && !calls) || !is_judged(look, tracks[i])) continue;
    prof::each_span(tracks[i], look.begin, look.end, [&](const Span& span) {
      if (2 * pauses.within({span.start, span.end()}) > static_cast<TimeNs>(span.duration)) return;
      gpu ? see_gpu(seen, *look.trace, i, span) : see_call(seen, tracks[i], i, span);
    });
  }
  find_gap(seen, look);
  seen.commonest_tiny = find_commonest_tiny(seen, look);
  return seen;
}

std::string time(double ns) { return time_text(ns * 1e-3); }

// A place in the trace to show, with `gap_before` before it.
struct Place {
  std::optional<prof::FoundSpan> span;
  TimeNs gap_before = 0;
};

// Counts are of all judged steps. Times are of the steps that stand for the median one.
struct Judged {
  const TraceLook& look;
  const Seen& seen;
  const RunFacts& facts;
  prof::Activity activity, all;  // outside of pauses; all: of all judged steps
  double wall() const { return static_cast<double>(activity.wall); }  // traced
  double part(Meaning m) const { return facts.part(m) * 1e3; }  // ns
  // The ranges of a program go on between trace windows.
  double data_wait() const { return facts.data_wait_us * 1e3 * wall() / std::max(1.0, wall() + static_cast<double>(activity.untraced)); }
  // Beside waits for data and for ranks.
  double idle() const { return std::max(0.0, wall() - static_cast<double>(activity.busy + activity.waiting) - data_wait()); }
  bool worth_saying(double ns) const { return ns >= kShareWorthSaying * wall(); }
  // Part of all judged steps, on the scale of the time that is judged.
  double in_judged(TimeNs of_all) const { return static_cast<double>(of_all) * wall() / std::max(1.0, static_cast<double>(all.wall)); }
  double in_all(double ns) const { return ns * static_cast<double>(all.wall) / std::max(1.0, wall()); }
  double shown(double ns) const { return look.of_median ? ns / std::max(1.0, wall()) * look.median_step_us * 1e3 : ns; }
  std::string whole() const {
    if (look.of_median) return "median step";
    return (look.steps.count > 0 ? "steps' " : "") + std::string(activity.untraced > 0 ? "traced time" : "time");
  }
  std::string shown_text(double ns) const { return time_text(shown(ns) * 1e-3, look.of_median ? look.median_step_us : 0); }
  // "3.2 ms of the median step"
  std::string part_text(double ns) const { return shown_text(ns) + " of the " + whole(); }
  // A number of all judged steps, divided by the steps if there are some.
  std::string count(double of_all) const { return count_text(look.steps.count > 0 ? std::round(of_all / static_cast<double>(look.steps.count)) : of_all); }
  const char* of_a_step() const { return look.steps.count > 0 ? " of a step" : ""; }
  Place gap() const { return {seen.gap.next, seen.gap.length}; }
  bool gap_is_pause() const {
    const TimeNs end = seen.gap.next->span.start;
    return 2 * prof::CoveredTime(look.pauses).within({end - seen.gap.length, end}) > seen.gap.length;
  }
};

// Adds some of the time before and after the place.
Insight insight(const Judged& j, std::string name, std::string headline, std::string advice, Meaning meaning, double cost_ns,
                const Place& place, const char* edits = "") {
  Insight found{std::move(name), std::move(headline), std::move(advice), {}, 0, meaning};
  found.cost_ns = j.in_all(cost_ns), found.edits = edits, found.of_median = j.look.of_median;
  found.place = place.span;
  if (!place.span) return found;
  const Span& span = place.span->span;
  const TimeNs margin = place.gap_before > 0 ? place.gap_before / 4
                                             : std::max<TimeNs>(20 * static_cast<TimeNs>(span.duration), 20'000);
  found.around = {span.start - place.gap_before - margin, span.end() + margin};
  return found;
}

using Found = std::optional<Insight>;

// What the host did while the GPU was idle.
std::pair<Meaning, const char*> why_idle(const Judged& j) {
  const std::pair<Meaning, const char*> causes[] = {
      {Meaning::Allocation, "Most of that time, the host is in allocator calls."},
      {Meaning::Sync, "Most of that time, the host is in syncs, and only then prepares the next launch."},
      {Meaning::Launch, "Most of that time, the next launch is on its way from the host."},
      {Meaning::Idle, "Most of that time, the host is outside CUDA."}};
  return *std::ranges::max_element(causes, {}, [&](const auto& cause) { return j.part(cause.first); });
}

Found idle_gpu(const Judged& j) {
  const double idle = j.idle();
  if (j.seen.kernels == 0 || idle < kIdle * j.wall()) return {};
  // A GPU that worked was not idle for 100 %.
  const std::string share = idle > 0.99 * j.wall() ? "more than 99 %" : percent(idle / j.wall(), 0);
  const auto [cause, advice] = why_idle(j);
  const std::string who = j.worth_saying(j.data_wait()) ? "beside its waits for data, the GPU is idle for " : "the GPU is idle for ";
  Insight found = insight(j, "idle GPU", who + share + " of the " + j.whole(),
                 advice, cause, idle, j.gap());
  found.how = prof::has_samples(*j.look.trace) ? "Look at the flame graph “While the GPU was idle”: it shows what the host did." : "Look at what the host does in the longest gap.";
  found.shows_gap = true;
  return found;
}

Found tiny_kernels(const Judged& j) {
  if (j.seen.tiny < kManyTiny || j.seen.tiny * 2 < j.seen.kernels) return {};
  const auto tiny = static_cast<double>(j.seen.tiny);
  const bool loader = j.worth_saying(j.data_wait()), reads = !j.look.own_training && j.seen.waits.count > 0;
  const char* edits = "one graph launch";
  std::string why = "One CUDA graph launches them all at once", how = j.look.own_training ? "" : "`model` → `torch.compile(model, mode=\"reduce-overhead\")`";
  if (loader) {
    why = "The host needs as long to launch such a kernel as the GPU to run it. But the step waits for data", how = "Nothing now: first make the data ready in time", edits = "";
  } else if (reads) {
    how += ", once the step has no sync", edits = "no sync; one graph launch";
  }
  Insight found = insight(j, "tiny kernels", j.count(tiny) + " kernels" + j.of_a_step() + " run for less than 5 µs", why + ".",
                          Meaning::Launch, j.in_judged(static_cast<TimeNs>(j.seen.tiny) * kTiny), {j.seen.commonest_tiny}, edits);
  if (!how.empty()) found.how = how + ".";
  found.more = (j.look.steps.count > 0 ? "A step has " : "There are ") + j.count(static_cast<double>(j.seen.kernels)) + " kernels.";
  if (loader) found.no_saving = "fewer launches would change little", found.changes_little = true;
  return found;
}

Found syncs(const Judged& j) {
  const double spent = j.part(Meaning::Sync);
  if (j.seen.waits.count == 0 || !j.worth_saying(spent)) return {};
  Insight found = insight(j, "syncs", "the GPU waits for syncs: " + j.part_text(spent), "At the end of each sync, the GPU has no work left.", Meaning::Sync, spent, {j.seen.waits.longest}, "no sync");
  found.how = std::string("Sync only where a result is read.") + (j.look.own_training ? "" : " In PyTorch, `.item()` and `.cpu()` are syncs, too.");
  found.more = j.count(static_cast<double>(j.seen.waits.count)) + " syncs" + j.of_a_step() + ".";
  return found;
}

Found slowest_gap(const Judged& j) {
  const auto length = static_cast<double>(j.seen.gap.length), all = static_cast<double>(j.all.wall);
  if (!j.seen.gap.next || length < kShareWorthSaying * all) return {};
  Insight found = insight(j, "slowest gap", "the longest gap on the GPU lasts " + time(length) + (j.gap_is_pause() ? ", in a pause between steps" : ""),
                 "It ends with " + prof::short_kernel_name(j.look.trace->name(j.seen.gap.next->span.name)) +
                     ".",
                 Meaning::Idle, j.in_judged(j.seen.gap.length), j.gap());
  found.how = "Look at the gap in the timeline. Often the cause is a first call, the reading of a file, or an evaluation.";
  found.of_median = false;
  return found;
}

Found bare_copies(const Judged& j) {
  const auto bare = static_cast<double>(j.activity.copies - j.activity.overlap);
  if (j.seen.copies.count == 0 || !j.worth_saying(bare)) return {};
  Insight found = insight(j, "unoverlapped copies", "copies take " + j.part_text(bare), "No kernel runs beside them.", Meaning::Copy, bare, {j.seen.copies.longest}, "copies overlapped");
  found.how = "From pinned memory and on a stream of their own they run while kernels do.";
  found.more = count_text(static_cast<double>(j.seen.copies.count)) + " copies move " + bytes_text(static_cast<double>(j.seen.copied_bytes)) + (j.look.steps.count > 0 ? " in all steps" : "") + ".";
  return found;
}

Found allocator_traffic(const Judged& j) {
  const double spent = j.in_judged(j.seen.allocations.time);
  if (j.seen.allocations.count == 0 || !j.worth_saying(spent)) return {};
  Insight found = insight(j, "allocator traffic", "allocator calls take the host " + j.part_text(spent), "Freeing memory often waits for the whole GPU.", Meaning::Allocation, spent, {j.seen.allocations.longest},
                          "no allocator calls");
  found.how = "Allocate buffers once and reuse them, or use a pool.", found.more = j.count(static_cast<double>(j.seen.allocations.count)) + " allocator calls" + j.of_a_step() + ".";
  return found;
}

constexpr Found (*kTraceRules[])(const Judged&) = {idle_gpu,    tiny_kernels, syncs,
                                                   slowest_gap, bare_copies,  allocator_traffic};

// Only spans in memory are judged: they start after the newest block that is only in the file.
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
  return look;
}

TraceLook look_of(const prof::Trace& trace, const prof::StepSample& sample) {
  return {.trace = &trace, .begin = sample.all.begin, .end = sample.all.end, .steps = sample.which, .pauses = sample.left_out,
          .typical = sample.typical, .step_us = sample.mean_step_us(), .median_step_us = sample.median_step_us()};
}

namespace {

std::vector<prof::TimeRange> between_pauses(const TraceLook& look) {
  std::vector<prof::TimeRange> stretches;
  TimeNs begin = look.begin;
  for (const prof::TimeRange& pause : look.pauses) {
    if (pause.begin >= look.end) break;
    if (pause.begin > begin) stretches.push_back({begin, pause.begin});
    begin = std::max(begin, pause.end);
  }
  if (look.end > begin) stretches.push_back({begin, look.end});
  return stretches;
}

}  // namespace

prof::Activity activity_between_pauses(const TraceLook& look, std::optional<int> rank) {
  prof::Activity sum;
  for (const prof::TimeRange& counted : between_pauses(look)) {
    const prof::Activity part = prof::activity(*look.trace, counted.begin, counted.end, rank);
    sum.wall += part.wall, sum.untraced += part.untraced, sum.busy += part.busy, sum.waiting += part.waiting;
    sum.kernels += part.kernels, sum.copies += part.copies, sum.overlap += part.overlap;
  }
  return sum;
}

TraceLook judged_part(const TraceLook& look) {
  if (look.steps.count > 0) return look;
  const prof::StepSample sample = prof::StepsOfRun::of(*look.trace).sample({.until = look.end});
  if (!sample.traced()) return look;
  TraceLook part = look_of(*look.trace, sample);
  part.begin = std::max(look.begin, part.begin), part.own_training = look.own_training;
  return part;
}

TraceLook median_part(const TraceLook& look) {
  TraceLook part = look;
  std::vector<prof::TimeRange> steps;
  for (const prof::TimeRange& stretch : look.typical)
    if (stretch.begin >= look.begin && stretch.end <= look.end) steps.push_back(stretch);
  if (steps.empty()) return part;
  part.of_median = true, part.step_us = look.median_step_us;
  part.begin = steps.front().begin, part.end = steps.back().end;
  part.pauses.clear();
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i].begin > steps[i - 1].end) part.pauses.push_back({steps[i - 1].end, steps[i].begin});
  return part;
}

RunFacts facts_of(const TraceLook& look) {
  const prof::InsideKernels inside(*look.trace, {look.begin, look.end});
  prof::Breakdown sum;
  for (const prof::TimeRange& counted : between_pauses(look)) {
    const prof::Breakdown parts = prof::breakdown(*look.trace, inside, counted.begin, counted.end);
    sum.end += parts.wall(), sum.steps = 1, sum.rank_wait += parts.rank_wait, sum.inner_wait += parts.inner_wait;
    for (size_t i = 0; i < std::size(sum.times); ++i) sum.times[i] += parts.times[i];
    for (size_t i = 0; i < std::size(sum.gaps); ++i)
      sum.gaps[i].launch += parts.gaps[i].launch, sum.gaps[i].idle += parts.gaps[i].idle;
  }
  RunFacts facts = facts_of(RunSpec{}, sum, true);
  facts.whole_trace = true, facts.steps = look.steps;
  return facts;
}

void name_rank(Insight& insight, int rank) {
  if (rank >= 0) insight.rank = rank, insight.headline = "rank " + std::to_string(rank) + ": " + insight.headline;
}

std::vector<Insight> trace_insights(const TraceLook& look) {
  std::vector<Insight> found;
  if (look.end <= look.begin) return found;
  const TraceLook part = judged_part(look), typical = median_part(part);
  const Seen seen = look_at(part);
  const RunFacts facts = facts_of(typical);
  const Judged judged{typical, seen, facts, activity_between_pauses(typical), activity_between_pauses(part)};
  for (const auto rule : kTraceRules)
    if (auto insight = rule(judged)) found.push_back(std::move(*insight));
  sort_rows(found, [](const Insight& a, const Insight& b) { return a.cost_ns > b.cost_ns; });
  if (prof::several_ranks(*look.trace))
    for (Insight& insight : found) name_rank(insight, prof::rank_of_steps(*look.trace));
  if (look.own_training) return found;  // it has no lines of Python
  // Advice with a source line comes first, because it says what to change.
  std::vector<Insight> by_line = program_insights(part);
  found.insert(found.begin(), std::make_move_iterator(by_line.begin()), std::make_move_iterator(by_line.end()));
  return found;
}

}  // namespace ws::app
