#include "profiling/collectors/step_finder.h"

#include <algorithm>

namespace ws::prof {

namespace {

constexpr size_t kMostKept = 4'000'000;                 // kernels, and calls, that are kept to look for steps in
constexpr TimeNs kLongestStep = (TimeNs{1} << 40) - 1;  // what a span can hold

bool allocates_on_device(const Span& span, const std::string& name) {
  return (span.span_kind() == SpanKind::Alloc || span.span_kind() == SpanKind::Free) && !name.ends_with("Host");
}

}  // namespace

std::vector<Span> FoundSteps::spans(NameId name) const {
  std::vector<Span> spans;
  for (const FoundStep& step : steps) {
    Span& span = spans.emplace_back();
    span.start = step.start;
    span.duration = static_cast<uint64_t>(std::clamp<TimeNs>(step.end - step.start, 0, kLongestStep));
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    span.meaning = static_cast<uint64_t>(Meaning::Other);
    span.flags = by_ranges ? 0 : kEstimated;
    span.name = name;
    span.step = static_cast<uint32_t>(spans.size());
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
    if (kept_ >= kMostKept) continue;
    if (kind == TrackKind::Api && allocates_on_device(span, names[at])) allocations_.push_back(span.start), ++kept_;
    if (span.span_kind() != SpanKind::Kernel) continue;
    if (numbers[at] < 0) numbers[at] = number(names[at]);
    if (!stream) stream = &kernels_[row];
    stream->push_back({span.start, span.end(), static_cast<uint32_t>(numbers[at])});
    ++kept_;
  }
}

void StepFinder::take(const StepAllocations& calls) {
  allocator_calls_ += uint64_t{calls.allocations} + calls.frees + calls.async_allocations + calls.async_frees;
}

std::vector<FoundStep> StepFinder::repetitions() {
  std::vector<SeenKernel>* busiest = nullptr;
  for (auto& [stream, kernels] : kernels_)
    if (!busiest || kernels.size() > busiest->size()) busiest = &kernels;
  if (!busiest) return {};
  std::ranges::stable_sort(*busiest, {}, &SeenKernel::start);
  return find_steps(*busiest, untraced_);
}

size_t StepFinder::allocations_within(const std::vector<FoundStep>& steps) const {
  return static_cast<size_t>(std::ranges::count_if(allocations_, [&](TimeNs time) {
    const auto after = std::ranges::upper_bound(steps, time, {}, &FoundStep::start);
    return after != steps.begin() && time < std::prev(after)->end;
  }));
}

FoundSteps StepFinder::find() {
  std::ranges::sort(untraced_, {}, &FoundStep::start);
  FoundSteps found;
  found.steps = steps_of_ranges(ranges_);
  found.by_ranges = !found.steps.empty();
  if (!found.by_ranges) found.steps = repetitions();
  if (found.steps.empty()) return found;
  const auto count = static_cast<double>(found.steps.size());
  TimeNs ns = found.steps.back().end - found.steps.front().start;
  auto calls = static_cast<double>(allocator_calls_);
  if (!found.by_ranges && !untraced_.empty()) {  // of the others nothing is known, though their calls were counted
    ns = 0;
    for (const FoundStep& step : found.steps) ns += step.end - step.start;
    calls = static_cast<double>(allocations_within(found.steps));
  }
  found.us_each = static_cast<double>(ns) * 1e-3 / count;
  found.allocator_calls_each = calls / count;
  return found;
}

}  // namespace ws::prof
