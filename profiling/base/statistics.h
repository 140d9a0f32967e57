// The statistics of every measure: one median, one percentile, one interval and one noise rule.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace ws {

// A measured value with the half width of its 95 % interval. NaN: not measured; a half width of 0: not known.
struct Interval {
  double value = std::numeric_limits<double>::quiet_NaN(), half_width = 0;
  bool known() const { return value == value; }
};

// Interpolates linearly between neighbours. NaN if there are no values. `share`: 0.5 is the median.
double percentile(std::vector<double> values, double share);
double percentile_of_sorted(const std::vector<double>& sorted, double share);
double median(std::vector<double> values);
double spread_around_median(std::vector<double> values);  // the median distance from the median; few outliers do not count

// Returns a middle value, the upper one if the count is even. Reorders the values; there must be at least one.
template <class Value>
Value middle_value(std::vector<Value>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double student_t(size_t freedom);  // 95 %, two-sided

// The mean of independent samples.
Interval mean_with_interval(const std::vector<double>& samples);
// The median of independent samples. Its interval follows from their order alone. Unknown for fewer than six samples.
Interval median_with_interval(std::vector<double> samples);
// The mean of samples in their order in time. Neighbouring steps are correlated, so the spread of single samples would
// be too small. The interval comes from the means of blocks of steps.
Interval interval_of_blocks(const std::vector<double>& samples);
// A percentile of samples in their order in time. The interval comes from the percentiles of blocks, or, with few
// samples, from their order; it is unknown (NaN) if there are too few.
Interval percentile_of_blocks(const std::vector<double>& samples, double share);

// The noise rule: a difference counts only if it exceeds its 95 % interval. Otherwise it is within noise.
struct Difference {
  double delta, noise;  // the 95 % interval is delta ± noise
  bool beyond_noise;    // false if one of the two is not known
};
Difference difference(const Interval& baseline, const Interval& candidate);

// A few samples compared with a few others by their order alone.
inline constexpr size_t kFewSamples = 10;
// The noise of a difference of medians from few samples, whose own intervals would be too wide: exact, from the ranks of all
// samples (Mann-Whitney). Returns nullopt for more than kFewSamples, and for so few that no difference could count.
std::optional<double> noise_of_few(const std::vector<double>& baseline, const std::vector<double>& candidate, double delta);

}  // namespace ws
