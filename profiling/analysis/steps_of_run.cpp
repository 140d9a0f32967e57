#include "profiling/analysis/steps_of_run.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "profiling/analysis/memory_history.h"
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/step_breaks.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/why_left_out.h"
#include "profiling/base/statistics.h"
#include "profiling/base/text.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {
namespace {

constexpr size_t kPiece = 100;
constexpr size_t kLongRow = 20, kLongestRow = 300;

// The newest stretch in which all tracks have their spans in memory.
StepWindowNs in_memory(const Trace& trace) {
  StepWindowNs whole{-kAlways, kAlways};
  for (const Track& track : trace.tracks()) {
    auto block = track.blocks.rbegin();
    for (; block != track.blocks.rend() && !block->resident(); ++block) whole.end = std::min(whole.end, block->first);
    while (block != track.blocks.rend() && block->resident()) ++block;
    if (block != track.blocks.rend()) whole.begin = std::max(whole.begin, block->reach);
  }
  return whole.begin < whole.end ? whole : StepWindowNs{-kAlways, kAlways};
}

// Returns the newest steps that began before a time, oldest first. Marks without a step number belong to any range.
std::vector<Span> newest_steps(const Track& track, StepWindowNs within, TimeNs before, size_t most, int64_t since) {
  std::vector<Span> steps;
  for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && steps.size() < most; ++block)
    for (auto span = block->spans.rbegin(); span != block->spans.rend() && steps.size() < most; ++span) {
      if (span->step > 0 && int64_t{span->step} <= since) break;
      if (span->start >= within.begin && span->end() <= within.end && span->start < before) steps.push_back(*span);
    }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

// Stretches that were left untraced on purpose. Steps in them look as if they did nothing.
std::vector<StepWindowNs> untraced_stretches(const Trace& trace, StepWindowNs within) {
  std::vector<StepWindowNs> stretches;
  for (const Track& track : trace.tracks()) {
    if (!untraced(track)) continue;
    each_span(track, within.begin, within.end, [&](const Span& span) {
      stretches.push_back({span.start, span.end()});
    });
  }
  return stretches;
}

// Marks each step in which a matching span began, on tracks of kind `where`.
template <class Is>
std::vector<bool> steps_with(const std::vector<Span>& steps, const Trace& trace, TrackKind where, Is is) {
  std::vector<bool> with(steps.size(), false);
  if (steps.empty()) return with;
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind != where) continue;
    each_span(track, steps.front().start, steps.back().end(), [&](const Span& span) {
      const auto after = std::ranges::upper_bound(steps, span.start, {}, &Span::start);
      if (after != steps.begin() && is(span)) with[static_cast<size_t>(after - steps.begin()) - 1] = true;
    });
  }
  return with;
}

bool has_whole_graphs(const Trace& trace) {
  return std::ranges::any_of(
      trace.tracks(), [](const Track& track) { return track.kind == TrackKind::GraphLaunches && track.spans > 0; });
}

// If graphs are recorded by kernel in some steps and as a whole in others, only the former show the content of a step.
// Takes the newest of these, even if they are far back.
std::vector<Span> sampled_steps(const Track& marks, const Trace& trace, StepWindowNs within, const SampleRange& range, int64_t since) {
  const size_t most = range.steps;
  constexpr size_t kFarBack = 10'000;
  const bool look_back = has_whole_graphs(trace);
  std::vector<Span> steps =
      newest_steps(marks, within, recorded_until(trace), look_back ? std::max(most, kFarBack) : most, since);
  if (look_back) {
    const auto whole = steps_with(steps, trace, TrackKind::GraphLaunches, is_kernel);
    const auto kernels = steps_with(steps, trace, TrackKind::Stream, [](const Span& s) { return s.flags & kInGraph; });
    std::vector<Span> known;
    for (size_t i = 0; i < steps.size(); ++i)
      if (kernels[i] && !whole[i]) known.push_back(steps[i]);
    if (known.size() > 1) steps = std::move(known);
  }
  steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(std::min(most, steps.size())));
  return steps;
}

void share_with_other_ranks(StepBreaks& breaks, const Track& track, const Trace& trace, StepWindowNs within) {
  std::set<int> seen{-1, track.rank};
  for (const Track& other : trace.tracks()) {
    if (track.rank < 0 || other.kind != TrackKind::Steps || !seen.insert(other.rank).second) continue;
    std::vector<Span> steps;
    each_span(other, within.begin, within.end, [&](const Span& step) { steps.push_back(step); });
    breaks.share(steps);
  }
}

