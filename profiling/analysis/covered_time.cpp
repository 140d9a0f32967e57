#include "profiling/analysis/covered_time.h"

#include <algorithm>

namespace ws::prof {

namespace {

// In order, without overlaps.
std::vector<TimeRange> joined(std::vector<TimeRange> ranges) {
  std::ranges::sort(ranges, {}, &TimeRange::begin);
  size_t kept = 0;
  for (const TimeRange& range : ranges) {
    if (range.end <= range.begin) continue;
    if (kept > 0 && range.begin <= ranges[kept - 1].end)
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
  return ranges;
}

}  // namespace

CoveredTime::CoveredTime(std::vector<TimeRange> ranges) : ranges_(joined(std::move(ranges))) {
  int64_t all = 0;
  for (const TimeRange& range : ranges_) before_.push_back(all), all += range.length();
}

int64_t CoveredTime::within(TimeRange part) const { return part.begin < part.end ? until(part.end) - until(part.begin) : 0; }

int64_t CoveredTime::until(TimeNs time) const {
  const auto next = static_cast<size_t>(std::ranges::upper_bound(ranges_, time, {}, &TimeRange::begin) - ranges_.begin());
  if (next == 0) return 0;
  return before_[next - 1] + std::min(time, ranges_[next - 1].end) - ranges_[next - 1].begin;
}

}  // namespace ws::prof
