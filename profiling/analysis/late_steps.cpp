#include "profiling/analysis/late_steps.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>

#include "profiling/base/statistics.h"

namespace ws::prof {

namespace {

constexpr size_t kFewSteps = 5;

bool known(double late) { return late == late; }
std::vector<double> known_of(std::vector<double> late) {
  std::erase_if(late, [](double one) { return !known(one); });
  return late;
}

// The σ of normally distributed values. A few others do not count.
double normal_spread(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::abs(value - middle);
  return 1.4826 * median(std::move(values));
}

// Fewer late steps than this say nothing: a library is loaded, a page is read.
size_t fewest_late(size_t steps) {
  constexpr size_t kHiccups = 100;  // one late step in so many
  return steps < kFewSteps ? 1 : 2 + steps / kHiccups;
}

// The least lateness of a late step: half of the bound above which delays cost most, so that neither a few hiccups nor
// many tiny delays hide those that matter.
double least_late(std::vector<double> late, double least) {
  constexpr double kOfBound = 0.5;
  const size_t hiccups = fewest_late(late.size()) - 1;
  std::erase_if(late, [least](double one) { return !(one > least); });
  std::ranges::sort(late, std::greater());
  double most = 0, bound = 0;
  for (size_t i = hiccups; i < late.size(); ++i) {
    const double cost = late[i] * static_cast<double>(i + 1 - hiccups);
    if (cost > most) most = cost, bound = late[i];
  }
  return std::max(least, kOfBound * bound);
}

// The steps whose numbers have a remainder.
struct Class {
  int every = 0;  // 0: no such steps
  int64_t remainder = 0;
  bool has(int64_t number) const { return number % every == remainder; }
};

int64_t usual_remainder(const std::vector<int64_t>& numbers, int64_t n) {
  std::unordered_map<int64_t, size_t> remainders;
  for (const int64_t number : numbers) ++remainders[number % n];
  return std::ranges::max_element(remainders, {}, [](const auto& each) { return each.second; })->first;
}

class Steps {
 public:
  Steps(StepDelays late, std::span<const int64_t> numbers) : late_(std::move(late)), numbers_(numbers) {}

  Class class_of_late(double least) const {
    const auto [numbers, by] = above(least_late(late_, least));
    return numbers.size() < fewest_late(late_.size()) ? Class{} : spacing(numbers);
  }

  LateSteps without_pattern(double least) const {
    const auto [numbers, by] = above(least_late(late_, least));
    return numbers.size() < fewest_late(late_.size()) ? LateSteps{} : LateSteps{median(by), by.size(), 0};
  }

  // Steps of the class count even if they were not late, so that chance does not choose them.
  LateSteps of(const Class& steps) const {
    const std::vector<double> by = lateness_of(steps);
    const double middle = median(by);
    const auto late = std::ranges::count_if(by, [middle](double one) { return 2 * one > middle; });
    return {middle, static_cast<size_t>(late), steps.every};
  }

  void leave_out(const Class& steps) {
    for (size_t s = 0; s < late_.size(); ++s)
      if (steps.has(numbers_[s])) late_[s] = std::numeric_limits<double>::quiet_NaN();
  }

  // "Every n-th step" among steps that are late for other reasons: the steps of the class stand higher in the order of
  // lateness than chance would put them. `least`: how much later than usual the class has to be.
  Class hidden_class(double least) const {
    constexpr double kShare = 0.75;
    std::vector<double> sorted = known_of(late_);
    std::ranges::sort(sorted);
    if (sorted.size() < kFewSteps) return {};
    const double usual = sorted[sorted.size() / 2];
    if (sorted.back() - usual <= least) return {};
    const Class best = highest_class(places_in(sorted));
    if (best.every == 0) return {};
    const std::vector<double> by = lateness_of(best);
    const double middle = median(by);
    const auto late = std::ranges::count_if(by, [&](double one) { return 2 * one > middle + usual; });
    const bool is_late = middle > least && middle - usual > least;
    return is_late && static_cast<double>(late) >= kShare * static_cast<double>(by.size()) ? best : Class{};
  }

 private:
  std::pair<std::vector<int64_t>, std::vector<double>> above(double least) const {
    std::pair<std::vector<int64_t>, std::vector<double>> found;
    for (size_t s = 0; s < late_.size(); ++s)
      if (late_[s] > least) found.first.push_back(numbers_[s]), found.second.push_back(late_[s]);
    return found;
  }