// Consecutive steps without a break. The last one only marks the end of the previous step.
struct Row {
  size_t first = 0, last = 0;
};
std::vector<Row> rows_of(const std::vector<Span>& steps, const StepBreaks& breaks) {
  std::vector<Row> rows;
  for (size_t first = 0, i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size() && !breaks.between(steps[i], steps[i + 1])) continue;
    if (i > first) rows.push_back({first, i});
    first = i + 1;
  }
  return rows;
}

// A whole-graph record counts as work, although its kernels are not known.
bool is_work(const Span& span, bool gpu) { return gpu ? is_kernel(span) : span.span_kind() == SpanKind::Op; }

// The driver numbers graphs in order of creation, so the number means nothing in another run.
std::string work_name(const Trace& trace, NameId id) {
  constexpr std::string_view kGraph = "graph ";
  const std::string& name = trace.name(id);
  const bool numbered = name.starts_with(kGraph) && name.size() > kGraph.size() &&
                        name.find_first_not_of("0123456789", kGraph.size()) == name.npos;
  return numbered ? kWholeGraphs : name;
}

// Without a GPU, allocations, copies and waits are also ops, but they are not kernels.
bool computes(const Span& span, bool gpu) {
  const Meaning meaning = span.span_meaning();
  if (gpu) return span.span_kind() == SpanKind::Kernel;
  return meaning != Meaning::Allocation && meaning != Meaning::Copy && meaning != Meaning::Sync;
}

bool allocates(const Trace& trace, const Span& span, bool gpu) {
  if (span.span_kind() == SpanKind::Alloc) return true;
  return !gpu && span.span_kind() == SpanKind::Op && span.span_meaning() == Meaning::Allocation &&
         trace.name(span.name).starts_with("alloc");
}

struct Totals {
  std::map<std::string, std::pair<uint64_t, int64_t>> work, all;  // count, ns
  std::map<std::pair<OpTag, Meaning>, std::pair<uint64_t, int64_t>> ops;  // the meaning is Communication or Other
  uint64_t kernels = 0, allocation_calls = 0;
  AllocationCounts allocations;  // empty if the trace has no memory events
  size_t spans = 0;
};

void add_spans(Totals& totals, const Trace& trace, TimeNs begin, TimeNs end, bool gpu) {
  using Sum = std::pair<uint64_t, int64_t>;
  std::map<NameId, Sum> work;
  std::map<std::pair<NameId, OpTag>, std::pair<Span, Sum>> all;
  for (const Track& track : tracks_of_steps(trace)) {
    if (track.kind == TrackKind::Steps || broad_kind(track.kind) == TrackKind::Phases || track.kind == TrackKind::Inner ||
        times_collectives(track))
      continue;
    each_span(track, begin, end, [&](const Span& span) {
      if (span.start < begin) return;
      ++totals.spans;
      auto& [sample, any] = all[{span.name, span.op}];
      sample = span;
      ++any.first, any.second += static_cast<int64_t>(span.duration);
      totals.allocation_calls += allocates(trace, span, gpu);
      if (!is_work(span, gpu)) return;
      auto& mine = work[span.name];
      ++mine.first, mine.second += static_cast<int64_t>(span.duration);
      auto& op = totals.ops[{span.op, span.span_meaning() == Meaning::Communication ? Meaning::Communication : Meaning::Other}];
      ++op.first, op.second += static_cast<int64_t>(span.duration);
      totals.kernels += computes(span, gpu);
    });
  }
  if (!gpu && work.empty())
    each_own_range(trace, begin, end, [&](const Span& span, int64_t own) {
      if (span.start < begin) return;
      auto& op = totals.ops[{span.op, Meaning::Other}];
      ++op.first, op.second += own;
    });
  const auto merge = [](Sum& into, const Sum& from) { into.first += from.first; into.second += from.second; };
  for (const auto& [name, sum] : work) merge(totals.work[work_name(trace, name)], sum);
  for (const auto& [key, sum] : all) merge(totals.all[work_key(trace, sum.first)], sum.second);
}

bool has_work(const Trace& trace) {
  return std::any_of(trace.tracks().begin(), trace.tracks().end(), [](const Track& track) {
    const bool works = on_gpu(track) || track.kind == TrackKind::CpuThread || track.kind == TrackKind::GraphLaunches;
    return works && track.spans > 0;
  });
}

void group(StepSample& sample, const Trace& trace, const Totals& totals, double steps) {
  for (const GroupBy by : {GroupBy::Op, GroupBy::Layer, GroupBy::Line}) {
    std::map<std::string, WorkUse> uses;
    bool known = false;
    for (const auto& [op, sum] : totals.ops) {
      const OpInfo info = charged_op(trace, op.second, op.first);
      known |= !group_of(info, by).empty();
      WorkUse& use = uses[group_name(info, by)];
      use.count += static_cast<double>(sum.first) / steps, use.us += static_cast<double>(sum.second) * 1e-3 / steps;
    }
    if (known) sample.grouped[by] = std::move(uses);
  }
}

