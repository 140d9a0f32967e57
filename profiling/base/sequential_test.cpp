#include "profiling/base/sequential_test.h"

#include <algorithm>
#include <cmath>

#include "profiling/base/statistics.h"

namespace ws {
namespace {

struct Look {
  size_t pairs;
  double outside;  // probability of a false alarm at this look
};
// At the first look all differences must have one sign: 2 / 2^9. Late looks get more than early ones: only they can see a small
// difference in noisy times.
constexpr Look kLooks[] = {{9, 0.00391}, {12, 0.0003}, {16, 0.0004}, {22, 0.0004}, {30, 0.0005}, {40, 0.0005}, {56, 0.0006}, {80, 0.0007}, {112, 0.0007}, {160, 0.0009}, {kMostPairs, 0.001}};

// The probability that the sum of the ranks of positive values is at most `sum`, for `count` values.
class RankSums {
 public:
  explicit RankSums(size_t count) : ways_(count * (count + 1) / 2 + 1, 0) {
    ways_[0] = 1;
    for (size_t rank = 1; rank <= count; ++rank)
      for (size_t sum = ways_.size(); sum-- > 0;) ways_[sum] = 0.5 * ways_[sum] + (sum >= rank ? 0.5 * ways_[sum - rank] : 0);
  }
  // The greatest number of means that may be left out at one end.
  size_t left_out(double one_side) const {
    double probability = 0;
    size_t sum = 0;
    while (sum < ways_.size() && (probability += ways_[sum]) <= one_side) ++sum;
    return sum;
  }

 private:
  std::vector<double> ways_;
};

// Two groups of values with a wide gap between them, each with a fifth of the values or more.
struct Modes {
  bool two = false;
  double border = 0, ratio = 1;
};

Modes modes_of(std::vector<double> logs) {
  constexpr size_t kFewest = 10;
  constexpr double kWideGap = 4, kLeastGap = 0.015;
  Modes modes;
  if (logs.size() < kFewest) return modes;
  std::ranges::sort(logs);
  const size_t fifth = logs.size() / 5;
  size_t at = fifth;
  for (size_t i = fifth; i + fifth <= logs.size(); ++i)
    if (logs[i] - logs[i - 1] > logs[at] - logs[at - 1]) at = i;
  const std::vector<double> low(logs.begin(), logs.begin() + static_cast<std::ptrdiff_t>(at)), high(logs.begin() + static_cast<std::ptrdiff_t>(at), logs.end());
  const double gap = logs[at] - logs[at - 1], apart = median(high) - median(low);
  const double spread = std::max(spread_around_median(low), spread_around_median(high));
  modes.two = gap > kLeastGap && apart > kWideGap * 1.48 * spread && gap > spread;
  modes.border = 0.5 * (logs[at] + logs[at - 1]), modes.ratio = std::exp(apart);
  return modes;
}

// Only sizes decide what is left out, never signs, so the changes of equal programs stay symmetric. The shortest interval with
// half of the sizes says where most of them are.
void leave_outliers_out(std::vector<double>& changes, GateState& state) {
  constexpr size_t kFewest = 8;
  constexpr double kLengths = 3, kNearAlways = 0.002;
  if (changes.size() < kFewest) return;
  std::vector<double> sizes;
  for (const double change : changes) sizes.push_back(std::abs(change));
  std::ranges::sort(sizes);
  const size_t half = (sizes.size() + 1) / 2;
  size_t best = 0;
  for (size_t i = 0; i + half <= sizes.size(); ++i)
    if (sizes[i + half - 1] - sizes[i] < sizes[best + half - 1] - sizes[best]) best = i;
  const double low = sizes[best], high = sizes[best + half - 1];
  const double most = high + kLengths * (high - low) + kNearAlways;
  state.outliers = std::erase_if(changes, [&](double change) { return std::abs(change) > most; });
}

// How much slower the machine gets from pair to pair: the median of all slopes. The faster one of a pair is rarely an outlier.
double drift_of(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> slopes;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j)
      slopes.push_back((std::min(a[j], b[j]) - std::min(a[i], b[i])) / static_cast<double>(j - i));
  return slopes.empty() ? 0 : middle_value(slopes);
}

// Both sides must have the two modes: one of a side alone is what makes it slower. Pairs in different modes say how often a
// mode comes, not how fast each is.
std::vector<double> changes_of(const std::vector<MeasuredPair>& pairs, GateState& state) {
  constexpr double kSameRatio = 0.3;
  std::vector<double> logs_a, logs_b, changes;
  for (const MeasuredPair& pair : pairs) {
    ++state.pairs;
    state.busy += pair.busy;
    if (pair.busy) continue;
    logs_a.push_back(std::log(pair.a));
    logs_b.push_back(std::log(pair.b));
  }
  const double drift = drift_of(logs_a, logs_b);
  for (size_t i = 0; i < logs_a.size(); ++i) logs_a[i] -= drift * static_cast<double>(i), logs_b[i] -= drift * static_cast<double>(i);
  const Modes a = modes_of(logs_a), b = modes_of(logs_b);
  const double apart_a = std::log(a.ratio), apart_b = std::log(b.ratio);
  const bool two = a.two && b.two && std::abs(apart_a - apart_b) < kSameRatio * (apart_a + apart_b);
  state.two_modes = two, state.mode_ratio = two ? std::sqrt(a.ratio * b.ratio) : 1;
  for (size_t i = 0; i < logs_a.size(); ++i) {
    const bool slow_a = two && logs_a[i] > a.border, slow_b = two && logs_b[i] > b.border;
    state.slow_a += slow_a, state.slow_b += slow_b, state.mixed += slow_a != slow_b;
    if (slow_a == slow_b) changes.push_back(logs_b[i] - logs_a[i]);
  }
  leave_outliers_out(changes, state);
  state.used = changes.size();
  return changes;
}

// `out`: means that are left out at each end.
RankInterval interval_without(const std::vector<double>& values, size_t out) {
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t j = i; j < values.size(); ++j) means.push_back(0.5 * (values[i] + values[j]));
  const auto smallest = [&](size_t rank) {
    const auto at = means.begin() + static_cast<std::ptrdiff_t>(rank);
    std::ranges::nth_element(means, at);
    return *at;
  };
  if (means.empty()) return {-HUGE_VAL, std::nan(""), HUGE_VAL};
  const double middle = 0.5 * (smallest((means.size() - 1) / 2) + smallest(means.size() / 2));
  if (out == 0) return {-HUGE_VAL, middle, HUGE_VAL};
  return {smallest(out - 1), middle, smallest(means.size() - out)};
}

