#include "profiling/analysis/step_finder.h"
#include "profiling/base/statistics.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

#include <algorithm>

namespace ws::prof {

namespace {

constexpr TimeNs kLongestStep = (TimeNs{1} << 40) - 1;  // the longest duration of a span

bool allocates_on_device(const Span& span, const std::string& name) {
  return (span.span_kind() == SpanKind::Alloc || span.span_kind() == SpanKind::Free) &&
         name.find("Host") == std::string::npos;
}

// The number of steps that both lists begin with.
size_t same_begin(const std::vector<FoundStep>& a, const std::vector<FoundStep>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::vector<Span> FoundSteps::spans(NameId name, size_t first) const {
  std::vector<Span> spans;
  const auto fresh = std::span(steps).subspan(std::min(first, steps.size()));
  const bool numbered = std::ranges::all_of(fresh, [](const FoundStep& step) { return step.step > 0; });
  for (size_t i = first; i < steps.size(); ++i) {
    const FoundStep& step = steps[i];
    Span& span = spans.emplace_back();
    span.start = step.start;
    span.duration = static_cast<uint64_t>(std::clamp<TimeNs>(step.end - step.start, 0, kLongestStep));
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.flags = marked || by_ranges ? 0 : kEstimated;
    span.name = name;
    span.step = numbered ? step.step : static_cast<uint32_t>(i + 1);
  }
  return spans;
}

uint32_t StepFinder::number(const std::string& name) {
  return names_.try_emplace(name, static_cast<uint32_t>(names_.size())).first->second;
}

void StepFinder::take(TrackKind kind, const std::string& row, std::span<const Span> spans,
                      std::span<const std::string> names) {
  std::vector<int64_t> numbers(names.size(), -1);
  std::vector<SeenKernel>* stream = nullptr;
  for (const Span& span : spans) {
    const auto at = static_cast<size_t>(span.name);
    const FoundStep time{span.start, span.end(), kind == TrackKind::ProgramSteps ? span.step : 0};
    if (kind == TrackKind::Untraced) untraced_.push_back(time);
    if (kind == TrackKind::Steps && span.step > 0) marked_.push_back({span.start, span.end(), span.step});
    if (broad_kind(kind) == TrackKind::Phases && names_a_step(names[at])) ranges_.range(time);
    if (kind == TrackKind::Api && allocates_on_device(span, names[at]))
      allocations_.push_back(span.start), ++kept_, ++calls_seen_;
    if (kind == TrackKind::Api && span.span_meaning() == Meaning::Launch && span.correlation != 0)
      ranges_.launch(row, {span.correlation, span.start});
    const bool collective = kind == TrackKind::Collectives && span.span_meaning() == Meaning::Communication;
    if (!is_kernel(span) && !collective) continue;
    if (numbers[at] < 0) numbers[at] = number(names[at]);
    if (!stream) stream = &kernels_[row];
    any_kernel_ = true;
    stream->push_back({span.start, span.end(), static_cast<uint32_t>(numbers[at]), span.correlation});
    ++kept_;
  }
  if (kept_ >= most_kept_) settle();
}

void StepFinder::take(const StepAllocations& calls) {
  allocator_calls_ += uint64_t{calls.allocations} + calls.frees + calls.async_allocations + calls.async_frees;
}

std::vector<SeenKernel>* StepFinder::busiest_row() {
  if (const auto row = kernels_.find(settled_row_); row != kernels_.end() && !row->second.empty()) return &row->second;
  std::vector<SeenKernel>* busiest = nullptr;
  for (auto& [row, kernels] : kernels_)
    if (!busiest || kernels.size() > busiest->size()) busiest = &kernels;
  return busiest && !busiest->empty() ? busiest : nullptr;
}

// Keeps the certain steps and drops their kernels, so that a recording may have any length.
void StepFinder::settle() {
  update_ranges(-kAlways, false);
  if (4 * kept_ <= 3 * most_kept_) return;
  spans_dropped_ = true;
  if (!ranges_.any()) ranges_.drop_launches();
  search_ = {};
  std::ranges::sort(untraced_, {}, &FoundStep::start);
  std::vector<SeenKernel>* const row = busiest_row();
  TimeNs until = 0;
  if (row) {
    std::ranges::stable_sort(*row, {}, &SeenKernel::start);
    StepsSoFar found = find_steps_so_far(*row, untraced_, usual_);
    if (found.steps.empty()) found.used = std::max(found.used, row->size() / 2);
    skipped_ |= found.steps.empty();
    until = found.used < row->size() ? (*row)[found.used].start : row->back().end;
    until = std::max(until, row->front().start + 1);  // also drops the last kernel of a stream that has ended
    settle_allocations(found.steps, until);
    settled_.insert(settled_.end(), found.steps.begin(), found.steps.end());
    if (!found.steps.empty())
      for (const auto& [name, kernels] : kernels_)
        if (&kernels == row) settled_row_ = name;
  } else {  // only calls
    until = *std::ranges::max_element(allocations_);
    settle_allocations({}, until);
  }
  for (auto& [name, kernels] : kernels_)
    std::erase_if(kernels, [until](const SeenKernel& kernel) { return kernel.start < until; });
  count_kept();
  if (4 * kept_ <= 3 * most_kept_ || allocations_.empty()) return;
  const TimeNs middle = middle_value(allocations_);  // many calls, few kernels
  kept_ -= allocations_.size();
  settle_allocations({}, middle + 1);
  kept_ += allocations_.size();
}

// Drops the calls before `until` and only counts those inside steps.
void StepFinder::settle_allocations(std::span<const FoundStep> steps, TimeNs until) {
  std::erase_if(allocations_, [&](TimeNs time) {
    const auto after = std::ranges::upper_bound(steps, time, {}, &FoundStep::start);
    calls_in_steps_ += after != steps.begin() && time < std::prev(after)->end && time < until;
    return time < until;
  });
}

std::vector<FoundStep> StepFinder::repetitions() {
  std::vector<FoundStep> steps = std::move(settled_);
  settled_.clear();
  if (std::vector<SeenKernel>* const row = busiest_row()) {
    std::ranges::stable_sort(*row, {}, &SeenKernel::start);
    const auto last = find_last_steps(*row, untraced_, usual_);
    steps.insert(steps.end(), last.begin(), last.end());
  }
  return steps;
}

// Steps of kernels whose launches were not recorded. Returns {} if some kernels were dropped or never recorded.
std::vector<FoundStep> StepFinder::ranges_on_gpu() {
  std::vector<SeenKernel>* const row = busiest_row();
  if (!row || ranges_.launches_known() || spans_dropped_ || !untraced_.empty()) return {};
  std::ranges::stable_sort(*row, {}, &SeenKernel::start);
  return steps_on_gpu(ranges_.host(), *row);
}

void StepFinder::update_ranges(TimeNs now, bool over) {
  ranges_.update(kernels_, now, over);
  count_kept();
}

void StepFinder::count_kept() {
  kept_ = allocations_.size();
  for (const auto& [name, kernels] : kernels_) kept_ += kernels.size();
}

const FoundSteps& StepFinder::so_far(TimeNs now) {
  so_far_.stayed = so_far_.steps.size();
  if (!marked_.empty()) return so_far_;  // whoever follows the program has the marks
  std::ranges::sort(untraced_, {}, &FoundStep::start);
  update_ranges(now, false);
  so_far_.kernels = any_kernel_;
  if (!ranges_.any()) {
    look_for_repetitions();
    return so_far_;
  }
  if (!so_far_.by_ranges) so_far_.steps.clear(), search_ = {};  // those were repetitions of the warm-up
  so_far_.by_ranges = true;
  so_far_.stayed = ranges_.show(so_far_.steps, untraced_.empty());
  return so_far_;
}

void StepFinder::sort_searched(std::vector<SeenKernel>& row) {
  if (const auto known = kernels_.find(search_.row); known == kernels_.end() || &known->second != &row || search_.sorted > row.size()) search_ = {};
  const auto tail = row.begin() + static_cast<std::ptrdiff_t>(search_.sorted);
  if (tail == row.end()) return;
  std::ranges::stable_sort(tail, row.end(), {}, &SeenKernel::start);
  const auto into = std::ranges::upper_bound(row.begin(), tail, tail->start, {}, &SeenKernel::start);
  std::ranges::inplace_merge(into, tail, row.end(), {}, &SeenKernel::start);
  if (into < row.begin() + static_cast<std::ptrdiff_t>(search_.used)) search_.kernels = 0;  // they are in other steps now
  search_.sorted = row.size();
}

// Looks for further steps like the usual one. A step of another kind, as in an evaluation, does not become the usual one.
void StepFinder::look_for_repetitions() {
  constexpr size_t kFewest = 64, kOften = 4;
  const auto grown = [](size_t now, size_t before) { return now >= before + before / kOften; };
  std::vector<SeenKernel>* const row = busiest_row();
  if (!row || row->size() < kFewest) return;
  sort_searched(*row);
  if (search_.kernels == 0 || grown(row->size(), search_.kernels)) return look_again(*row);
  const auto rest = std::span<const SeenKernel>(*row).subspan(search_.used);
  if (search_.usual.empty() || rest.size() < 3 * search_.usual.size() || !grown(rest.size(), search_.tried)) return;
  std::vector<SeenKernel> usual = search_.usual;
  const StepsSoFar more = find_steps_so_far(rest, untraced_, usual);
  const bool same = std::ranges::equal(usual, search_.usual, {}, &SeenKernel::name, &SeenKernel::name);
  search_.tried = same && !more.steps.empty() ? 0 : rest.size();
  if (search_.tried > 0) return;
  search_.used += more.used;
  so_far_.steps.insert(so_far_.steps.end(), more.steps.begin(), more.steps.end());
}

// Finds the usual step anew. Steps that it leaves as they were stay, also the newest ones.
void StepFinder::look_again(const std::vector<SeenKernel>& row) {
  std::vector<SeenKernel> usual = usual_;
  const StepsSoFar found = find_steps_so_far(row, untraced_, usual);
  std::vector<FoundStep> all = settled_;
  all.insert(all.end(), found.steps.begin(), found.steps.end());
  const bool anew = search_.kernels == 0;
  search_.kernels = row.size(), search_.tried = 0;
  so_far_.stayed = same_begin(so_far_.steps, all);
  if (so_far_.stayed == all.size() && !anew) {
    so_far_.stayed = so_far_.steps.size();
    return;
  }
  for (const auto& [name, kernels] : kernels_)
    if (&kernels == &row) search_.row = name;
  search_.usual = std::move(usual), search_.used = found.steps.empty() ? 0 : found.used;
  so_far_.steps = std::move(all);
}

// Time between steps in which nothing was recorded, as between capture ranges.
TimeNs StepFinder::untraced_between(std::span<const FoundStep> steps) const {
  TimeNs ns = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto after = std::ranges::lower_bound(untraced_, steps[i - 1].end, {}, &FoundStep::start);
    if (after != untraced_.end() && after->start < steps[i].start) ns += std::max<TimeNs>(0, steps[i].start - steps[i - 1].end);
  }
  return ns;
}

// A program that captures its steps in a graph marks those before it, and the captured one. What repeats after them many times as
// often is the training. Empty: the marks show it.
std::vector<FoundStep> StepFinder::repetitions_after(const std::vector<FoundStep>& marked) {
  constexpr size_t kWarmUp = 16, kTimes = 4;
  std::vector<SeenKernel>* const row = busiest_row();
  if (!row || marked.empty() || marked.size() > kWarmUp || spans_dropped_) return {};
  std::ranges::stable_sort(*row, {}, &SeenKernel::start);
  const auto later = std::ranges::lower_bound(*row, marked.back().end, {}, &SeenKernel::start);
  std::vector<FoundStep> steps = find_steps({later, row->end()}, untraced_);
  return steps.size() >= kTimes * marked.size() ? steps : std::vector<FoundStep>{};
}

FoundSteps StepFinder::find() {
  std::ranges::sort(untraced_, {}, &FoundStep::start);
  update_ranges(-kAlways, true);
  FoundSteps found;
  found.marked = !marked_.empty();
  found.by_ranges = !found.marked && ranges_.any();
  if (found.marked) {
    std::ranges::stable_sort(marked_, {}, &FoundStep::start);
    found.steps = std::move(marked_);
  } else if (found.by_ranges) {
    ranges_.show(found.steps, untraced_.empty());
    if (std::vector<FoundStep> later = repetitions_after(found.steps); !later.empty()) found.steps = std::move(later), found.by_ranges = false;
  } else {
    found.steps = repetitions();
  }
  if (found.steps.empty()) return found;
  settle_allocations(found.steps, kAlways);  // the host made the calls, so host times are compared
  if (found.by_ranges)
    if (std::vector<FoundStep> steps = ranges_on_gpu(); !steps.empty()) {
      for (size_t i = 0; i < steps.size(); ++i) steps[i].step = found.steps[i].step;
      found.steps = std::move(steps);
    }
  found.stayed = same_begin(so_far_.steps, found.steps);
  const auto count = static_cast<double>(found.steps.size());
  TimeNs ns = found.steps.back().end - found.steps.front().start - untraced_between(found.steps);
  auto calls = static_cast<double>(allocator_calls_);
  const bool apart = !found.marked && !found.by_ranges && (!untraced_.empty() || skipped_);
  if (apart) {  // nothing is known about the time between these steps
    ns = 0;
    for (const FoundStep& step : found.steps) ns += step.end - step.start;
  }
  // Falls back to all calls of the program if the time of each call is not known, or not any more.
  const bool known = apart || calls_seen_ == allocator_calls_;
  if (calls_seen_ > 0 && known && !((found.marked || found.by_ranges) && spans_dropped_)) calls = static_cast<double>(calls_in_steps_);
  found.us_each = static_cast<double>(ns) * 1e-3 / count;
  found.untraced = untraced_, found.kernels = any_kernel_;
  found.allocator_calls_each = calls / count;
  return found;
}

StepFinder& StepFinders::of(int rank) {
  if (rank < 0) return process_;
  const auto [at, fresh] = ranks_.try_emplace(rank);
  if (fresh) at->second.take(calls_);
  return at->second;
}

void StepFinders::take(int rank, TrackKind kind, const std::string& row, std::span<const Span> spans,
                       std::span<const std::string> names) {
  of(rank).take(kind, row, spans, names);
  const bool shared = rank < 0 && (kind == TrackKind::Untraced || kind == TrackKind::Api);
  for (auto& [each, finder] : ranks_)
    if (shared) finder.take(kind, row, spans, names);
}

void StepFinders::take(const StepAllocations& calls) {
  calls_.allocations += calls.allocations, calls_.frees += calls.frees;
  calls_.async_allocations += calls.async_allocations, calls_.async_frees += calls.async_frees;
  process_.take(calls);
  for (auto& [each, finder] : ranks_) finder.take(calls);
}

std::map<int, FoundSteps> StepFinders::find() {
  std::map<int, FoundSteps> all;
  for (auto& [rank, finder] : ranks_)
    if (FoundSteps found = finder.find(); !found.steps.empty()) all.emplace(rank, std::move(found));
  if (!all.empty()) return all;
  if (FoundSteps found = process_.find(); !found.steps.empty()) all.emplace(-1, std::move(found));
  return all;
}

}  // namespace ws::prof