void give_rates(StepSample& sample, const Trace& trace, const Totals& totals) {
  const auto steps = static_cast<double>(sample.parts.steps);
  for (const auto& [name, sum] : totals.work)
    sample.work[name] = {static_cast<double>(sum.first) / steps, static_cast<double>(sum.second) * 1e-3 / steps};
  for (const auto& [name, sum] : totals.all)
    sample.mean_us[name] = static_cast<double>(sum.second) * 1e-3 / static_cast<double>(sum.first);
  group(sample, trace, totals, steps);
  sample.kernels_per_step = static_cast<double>(totals.kernels) / steps;
  const bool known = !trace.memory().empty();
  sample.driver_allocations_per_step = static_cast<double>(known ? totals.allocations.driver : totals.allocation_calls) / steps;
  sample.allocations_per_step = static_cast<double>(known ? totals.allocations.program : totals.allocation_calls) / steps;
}

int64_t leave_warm_up_out(std::vector<Span>& steps, const Track& track) {
  if (steps.empty() || track.blocks.front().first != steps.front().start) return 0;  // the first step is not among them
  std::vector<int64_t> lengths;
  for (size_t i = 0; i + 1 < steps.size(); ++i) lengths.push_back(steps[i + 1].start - steps[i].start);
  const auto left_out = static_cast<std::ptrdiff_t>(warm_up(lengths));
  steps.erase(steps.begin(), steps.begin() + left_out);
  return left_out;
}

// A mark is a launch, which may have any number of steps. `first`: the first of so many marks in memory, before the warm-up was left out.
void count_marked(StepSample& sample, const Track& track, const Span& first, const std::vector<Span>& steps, int64_t run_steps) {
  const int64_t warm_up = std::exchange(sample.warm_up, 0), seen = std::ssize(steps) + warm_up, unseen = static_cast<int64_t>(track.spans) - seen;
  const bool numbered = sample.stride > 1 && first.step > 0;
  const auto between = [&](const Span& a, const Span& b, int64_t marks) { return numbered ? int64_t{b.step} - int64_t{a.step} : marks * sample.stride; };
  const int64_t left = run_steps - (int64_t{steps.back().step} - 1);
  sample.last = numbered && left > 0 ? std::min(left, sample.stride) : sample.stride;
  sample.warm_up = between(first, steps.front(), warm_up);
  sample.marked = unseen * sample.stride + between(first, steps.back(), seen - 1) + sample.last;
}

// The times of steps, of which each stands for as many steps.
void take_lengths(StepSample& sample, const std::vector<Span>& steps, const StepBreaks& breaks) {
  std::vector<double> longer;
  for (size_t i = 1; i < steps.size(); ++i) {
    const Span &before = steps[i - 1], &after = steps[i];
    const int64_t count = breaks.steps_between(before, after);
    const double us = static_cast<double>(after.start - before.start) * 1e-3 / static_cast<double>(count);
    const bool long_one = breaks.longer_launch(before, after);
    sample.pauses += breaks.pause(before, after);
    if (long_one) longer.push_back(us), sample.longer_launch_steps += count;
    if (long_one || !breaks.between(before, after)) sample.step_us.insert(sample.step_us.end(), static_cast<size_t>(count / breaks.stride()), us);
  }
  if (!longer.empty()) sample.longer_launch_us = median(std::move(longer));
}

StepWindowNs middle_step(const std::vector<Span>& steps, const std::vector<Row>& rows) {
  std::vector<StepWindowNs> windows;
  for (const Row& row : rows)
    for (size_t i = row.first; i < row.last; ++i) windows.push_back({steps[i].start, steps[i + 1].start});
  if (windows.empty()) return {};
  const auto at = windows.begin() + static_cast<std::ptrdiff_t>(windows.size() / 2);
  std::nth_element(windows.begin(), at, windows.end(), [](const StepWindowNs& a, const StepWindowNs& b) {
    return a.end - a.begin != b.end - b.begin ? a.end - a.begin < b.end - b.begin : a.begin > b.begin;
  });
  return *at;
}

// Among the steps since `since`, whose content is known.
Row long_row(const std::vector<Row>& rows, size_t since) {
  Row best;
  for (auto row = rows.rbegin(); row != rows.rend() && row->last > since && best.last - best.first < kLongRow; ++row) {
    const size_t first = std::max({row->first, since, row->last - std::min(row->last, kLongestRow)});
    if (row->last - first > best.last - best.first) best = {first, row->last};
  }
  return best;
}

