// The statistics of every measure: one median, one percentile, one interval and one rule for noise.
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace ws {

// A measured value with the half width of its 95 % interval. NaN: not measured; a half width of 0: not known.
struct Interval {
  double value = std::numeric_limits<double>::quiet_NaN(), half_width = 0;
  bool known() const { return value == value; }
};

// Between neighbours linear; NaN of no values. `share`: 0.5 is the median.
double percentile(std::vector<double> values, double share);
double percentile_of_sorted(const std::vector<double>& sorted, double share);
double median(std::vector<double> values);

// One of the values, the upper one of two in the middle. The values change places; there must be one.
template <class Value>
Value middle_value(std::vector<Value>& values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double student_t(size_t freedom);  // 95 %, two-sided

// The mean of independent samples.
Interval mean_with_interval(const std::vector<double>& samples);
// The median of independent samples: how far off it may be follows from their order alone. Nothing of fewer than six.
Interval median_with_interval(std::vector<double> samples);
// The mean of samples in their order. Steps next to each other resemble each other, so that their spread says too
// little: means of blocks of steps are compared instead.
Interval interval_of_blocks(const std::vector<double>& samples);
// A percentile of samples in their order, with the spread of the blocks' percentiles.
Interval percentile_of_blocks(const std::vector<double>& samples, double share);

// The noise rule. Beyond the 95 % interval of the difference it is a difference, else it is within noise.
struct Difference {
  double delta, noise;  // the 95 % interval is delta ± noise
  bool beyond_noise;    // false if one of both is not known
};
Difference difference(const Interval& baseline, const Interval& candidate);

}  // namespace ws