  std::vector<double> lateness_of(const Class& steps) const {
    std::vector<double> by;
    for (size_t s = 0; s < late_.size(); ++s)
      if (known(late_[s]) && steps.has(numbers_[s])) by.push_back(late_[s]);
    return by;
  }

  // "Every n-th step" of late steps. A few steps may break the pattern.
  Class spacing(const std::vector<int64_t>& numbers) const {
    constexpr size_t kFewest = 3;
    // The share of the late steps that may lie elsewhere, or of the pattern that may be missing.
    constexpr double kMost = 0.2;
    if (numbers.size() < kFewest) return {};
    std::vector<int64_t> apart;
    for (size_t i = 1; i < numbers.size(); ++i) apart.push_back(numbers[i] - numbers[i - 1]);
    const int64_t n = middle_value(apart);
    if (n > std::numeric_limits<int>::max()) return {};
    const Class pattern{static_cast<int>(n), usual_remainder(numbers, n)};
    const auto fitting =
        static_cast<double>(std::ranges::count_if(numbers, [&](int64_t number) { return pattern.has(number); }));
    const auto all = static_cast<double>((numbers_.back() - numbers_.front()) / n);
    const bool fits = fitting >= (1 - kMost) * static_cast<double>(numbers.size()) && fitting >= (1 - kMost) * all;
    return fits ? pattern : Class{};
  }

  // By step: its place in the order of lateness, from 0 to 1.
  std::vector<double> places_in(const std::vector<double>& sorted) const {
    std::vector<double> places(late_.size());
    for (size_t s = 0; s < late_.size(); ++s) {
      if (!known(late_[s])) continue;
      const auto same = std::ranges::equal_range(sorted, late_[s]);
      places[s] = 0.5 * static_cast<double>((same.begin() - sorted.begin()) + (same.end() - sorted.begin())) /
                  static_cast<double>(sorted.size());
    }
    return places;
  }

  // Chance puts the mean place of a class at 0.5, give or take 1 / √(12 · steps).
  Class highest_class(const std::vector<double>& places) const {
    constexpr int kLongest = 64;
    constexpr double kSigmas = 7;
    Class best;
    double most = kSigmas;
    for (int n = 2; n <= kLongest; ++n) {
      std::vector<double> steps(static_cast<size_t>(n)), sum(static_cast<size_t>(n));  // by remainder
      for (size_t s = 0; s < late_.size(); ++s) {
        if (!known(late_[s])) continue;
        const auto remainder = static_cast<size_t>(numbers_[s] % n);
        ++steps[remainder], sum[remainder] += places[s];
      }
      for (size_t r = 0; r < steps.size(); ++r) {
        const double sigmas = steps[r] > 0 ? (sum[r] / steps[r] - 0.5) * std::sqrt(12 * steps[r]) : 0;
        if (sigmas > most) most = sigmas, best = {n, static_cast<int64_t>(r)};
      }
    }
    return best;
  }

  StepDelays late_;
  std::span<const int64_t> numbers_;
};

}  // namespace

double usual_spread(const std::vector<StepDelays>& of_ranks) {
  std::vector<double> spreads;
  for (const StepDelays& late : of_ranks)
    if (std::vector<double> values = known_of(late); !values.empty()) spreads.push_back(normal_spread(std::move(values)));
  const size_t ranks = spreads.size();
  return ranks == 0 ? 0 : median(std::move(spreads)) / (ranks == 2 ? 2 : 1);
}

double systematic_lateness(const StepDelays& late) {
  constexpr double kIntervals = 2.5, kSpreads = 0.5;
  const std::vector<double> values = known_of(late);
  if (values.size() < kFewSteps) return 0;
  const Interval mean = interval_of_blocks(values);
  return mean.value > kIntervals * mean.half_width && mean.value > kSpreads * normal_spread(values) ? mean.value : 0;
}

std::vector<LateSteps> late_steps(const StepDelays& late, std::span<const int64_t> numbers, double spread,
                                  double clock_error) {
  constexpr double kLeast = 1e-3;
  const double least = std::max({clock_error, kSigmasOfLate * spread, kLeast});
  Steps steps(late, numbers);
  if (const Class regular = steps.class_of_late(least); regular.every > 0) return {steps.of(regular)};
  std::vector<LateSteps> found;
  if (const Class hidden = steps.hidden_class(std::max({clock_error, spread, kLeast})); hidden.every > 0) {
    found.push_back(steps.of(hidden));
    steps.leave_out(hidden);
  }
  if (const LateSteps others = steps.without_pattern(least); others.count > 0) found.push_back(others);
  return found;
}

}  // namespace ws::prof