// Lengths of the steps that are typical: the middle half.
struct Lengths {
  int64_t least = 0, most = INT64_MAX;
  bool holds(int64_t length) const { return length >= least && length <= most; }
};
Lengths typical_lengths(const std::vector<Span>& steps, const std::vector<Row>& rows) {
  constexpr size_t kFewest = 4;
  std::vector<int64_t> all;
  for (const Row& row : rows)
    for (size_t i = row.first; i < row.last; ++i) all.push_back(steps[i + 1].start - steps[i].start);
  if (all.size() < kFewest) return {};
  std::ranges::sort(all);
  return {all[all.size() / 4], all[all.size() - 1 - all.size() / 4]};
}

void add(Breakdown& sum, const Breakdown& parts) {
  for (size_t m = 0; m < kMeanings; ++m) sum.times[m] += parts.times[m];
  sum.busy += parts.busy, sum.rank_wait += parts.rank_wait, sum.inner_wait += parts.inner_wait;
  sum.only_collectives |= parts.only_collectives;
  for (size_t work = 0; work < kHostWorks; ++work) {
    sum.gaps[work].launch += parts.gaps[work].launch;
    sum.gaps[work].idle += parts.gaps[work].idle;
  }
  sum.end += parts.wall();
}

// The parts of typical steps, beside the parts of all steps.
struct Typical {
  Breakdown parts;
  std::vector<TimeRange> stretches;
  std::map<int, Breakdown> ranks;
  std::map<std::pair<Meaning, std::string>, int64_t> ops;
};

// Host marks do not say when a step ran, so all idle GPU time between them counts as waiting for the next launch.
void idle_is_launch(Breakdown& parts) {
  auto& idle = parts.times[static_cast<size_t>(Meaning::Idle)];
  parts.times[static_cast<size_t>(Meaning::Launch)] += idle, idle = 0;
  for (HostGap& gap : parts.gaps) gap.launch += gap.idle, gap.idle = 0;
}

std::string key_of(const Trace& trace, Meaning meaning, NameId name, OpTag op) {
  if (op == kNoOp) return work_name(trace, name);
  const OpInfo info = charged_op(trace, meaning, op);
  return info.name.empty() ? work_name(trace, name) : std::string(kOpKey) + info.name;
}

// Adds a stretch to both, or only to all steps.
void add_stretch(Breakdown& all, Typical* typical, const Trace& trace, const InsideKernels& inside, StepWindowNs stretch) {
  WorkTimes by_work;
  const Breakdown parts = breakdown(trace, inside, stretch.begin, stretch.end, typical ? &by_work : nullptr);
  add(all, parts);
  if (!typical) return;
  add(typical->parts, parts);
  for (auto& [rank, sum] : typical->ranks) add(sum, breakdown_of_rank(trace, rank, inside, stretch.begin, stretch.end));
  for (const auto& [work, ns] : by_work) typical->ops[{work.meaning, key_of(trace, work.meaning, work.name, work.op)}] += ns;
}

// Adds steps first to last, in stretches of typical steps and of others.
void add_steps(StepSample& sample, Typical& typical, const Lengths& lengths, const Trace& trace, const InsideKernels& inside,
               const std::vector<Span>& steps, Row piece) {
  const auto is_typical = [&](size_t i) { return lengths.holds(steps[i + 1].start - steps[i].start); };
  for (size_t first = piece.first, last = first; first < piece.last; first = last) {
    const bool these = is_typical(first);
    while (last < piece.last && is_typical(last) == these) ++last;
    add_stretch(sample.parts, these ? &typical : nullptr, trace, inside, {steps[first].start, steps[last].start});
    sample.parts.steps += static_cast<int64_t>(last - first) * sample.stride;
    if (!these) continue;
    typical.parts.steps += static_cast<int64_t>(last - first) * sample.stride;
    typical.stretches.push_back({steps[first].start, steps[last].start});
  }
}

void add_all(Typical& typical, const Trace& trace, const InsideKernels& inside, const std::vector<Span>& steps, Row piece, int64_t stride) {
  Breakdown counted;  // already
  add_stretch(counted, &typical, trace, inside, {steps[piece.first].start, steps[piece.last].start});
  typical.parts.steps += static_cast<int64_t>(piece.last - piece.first) * stride;
  typical.stretches.push_back({steps[piece.first].start, steps[piece.last].start});
}

void take_typical(StepSample& sample, Typical typical) {
  std::ranges::sort(typical.stretches, {}, &TimeRange::begin);
  sample.typical = std::move(typical.stretches);
  for (auto& [rank, parts] : typical.ranks) parts.steps = typical.parts.steps;
  sample.median_parts = typical.parts, sample.rank_parts = std::move(typical.ranks), sample.op_parts = std::move(typical.ops);
  if (!sample.step_us.empty()) scale_median(sample, median(sample.step_us));
}

