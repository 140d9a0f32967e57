#include "profiling/analysis/step_finder.h"
#include "profiling/base/statistics.h"
#include "profiling/trace/span_walk.h"

#include <algorithm>

namespace ws::prof {

namespace {

constexpr TimeNs kLongestStep = (TimeNs{1} << 40) - 1;  // the longest duration of a span

bool allocates_on_device(const Span& span, const std::string& name) {
  return (span.span_kind() == SpanKind::Alloc || span.span_kind() == SpanKind::Free) &&
         name.find("Host") == std::string::npos;
}

}  // namespace

std::vector<Span> FoundSteps::spans(NameId name, size_t first) const {
  std::vector<Span> spans;
  for (size_t i = first; i < steps.size(); ++i) {
    const FoundStep& step = steps[i];
    Span& span = spans.emplace_back();
    span.start = step.start;
    span.duration = static_cast<uint64_t>(std::clamp<TimeNs>(step.end - step.start, 0, kLongestStep));
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.flags = by_ranges ? 0 : kEstimated;
    span.name = name;
    span.step = static_cast<uint32_t>(i + 1);
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
    const FoundStep time{span.start, span.end()};
    if (kind == TrackKind::Overhead && row.ends_with(kUntracedTrack)) untraced_.push_back(time);
    if (kind == TrackKind::Phases && names_a_step(names[at])) ranges_.push_back(time);
    if (kind == TrackKind::Api && allocates_on_device(span, names[at]))
      allocations_.push_back(span.start), ++kept_, ++calls_seen_;
    if (kind == TrackKind::Api && span.span_meaning() == Meaning::Launch && span.correlation != 0 && !let_go_)
      launches_.push_back({span.correlation, span.start});
    const bool collective = kind == TrackKind::Other && span.span_meaning() == Meaning::Communication;
    if (!is_kernel(span) && !collective) continue;
    if (numbers[at] < 0) numbers[at] = number(names[at]);
    if (!stream) stream = &kernels_[row];
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
  let_go_ = true;
  launches_ = {};
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
  kept_ = allocations_.size();
  for (auto& [name, kernels] : kernels_) {
    std::erase_if(kernels, [until](const SeenKernel& kernel) { return kernel.start < until; });
    kept_ += kernels.size();
  }
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

// Returns {} if some kernels were dropped or never recorded.
std::vector<FoundStep> StepFinder::ranges_on_gpu(std::span<const FoundStep> ranges) {
  std::vector<SeenKernel>* const row = busiest_row();
  if (!row || let_go_ || !untraced_.empty()) return {};
  std::ranges::stable_sort(*row, {}, &SeenKernel::start);
  std::ranges::sort(launches_, {}, &SeenLaunch::call);
  return launches_.empty() ? steps_on_gpu(ranges, *row) : steps_on_gpu(ranges, *row, launches_);
}

const FoundSteps& StepFinder::so_far() {
  so_far_.by_ranges = true;
  if (!kernels_.empty()) return so_far_;  // the GPU may run further steps later than the host marks them
  const TimeNs until = so_far_.steps.empty() ? -kAlways : so_far_.steps.back().end;
  std::vector<FoundStep> fresh(ranges_.begin() + static_cast<std::ptrdiff_t>(looked_), ranges_.end());
  std::erase_if(fresh, [until](const FoundStep& range) { return range.start < until; });
  const std::vector<FoundStep> steps = steps_of_ranges(std::move(fresh));
  if (steps.empty()) return so_far_;
  so_far_.steps.insert(so_far_.steps.end(), steps.begin(), steps.end() - 1);
  while (ranges_[looked_].start < so_far_.steps.back().end) ++looked_;
  return so_far_;
}

FoundSteps StepFinder::find() {
  std::ranges::sort(untraced_, {}, &FoundStep::start);
  FoundSteps found;
  found.steps = steps_of_ranges(ranges_);
  found.by_ranges = !found.steps.empty();
  if (!found.by_ranges) found.steps = repetitions();
  if (found.steps.empty()) return found;
  settle_allocations(found.steps, kAlways);  // the host made the calls, so host times are compared
  if (found.by_ranges)
    if (std::vector<FoundStep> steps = ranges_on_gpu(found.steps); !steps.empty()) found.steps = std::move(steps);
  const auto count = static_cast<double>(found.steps.size());
  TimeNs ns = found.steps.back().end - found.steps.front().start;
  auto calls = static_cast<double>(allocator_calls_);
  const bool apart = !found.by_ranges && (!untraced_.empty() || skipped_);
  if (apart) {  // nothing is known about the time between these steps
    ns = 0;
    for (const FoundStep& step : found.steps) ns += step.end - step.start;
  }
  // Falls back to all calls of the program if the time of each call is not known, or not any more.
  const bool known = apart || calls_seen_ == allocator_calls_;
  if (calls_seen_ > 0 && known && !(found.by_ranges && let_go_)) calls = static_cast<double>(calls_in_steps_);
  found.us_each = static_cast<double>(ns) * 1e-3 / count;
  found.untraced = untraced_, found.kernels = !kernels_.empty();
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
  const bool shared = rank < 0 && (kind == TrackKind::Overhead || kind == TrackKind::Api);
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
