#include "profiling/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace ws {
namespace {

constexpr size_t kBlocks = 20;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::vector<double> block_of(const std::vector<double>& samples, size_t block, size_t blocks) {
  const auto at = [&](size_t i) { return samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * i / blocks); };
  return {at(block), at(block + 1)};
}

double mean(const std::vector<double>& samples) {
  double sum = 0;
  for (const double sample : samples) sum += sample;
  return sum / static_cast<double>(samples.size());
}

}  // namespace

double percentile_of_sorted(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return kUnknown;
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return percentile_of_sorted(values, share);
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

double spread_around_median(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::abs(value - middle);
  return median(std::move(values));
}

double student_t(size_t freedom) {
  constexpr double kSmall[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return freedom <= std::size(kSmall) ? kSmall[freedom - 1] : 1.96 + 2.5 / static_cast<double>(freedom);
}

Interval mean_with_interval(const std::vector<double>& samples) {
  if (samples.empty()) return {};
  const double middle = mean(samples), n = static_cast<double>(samples.size());
  if (samples.size() < 2) return {middle, 0};
  double squares = 0;
  for (const double sample : samples) squares += (sample - middle) * (sample - middle);
  return {middle, student_t(samples.size() - 1) * std::sqrt(squares / (n - 1) / n)};
}

namespace {

// The 95 % interval follows from the order of the samples alone. Unknown if there are too few samples beside the percentile.
Interval percentile_by_order(std::vector<double> samples, double share) {
  std::ranges::sort(samples);
  const auto n = static_cast<double>(samples.size());
  const double value = percentile_of_sorted(samples, share), around = 1.96 * std::sqrt(n * share * (1 - share));
  const double below = n * share - around, above = n * (1 - share) - around;
  if (below < 0 || above < 0) return {value, kUnknown};
  return {value, std::max(value - samples[static_cast<size_t>(below)], samples[samples.size() - 1 - static_cast<size_t>(above)] - value)};
}

// With six samples, the true median lies between the least and the greatest with 97 % probability.
constexpr size_t kFewestOfMedian = 6;

}  // namespace

Interval median_with_interval(std::vector<double> samples) {
  return samples.size() < kFewestOfMedian ? Interval{} : percentile_by_order(std::move(samples), 0.5);
}

Interval interval_of_blocks(const std::vector<double>& samples) {
  if (samples.size() < 2 * kBlocks) return mean_with_interval(samples);
  std::vector<double> means;
  for (size_t i = 0; i < kBlocks; ++i) means.push_back(mean(block_of(samples, i, kBlocks)));
  return {mean(samples), mean_with_interval(means).half_width};
}

// A block has the samples that its percentile needs: a block of 20 has a 95th percentile, but no 99th.
Interval percentile_of_blocks(const std::vector<double>& samples, double share) {
  constexpr size_t kSamples = 20, kFewest = 3;  // samples in a block; blocks
  const auto least = std::max(kSamples, static_cast<size_t>(std::ceil(1 / std::max(1e-9, std::min(share, 1 - share)))));
  size_t blocks = std::min(kBlocks, samples.size() / least);
  // In a short run, blocks of five still have a median. Means would all be its one long step.
  if (blocks < kFewest && share == 0.5) blocks = samples.size() / 5;
  if (blocks < kFewest && share == 0.5 && samples.size() < kFewestOfMedian) return {percentile(samples, share), interval_of_blocks(samples).half_width};
  if (blocks < kFewest) return percentile_by_order(samples, share);
  std::vector<double> each;
  for (size_t i = 0; i < blocks; ++i) each.push_back(percentile(block_of(samples, i, blocks), share));
  return {percentile(samples, share), mean_with_interval(each).half_width};
}

Difference difference(const Interval& baseline, const Interval& candidate) {
  const double delta = candidate.value - baseline.value, noise = std::hypot(baseline.half_width, candidate.half_width);
  return {delta, noise, std::abs(delta) > noise};
}

namespace {

// In how many of the orders of n and m samples a pair is in the wrong order exactly u times, for each u.
std::vector<double> orders_by_wrong_pairs(size_t n, size_t m) {
  // After i samples of the first kind: each one stands behind 0 to m of the second.
  std::vector<std::vector<double>> ways(m + 1, std::vector<double>(n * m + 1));
  for (auto& row : ways) row[0] = 1;
  for (size_t i = 0; i < n; ++i) {
    std::vector<std::vector<double>> next(m + 1, std::vector<double>(n * m + 1));
    for (size_t behind = 0; behind <= m; ++behind)
      for (size_t u = 0; u <= n * m; ++u)
        next[behind][u] = (behind > 0 ? next[behind - 1][u] : 0) + (u >= behind ? ways[behind][u - behind] : 0);
    ways = std::move(next);
  }
  return ways[m];
}

// How many pairs at each end lie outside of the 95 % interval; 0: too few samples for one.
size_t pairs_outside(size_t n, size_t m) {
  const std::vector<double> ways = orders_by_wrong_pairs(n, m);
  const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
  size_t out = 0;
  for (double seen = ways[0]; 2 * seen <= 0.05 * all; seen += ways[out]) ++out;
  return out;
}

}  // namespace

std::optional<double> noise_of_few(const std::vector<double>& baseline, const std::vector<double>& candidate, double delta) {
  if (std::max(baseline.size(), candidate.size()) > kFewSamples || baseline.empty() || candidate.empty()) return std::nullopt;
  const size_t out = pairs_outside(baseline.size(), candidate.size());
  if (out == 0) return std::nullopt;
  std::vector<double> pairs;
  for (const double a : baseline)
    for (const double b : candidate) pairs.push_back(delta < 0 ? a - b : b - a);
  std::ranges::sort(pairs);
  return std::max(0.0, std::abs(delta) - pairs[out - 1]);
}

}  // namespace ws