// The mark of a graph has the number of the first of its steps. The last mark of a row only ends the step before it.
StepRange numbers_of(const std::vector<Span>& steps, Row row, int64_t stride, int64_t count) {
  if (steps[row.first].step == 0) return {.count = count};
  return {int64_t{steps[row.first].step} - 1, int64_t{steps[row.last - 1].step} - 1 + stride - 1, count};
}

void take_ranges(StepSample& sample, const std::vector<Span>& steps, const std::vector<Row>& rows, const std::vector<Row>& seen) {
  const Row all{std::ranges::min(seen, {}, &Row::first).first, std::ranges::max(seen, {}, &Row::last).last};
  sample.all = {steps[all.first].start, steps[all.last].start};
  for (TimeNs done = sample.all.begin; const Row& piece : seen | std::views::reverse) {
    if (steps[piece.first].start > done) sample.left_out.push_back({done, steps[piece.first].start});
    done = steps[piece.last].start;
  }
  sample.which = numbers_of(steps, all, sample.stride, sample.parts.steps);
  const Row row = long_row(rows, all.first);
  sample.row = {steps[row.first].start, steps[row.last].start};
  sample.row_steps = numbers_of(steps, row, sample.stride, static_cast<int64_t>(row.last - row.first) * sample.stride);
}

}  // namespace

std::string which_steps(const StepRange& range) {
  const std::string count = count_text(static_cast<double>(range.count));
  if (range.count == 0) return "";
  if (range.first < 0) return count + (range.count == 1 ? " step" : " steps");
  if (range.first == range.last) return "step " + count_text(static_cast<double>(range.first));
  const std::string steps = "steps " + count_text(static_cast<double>(range.first)) + "–" + count_text(static_cast<double>(range.last));
  return range.count == range.last - range.first + 1 ? steps : count + " of " + steps;
}

CountedSteps counted_steps(const StepSample& sample) {
  if (!sample.traced() || sample.all.end <= sample.all.begin) return {};
  CountedSteps counted{.stretches = {}, .steps = sample.parts.steps, .rank = sample.rank};
  TimeNs begin = sample.all.begin;
  for (const TimeRange& gap : sample.left_out) {
    counted.stretches.push_back({begin, gap.begin});
    begin = gap.end;
  }
  counted.stretches.push_back({begin, sample.all.end});
  const std::string count = count_text(static_cast<double>(counted.steps));
  const std::string of_all = sample.marked > counted.steps ? " of " + count_text(static_cast<double>(sample.marked)) : "";
  counted.text = count + of_all + " steps" + (sample.rank >= 0 ? " of rank " + std::to_string(sample.rank) : "") + left_out_steps(sample);
  return counted;
}

std::string of_steps(const StepSample& sample) {
  return which_steps(sample.which) + (sample.rank >= 0 ? " of rank " + std::to_string(sample.rank) : "");
}

size_t warm_up(const std::vector<int64_t>& lengths) {
  constexpr size_t kFewest = 8;
  constexpr int64_t kLonger = 5;  // times the median
  if (lengths.size() < kFewest) return 0;
  std::vector<int64_t> sorted = lengths;
  const int64_t middle = middle_value(sorted);
  size_t first = 0;
  while (first < lengths.size() / 4 && lengths[first] > kLonger * middle) ++first;
  return first;
}

std::string left_out_text(size_t pauses) {
  return pauses == 0 ? "" : pauses == 1 ? ", one pause left out" : ", " + std::to_string(pauses) + " pauses left out";
}

std::string left_out_text(const StepSample& sample) {
  const StepRange& which = sample.which;
  const int64_t between = which.first >= 0 ? which.last - which.first + 1 - which.count : 0, lacking = between - std::min(between, sample.longer_launch_steps);
  std::string text = left_out_text(sample.pauses);
  if (sample.pauses > 0 && lacking > 0)  // so that the count of steps and these add up
    text = ", without " + count_text(static_cast<double>(lacking)) + (static_cast<size_t>(lacking) <= sample.pauses ? " at pauses" : " at pauses, tests and untraced parts");
  if (sample.longer_launch_us > 0) text += formatted(", from short launches ({:.1f} µs in long ones)", sample.longer_launch_us);
  return text;
}

// A run may end while tracing is paused. Its last steps then look as if they did nothing.
TimeNs recorded_until(const Trace& trace) {
  TimeNs until = -kAlways;
  for (const Track& track : trace.tracks())
    if (!track.blocks.empty() && track.kind != TrackKind::Steps && broad_kind(track.kind) != TrackKind::Phases)
      until = std::max(until, track.blocks.back().reach);
  return until > -kAlways ? until : kAlways;
}

