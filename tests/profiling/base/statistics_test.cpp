#include "profiling/base/statistics.h"

#include <gtest/gtest.h>

#include <random>

#include <cmath>

namespace ws {
namespace {

TEST(Statistics, PercentilesAreLinearBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(percentile({0, 10}, 0.05), 0.5);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.99), 7);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, TheMiddleValueIsOneOfTheValues) {
  std::vector<int> values{9, 1, 5, 3};
  EXPECT_EQ(middle_value(values), 5);
}

TEST(Statistics, IntervalsOfKnownSamples) {
  const Interval e = mean_with_interval({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(e.value, 3);
  EXPECT_NEAR(e.half_width, 1.9634, 0.001);
  EXPECT_TRUE(std::isnan(mean_with_interval({}).value));
}

// Neighbours are alike: the spread between single samples would not show a drift.
// Five steps against five, all slower: one order of 126 by chance. The intervals of the means say less.
TEST(Statistics, AFewSamplesAreComparedByTheirOrder) {
  const std::vector<double> fast{100, 130, 104, 103, 160}, slow{161, 190, 170, 600, 165};
  const double delta = median(slow) - median(fast);
  EXPECT_FALSE(difference(mean_with_interval(fast), {mean_with_interval(fast).value + delta, mean_with_interval(slow).half_width}).beyond_noise);
  const auto noise = noise_of_few(fast, slow, delta);
  ASSERT_TRUE(noise);
  EXPECT_LT(*noise, delta);
  EXPECT_LT(*noise_of_few(slow, fast, -delta), delta) << "the same the other way round";
  const std::vector<double> mixed{90, 95, 161, 170, 240};
  EXPECT_GE(*noise_of_few(fast, mixed, median(mixed) - median(fast)), median(mixed) - median(fast));
  EXPECT_FALSE(noise_of_few({1, 2, 3}, {4, 5, 6}, 3)) << "one order of ten by chance";
  EXPECT_TRUE(noise_of_few({1, 2, 3, 4}, {5, 6, 7, 8}, 4));
  EXPECT_FALSE(noise_of_few(std::vector<double>(11, 1), {4, 5, 6}, 3)) << "not few";
}

// Samples of one distribution differ once in twenty times at most.
TEST(Statistics, AFewSamplesOfTheSameDoNotDiffer) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> step(4, 0.5);
  constexpr int kTimes = 4000;
  int differ = 0;
  for (int i = 0; i < kTimes; ++i) {
    std::vector<double> a(5), b(6);
    for (double& one : a) one = step(random);
    for (double& one : b) one = step(random);
    const double delta = median(b) - median(a);
    differ += *noise_of_few(a, b, delta) < std::abs(delta);
  }
  EXPECT_LT(differ, kTimes * 0.055);
  EXPECT_GT(differ, kTimes * 0.005);
}

TEST(Statistics, BlocksSeeWhatSingleSamplesDoNot) {
  std::vector<double> calm, rough, drifting;
  for (int i = 0; i < 2000; ++i) {
    calm.push_back(100 + (i % 2));
    rough.push_back(100 + 20 * ((i * 7919) % 13) / 13.0);
    drifting.push_back(100 + i / 100);
  }
  EXPECT_LT(interval_of_blocks(calm).half_width, interval_of_blocks(rough).half_width);
  EXPECT_GT(interval_of_blocks(drifting).half_width, 2);
  EXPECT_GT(interval_of_blocks(drifting).half_width, 5 * mean_with_interval(drifting).half_width);
  EXPECT_EQ(interval_of_blocks({}).half_width, 0);
  // One step of a short run contains the end of the program. The median of the steps is known all the same.
  std::vector<double> short_run(50, 64);
  for (size_t i = 0; i < short_run.size(); ++i) short_run[i] += 0.1 * static_cast<double>(i % 7);
  short_run.back() = 24'000;
  EXPECT_LT(percentile_of_blocks(short_run, 0.5).half_width, 1);
  EXPECT_GT(interval_of_blocks(short_run).half_width, 100);
}

// Ten samples say nothing about a 95th percentile: no interval is better than the one of the mean.
TEST(Statistics, EachPercentileHasAnIntervalOfItsOwn) {
  std::vector<double> steps;
  for (int i = 0; i < 48; ++i) steps.push_back(100 + (i * 29) % 48);
  EXPECT_TRUE(std::isnan(percentile_of_blocks(steps, 0.99).half_width));
  EXPECT_TRUE(std::isnan(percentile_of_blocks(steps, 0.95).half_width));
  EXPECT_NEAR(percentile_of_blocks(steps, 0.75).half_width, 6, 1) << "36 ± 5.9 of 48 samples lie below";
  for (int i = 48; i < 480; ++i) steps.push_back(100 + (i * 29) % 48);
  EXPECT_LT(percentile_of_blocks(steps, 0.95).half_width, percentile_of_blocks(steps, 0.5).half_width + 5);
  EXPECT_TRUE(std::isfinite(percentile_of_blocks(steps, 0.99).half_width)) << "four blocks of a hundred";
}

// Two runs without a difference, 400 times: the rule finds one in about 5 %.
TEST(Statistics, WithinNoiseIsRightNineteenTimesOfTwenty) {
  unsigned state = 7;
  const auto noise = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / (1 << 24);
  };
  int wrong = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<double> a, b;
    for (int i = 0; i < 400; ++i) a.push_back(100 + noise()), b.push_back(100 + noise());
    wrong += difference(interval_of_blocks(a), interval_of_blocks(b)).beyond_noise;
  }
  EXPECT_LT(wrong, 40);
  EXPECT_FALSE(difference({}, {1, 0}).beyond_noise) << "not known";
}

}  // namespace
}  // namespace ws
