#include "profiling/base/few_samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace ws {
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