// Parts of parts are rounded down, so that they never exceed the whole.
void scale_median(StepSample& sample, double step_us) {
  const double now = sample.median_step_us();
  if (!(step_us > 0) || !(now > 0)) return;
  const double factor = step_us / now;
  const auto down = [factor](int64_t ns) { return static_cast<int64_t>(static_cast<double>(ns) * factor); };
  const auto scale = [&](Breakdown& parts) {
    parts.end = parts.begin;
    for (int64_t& ns : parts.times) parts.end += ns = std::llround(static_cast<double>(ns) * factor);
    parts.busy = std::min(down(parts.busy), parts.wall()), parts.rank_wait = down(parts.rank_wait);
    parts.inner_wait = std::min<int64_t>(std::llround(static_cast<double>(parts.inner_wait) * factor), parts.times[static_cast<size_t>(Meaning::Sync)]);
    for (HostGap& gap : parts.gaps) gap.launch = down(gap.launch), gap.idle = down(gap.idle);
  };
  scale(sample.median_parts);
  for (auto& [rank, parts] : sample.rank_parts) scale(parts);
  for (auto& [op, ns] : sample.op_parts) ns = down(ns);
}

void take_stretch(StepSample& sample, const Trace& trace, StepWindowNs stretch, int64_t steps) {
  Typical typical;
  add_stretch(sample.parts, &typical, trace, InsideKernels(trace, {stretch.begin, stretch.end}), stretch);
  sample.parts.steps = typical.parts.steps = steps;
  sample.median_parts = typical.parts, sample.op_parts = std::move(typical.ops);
}

StepsOfRun StepsOfRun::of(const Trace& trace, const StepFacts& facts) {
  StepsOfRun steps(trace, trace, facts);
  if (facts.host_ahead ? *facts.host_ahead : host_ran_ahead(trace)) steps.on_gpu_.finish(trace);
  return steps;
}

StepsOfRun StepsOfRun::of(const RunData& run) {
  return of(run.trace, {.per_epoch = steps_per_epoch(run.summary, run.evaluations), .since = steady_since(run.marks), .clock_error = clock_error_ns(run.summary), .run_steps = run.summary.steps});
}

StepSample StepsOfRun::sample(const SampleRange& range) const {
  const Trace& trace = *trace_;
  StepSample sample;
  const Track* track = first_track(marks(), TrackKind::Steps);
  if (!track) return sample;
  StepWindowNs within = in_memory(trace);
  within.end = std::min(within.end, range.until);
  std::vector<Span> steps = sampled_steps(*track, trace, within, range, facts_.since);
  const Span first_mark = steps.empty() ? Span() : steps.front();
  sample.warm_up = leave_warm_up_out(steps, *track);
  if (steps.empty()) return sample;
  StepBreaks breaks(steps, facts_.per_epoch, untraced_stretches(trace, {steps.front().start, steps.back().end()}));
  share_with_other_ranks(breaks, *track, trace, {steps.front().start, steps.back().end()});
  const std::vector<Row> rows = rows_of(steps, breaks);
  sample.stride = breaks.stride();
  count_marked(sample, *track, first_mark, steps, facts_.run_steps);
  if (several_ranks(trace)) sample.rank = rank_of_steps(trace);
  take_lengths(sample, steps, breaks);
  const bool gpu = used_gpu(trace);
  sample.gpu = gpu, sample.marks_only = !has_work(trace);
  const InsideKernels inside(trace, range.lengths_only ? TimeRange{} : TimeRange{steps.front().start, steps.back().end()}, facts_.clock_error);
  const Lengths lengths = typical_lengths(steps, rows);
  Typical typical;
  if (range.of_ranks && sample.rank >= 0)
    for (const Track& any : trace.tracks())
      if (any.rank >= 0 && any.spans > 0) typical.ranks.try_emplace(any.rank);
  std::vector<Row> seen;
  Totals totals;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    // Works in pieces and stops once there is enough data, so that the event loop is not blocked for long.
    for (size_t last = row->last; last > row->first && totals.spans < range.most_spans && !range.lengths_only;) {
      const size_t first = last - std::min(last - row->first, kPiece);
      add_steps(sample, typical, lengths, trace, inside, steps, {first, last});
      seen.push_back({first, last});
      add_spans(totals, trace, steps[first].start, steps[last].start, gpu);
      const AllocationCounts more = count_allocations(trace, steps[first].start, steps[last].start);
      totals.allocations.program += more.program, totals.allocations.driver += more.driver;
      last = first;
    }
  }
  if (sample.parts.steps == 0) return sample;
  if (typical.parts.steps == 0)  // the newest steps are all unusual
    for (const Row& piece : seen) add_all(typical, trace, inside, steps, piece, sample.stride);
  take_typical(sample, std::move(typical));
  if (gpu && on_gpu()) {
    idle_is_launch(sample.parts), idle_is_launch(sample.median_parts);
    for (auto& [rank, parts] : sample.rank_parts) idle_is_launch(parts);
  }
  give_rates(sample, trace, totals);
  take_ranges(sample, steps, rows, seen);
  sample.median_step = middle_step(steps, rows);
  return sample;
}

