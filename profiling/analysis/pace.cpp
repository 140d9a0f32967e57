#include "profiling/analysis/pace.h"

#include <algorithm>
#include <cmath>

namespace ws::prof {

PaceSpread::PaceSpread(Pace first, Pace last)
    : first_(first),
      before_(first),
      mean_s_((last.wall_s - first.wall_s) / std::max(1.0, last.step - first.step)),
      steps_(std::max(1.0, last.step - first.step)),
      ends_(kStretches) {}

void PaceSpread::add(Pace seen) {
  // The loss before a wait was the last of its group.
  if (const double steps = seen.step - before_.step; steps > 0 && !seen_together(before_, seen, mean_s_)) {
    const double share = (before_.step - first_.step) / steps_;
    if (share >= 0 && share < 1) ends_[static_cast<size_t>(share * kStretches)] = before_;
  }
  before_ = seen;
}

// Skips the first stretch, which is warm-up. The last stretch ends with the run.
std::vector<double> PaceSpread::stretches_us() const {
  constexpr size_t kFewest = 6;
  std::vector<Pace> ends;
  for (const Pace& end : ends_)
    if (end.step > first_.step) ends.push_back(end);
  ends.push_back(before_);
  std::vector<double> us;
  for (size_t i = 1; i < ends.size(); ++i)
    if (const double steps = ends[i].step - ends[i - 1].step; steps > 0)
      us.push_back((ends[i].wall_s - ends[i - 1].wall_s) * 1e6 / steps);
  std::erase_if(us, [](double value) { return !std::isfinite(value); });
  if (us.size() < kFewest) us.clear();
  return us;
}

std::vector<double> pace_stretches_us(const std::vector<Pace>& seen) {
  if (seen.empty()) return {};
  PaceSpread spread(seen.front(), seen.back());
  for (const Pace& pace : seen) spread.add(pace);
  return spread.stretches_us();
}

// Keeps the first entry, because stretches begin there.
void PaceLog::keep(Pace seen) {
  if (seen_.size() > 1 && seen.wall_s - seen_[seen_.size() - 2].wall_s < apart_s_)
    seen_.back() = seen;
  else
    seen_.push_back(seen);
}

void PaceLog::add(Pace seen) {
  constexpr size_t kMost = 4096;
  keep(seen);
  if (seen_.size() <= kMost) return;
  apart_s_ = std::max(2 * apart_s_, 2 * (seen_.back().wall_s - seen_.front().wall_s) / static_cast<double>(kMost));
  std::vector<Pace> all;
  all.swap(seen_);
  for (const Pace& pace : all) keep(pace);
  if (seen_.size() <= kMost) return;
  // Times that do not grow, or are not numbers, cannot be separated: every second entry stays.
  for (size_t i = 1; 2 * i < seen_.size(); ++i) seen_[i] = seen_[2 * i];
  seen_.resize((seen_.size() + 1) / 2);
}

}  // namespace ws::prof
