#include "profiling/analysis/step_breaks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiling/base/statistics.h"

namespace ws::prof {

StepBreaks::StepBreaks(std::span<const Span> steps, double steps_per_epoch, std::vector<StepWindowNs> untraced)
    : steps_per_epoch_(steps_per_epoch), untraced_(std::move(untraced)) {
  std::vector<TimeNs> gaps, lengths, strides, intervals;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    gaps.push_back(steps[i + 1].start - steps[i].end());
    lengths.push_back(static_cast<TimeNs>(steps[i].duration));
    intervals.push_back(steps[i + 1].start - steps[i].start);
    strides.push_back(int64_t{steps[i + 1].step} - int64_t{steps[i].step});
  }
  if (gaps.empty()) return;
  stride_ = std::max<int64_t>(1, middle_value(strides));
  pause_ = std::max({8 * middle_value(gaps), 2 * middle_value(lengths), TimeNs{20'000}});
  longest_ = std::max(static_cast<TimeNs>(kPauseFactor * static_cast<double>(middle_value(intervals))), TimeNs{20'000});
}

// Where one rank waits before its step, another one waits inside of the step before it.
void StepBreaks::share(std::span<const Span> of_other_rank) {
  const StepBreaks theirs(of_other_rank);
  constexpr size_t kBeside = 1;
  for (size_t i = 1; i < of_other_rank.size(); ++i) {
    bool pauses = false;
    for (size_t j = std::max(i - kBeside, size_t{1}); j <= std::min(i + kBeside, of_other_rank.size() - 1); ++j)
      pauses = pauses || theirs.own_pause(of_other_rank[j - 1], of_other_rank[j]);
    if (!pauses && of_other_rank[i].step > 0) run_through_.insert(of_other_rank[i].step);
  }
}

bool StepBreaks::pause(const Span& before, const Span& after) const {
  return own_pause(before, after) && !run_through_.contains(after.step);
}

bool StepBreaks::own_pause(const Span& before, const Span& after) const {
  const double usual = static_cast<double>(longest_) * static_cast<double>(steps_between(before, after)) / static_cast<double>(stride_);
  return after.start - before.end() > pause_ || static_cast<double>(after.start - before.start) > usual;
}

int64_t StepBreaks::steps_between(const Span& before, const Span& after) const {
  return before.step > 0 ? std::max<int64_t>(1, int64_t{after.step} - int64_t{before.step}) : stride_;
}

bool StepBreaks::longer_launch(const Span& before, const Span& after) const {
  return stride_ > 1 && steps_between(before, after) > stride_ && !pause(before, after) && !other_epoch(before, after) &&
         !untraced_between(before, after);
}

bool StepBreaks::between(const Span& before, const Span& after) const {
  if (before.step > 0 && int64_t{after.step} - int64_t{before.step} != stride_) return true;  // untraced steps, or a longer launch
  return other_epoch(before, after) || pause(before, after) || untraced_between(before, after);
}

bool StepBreaks::other_epoch(const Span& before, const Span& after) const {
  const auto epoch = [this](const Span& s) { return std::floor((s.step - 1.0) / steps_per_epoch_ + 1e-9); };
  return before.step > 0 && steps_per_epoch_ >= 2 && epoch(before) != epoch(after);
}

bool StepBreaks::untraced_between(const Span& before, const Span& after) const {
  return std::ranges::any_of(untraced_, [&](const StepWindowNs& u) { return u.begin < after.start && u.end > before.start; });
}

}  // namespace ws::prof