namespace {

std::vector<Span> marks_of(const Track& track) {
  std::vector<Span> marks;
  each_span(track, -kAlways, kAlways, [&](const Span& span) { marks.push_back(span); });
  return marks;
}

int64_t first_step_of(const Span& mark, size_t index) { return mark.step > 0 ? int64_t{mark.step} - 1 : static_cast<int64_t>(index); }

// Time from the start of each counted mark to the next, by the number of its first step.
std::map<int64_t, TimeNs> counted_lengths(const Track& track, const StepSample& sample) {
  std::map<int64_t, TimeNs> lengths;
  const CountedSteps counted = counted_steps(sample);
  const std::vector<Span> marks = marks_of(track);
  for (size_t i = 0; counted.steps > 0 && i + 1 < marks.size(); ++i) {
    const TimeNs begin = marks[i].start, end = marks[i + 1].start;
    const auto holds = [&](const TimeRange& stretch) { return begin >= stretch.begin && end <= stretch.end; };
    if (std::ranges::any_of(counted.stretches, holds)) lengths[first_step_of(marks[i], i)] = end - begin;
  }
  return lengths;
}

}  // namespace

std::vector<ListedStep> StepsOfRun::list(const StepSample& sample, int64_t steps) const {
  std::vector<ListedStep> all;
  const Track* const measured = first_track(marks(), TrackKind::Steps);
  if (!measured) return all;
  const std::map<int64_t, TimeNs> counted = counted_lengths(*measured, sample);
  std::vector<const Track*> tracks;
  if (on_gpu()) tracks.push_back(measured);
  for (const Track& track : trace_->tracks())
    if (track.kind == TrackKind::Steps && !(on_gpu() && is_of_rank(track, sample.rank))) tracks.push_back(&track);
  for (const Track* track : tracks) {
    const std::vector<Span> marks = marks_of(*track);
    const bool stands_for_run = is_of_rank(*track, sample.rank);
    for (size_t i = 0; i < marks.size(); ++i) {
      const int64_t number = first_step_of(marks[i], i), next = i + 1 < marks.size() ? first_step_of(marks[i + 1], i + 1) : steps;
      const int64_t together = sample.stride > 1 ? std::max<int64_t>(1, next - number) : 1, each = static_cast<int64_t>(marks[i].duration) / together;
      const auto length = counted.find(number);
      ListedStep step{.rank = std::max(track->rank, stands_for_run ? sample.rank : -1), .duration = each, .counted = length != counted.end(), .together = together};
      const bool last = i + 1 == marks.size();
      if (step.counted && (stands_for_run || !last))
        step.us = static_cast<double>(stands_for_run ? length->second : marks[i + 1].start - marks[i].start) * 1e-3 / static_cast<double>(together);
      for (int64_t k = 0; k < together; ++k) {
        step.number = number + k, step.start = marks[i].start + k * each;
        all.push_back(step);
      }
    }
  }
  return all;
}

GpuFigures gpu_figures(const Trace& trace, StepWindowNs row, const StepRange& row_steps) {
  const bool whole = row.end <= row.begin;
  if (whole) row = {trace.first_time(), trace.last_time()};
  return {launch_delay(trace, row.begin, row.end), activity(trace, row.begin, row.end), whole ? "the whole trace" : which_steps(row_steps)};
}

std::string work_key(const Trace& trace, const Span& span) {
  const bool work = is_kernel(span) || span.span_kind() == SpanKind::Op;
  return key_of(trace, span.span_meaning(), span.name, work ? span.op : kNoOp);
}

StepWindowNs longest_traced(const Trace& trace, StepWindowNs within) {
  std::vector<StepWindowNs> pauses = untraced_stretches(trace, within);
  pauses.push_back({within.end, within.end});
  std::ranges::sort(pauses, {}, &StepWindowNs::begin);
  StepWindowNs longest{within.begin, within.begin};
  TimeNs from = within.begin;
  for (const StepWindowNs& pause : pauses) {
    if (pause.begin - from > longest.end - longest.begin) longest = {from, pause.begin};
    from = std::max(from, pause.end);
  }
  return longest;
}