// How many means each look leaves out.
const std::vector<size_t>& left_out_at_looks() {
  static const std::vector<size_t> counts = [] {
    std::vector<size_t> of_looks;
    for (const Look& at : kLooks) of_looks.push_back(RankSums(at.pairs).left_out(at.outside / 2));
    return of_looks;
  }();
  return counts;
}

void look(const std::vector<double>& changes, size_t number, double limit, GateState& state) {
  const Look& at = kLooks[number];
  const RankInterval interval = interval_without({changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(at.pairs)}, left_out_at_looks()[number]);
  state.looked = true;
  state.change = std::expm1(interval.middle), state.low = std::expm1(interval.low), state.high = std::expm1(interval.high);
  state.verdict = verdict_of(state.low, state.high, limit);
  state.decided = state.verdict != GateVerdict::CannotTell || at.pairs == kMostPairs;
}

}  // namespace

GateVerdict verdict_of(double low, double high, double limit) {
  if (low > limit) return GateVerdict::Slower;
  if (high < -limit) return GateVerdict::Faster;
  return high <= limit && low >= -limit ? GateVerdict::NoDifference : GateVerdict::CannotTell;
}

RankInterval rank_interval(const std::vector<double>& values, double outside) { return interval_without(values, RankSums(values.size()).left_out(outside / 2)); }

GateState judge(const std::vector<MeasuredPair>& pairs, double limit) {
  GateState state;
  const std::vector<double> changes = changes_of(pairs, state);
  if (!changes.empty()) state.change = std::expm1(median(changes));
  for (size_t number = 0; number < std::size(kLooks); ++number)
    if (!state.decided && changes.size() >= kLooks[number].pairs) look(changes, number, limit, state);
  return state;
}

}  // namespace ws