StepWindowNs step_window(const Trace& marks, int64_t step) {
  const Track* track = first_track(marks, TrackKind::Steps);
  if (!track) return {};
  const auto wanted = static_cast<uint32_t>(std::clamp<int64_t>(step, 0, UINT32_MAX - 1) + 1);
  // For evicted blocks the first span is known.
  auto block = std::upper_bound(track->blocks.begin(), track->blocks.end(), wanted,
                                [](uint32_t s, const SpanBlock& b) { return s < b.head.step; });
  if (block != track->blocks.begin()) --block;
  while (block != track->blocks.end() && block->spans.empty()) ++block;
  if (block == track->blocks.end()) return {};
  auto span = std::upper_bound(block->spans.begin(), block->spans.end(), wanted,
                               [](uint32_t s, const Span& x) { return s < x.step; });
  const Span* found = span == block->spans.begin() ? &*span : &*(span - 1);
  const Span* next = found == &block->spans.back() ? nullptr : found + 1;
  if (const auto after = block + 1; !next && after != track->blocks.end() && !after->spans.empty())
    next = &after->spans.front();
  const TimeNs length = static_cast<TimeNs>(found->duration);
  const bool near = next && next->start - found->end() <= 2 * length;
  return {found->start, near ? next->start : found->end()};
}

namespace {

StepTime of_samples(const std::vector<double>& us, double half_width, StepsOf whose) {
  StepTime time{{median(us), half_width}, percentile(us, 0.05), percentile(us, 0.95)};
  // Other programs come and go between two runs. The interval within one run does not include this.
  if (whose == StepsOf::Training && varies_widely(time))
    time.us.half_width = std::max(half_width, (time.p95_us - time.p5_us) / 2);
  return time;
}

StepTime without_spread(double us) {
  StepTime time;
  if (us > 0) time.us.value = us;
  return time;
}

}  // namespace

StepTime step_time(const StepSample& sample, const std::vector<Pace>& losses, double whole_run_us, StepsOf whose) {
  const bool sampled = !sample.step_us.empty() || sample.traced();
  if (!sampled || sample.marks_only) {
    const std::vector<double> us = pace_stretches_us(losses);
    if (!us.empty()) return of_samples(us, mean_with_interval(us).half_width, whose);  // each stretch is a block of steps
    if (!sampled || whole_run_us > 0) return without_spread(whole_run_us);
  }
  if (!sample.step_us.empty()) return of_samples(sample.step_us, percentile_of_blocks(sample.step_us, 0.5).half_width, whose);
  return without_spread(sample.mean_step_us());  // a trace without step marks
}

StepTime step_time(const RunData& run, const StepSample& sample) {
  const StepsOf whose = run.summary.origin == "run" ? StepsOf::Training : StepsOf::Program;
  if (run.summary.step_time.known()) {
    StepTime stored = run.summary.step_time;
    const bool whole_spread = stored.has_spread() && stored.us.half_width > (stored.p95_us - stored.p5_us) / 2;  // an earlier version took it
    if ((whole_spread || (whose == StepsOf::Program && varies_widely(stored))) && !sample.step_us.empty())
      stored.us.half_width = of_samples(sample.step_us, percentile_of_blocks(sample.step_us, 0.5).half_width, whose).us.half_width;
    return stored;
  }
  PaceLog losses;
  const int64_t since = steady_since(run.marks);
  for (const Metric& m : run.metrics)
    if (m.step >= since) losses.add({static_cast<double>(m.step), m.wall_s});
  return step_time(sample, losses.seen(), run.summary.us_per_step, whose);
}

StepTime step_time(const FoundSteps& found, bool gpu) {
  if (gpu && !found.kernels) return {};
  Trace trace;
  const NameId none = trace.intern("");
  trace.append(trace.track(TrackKind::Steps, "steps", "CPU"), found.spans(none));
  for (const FoundStep& stretch : found.untraced) {
    Span span;
    span.start = stretch.start, span.duration = static_cast<uint64_t>(stretch.end - stretch.start), span.name = none;
    trace.append(trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), span);
  }
  StepSample sample = StepsOfRun(trace, trace).sample({.lengths_only = true});
  sample.marks_only = false;
  return step_time(sample, {}, found.us_each, StepsOf::Program);
}

bool varies_widely(const StepTime& time) {
  constexpr double kWide = 0.5;  // share of the median; on a quiet machine p5 to p95 differ by a few per cent
  return time.has_spread() && time.p95_us - time.p5_us > kWide * time.us.value;
}

int64_t steady_since(const std::vector<ChangeMark>& marks) {
  constexpr std::string_view kExecution = "exec.";  // prefix of the names of execution settings
  int64_t since = 0;
  for (const ChangeMark& mark : marks)
    if (mark.text.starts_with(kExecution)) since = std::max(since, mark.step);
  return since;
}

}  // namespace ws::prof
