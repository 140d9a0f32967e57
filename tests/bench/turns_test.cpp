#include "tests/bench/turns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace ws::bench {
namespace {

// A training of 20 µs a step. The speed of the machine wanders by 4 %, much of it slower than a turn; single turns
// differ by 1 %, and one in thirty is up to twice as slow.
std::vector<Turn> made_turns(size_t count, double cost, unsigned seed, double drift = 0, double noise = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> share;
  std::vector<Turn> turns;
  double wander = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool watched = i % 2 == 1;
    wander = 0.9 * wander + 0.04 * std::sqrt(1 - 0.81) * normal(random);
    double log_us =
        drift * static_cast<double>(i) + noise * (wander + 0.01 * normal(random)) + (watched ? std::log(cost) : 0);
    if (noise > 0 && share(random) < 1.0 / 30) log_us += share(random) * std::log(2);
    const double at = static_cast<double>(i) * kTurn;
    turns.push_back(
        {watched, at + kSettle, at + kTurn, at + kSettle, at + kSettle + 7000 * 20e-6 * std::exp(log_us), 7001});
  }
  return turns;
}

TEST(Turns, ADriftIsNoCost) {
  const Cost cost = cost_of(made_turns(401, 1.01, 1, 0.001, 0));
  EXPECT_NEAR(std::exp(cost.log_ratio.value), 1.01, 1e-5);
  EXPECT_NEAR(std::exp(cost.whole_log_ratio.value), 1.01, 1e-5);
  EXPECT_LT(cost.log_ratio.half_width, 1e-4);
}

TEST(Turns, TheIntervalHoldsTheCostNineteenTimesInTwenty) {
  constexpr int kTrials = 400;
  constexpr double kCost = 1.004;
  int held = 0, whole_held = 0;
  double sum = 0, width = 0;
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    const Cost cost = cost_of(made_turns(1001, kCost, seed));
    const auto holds = [](const Interval& log) { return std::abs(log.value - std::log(kCost)) <= log.half_width; };
    held += holds(cost.log_ratio), whole_held += holds(cost.whole_log_ratio);
    sum += cost.log_ratio.value / kTrials, width += cost.log_ratio.half_width / kTrials;
  }
  EXPECT_GE(held, 0.92 * kTrials);
  EXPECT_LE(held, 0.98 * kTrials);
  EXPECT_GE(whole_held, 0.92 * kTrials);
  EXPECT_NEAR(sum, std::log(kCost), 0.0005);
  EXPECT_LT(width, 0.005);  // 200 s are enough for half a per cent
}

TEST(Turns, ATurnWithoutEnoughStepsIsLeftOut) {
  auto turns = made_turns(201, 1.02, 1, 0, 0);
  turns[50].steps = 3;
  turns[71].steps = 0;
  EXPECT_NEAR(std::exp(cost_of(turns).log_ratio.value), 1.02, 1e-9);
}

TEST(Turns, OneTurnGivesNoNumber) { EXPECT_TRUE(std::isnan(cost_of(made_turns(1, 1, 1)).log_ratio.value)); }

TEST(Turns, FewOutliersDoNotMoveATrimmedMean) {
  std::vector<double> samples(100, 1.0);
  samples[10] = 100, samples[60] = -500;
  const Interval mean = trimmed_mean_of_blocks(samples, 0.1);
  EXPECT_DOUBLE_EQ(mean.value, 1);
  EXPECT_DOUBLE_EQ(mean.half_width, 0);
}

TEST(Turns, StepsFindTheirTurn) {
  Turns turns;
  turns.begin(10);
  turns.begin(10 + kTurn);
  const auto step = [](double at) {
    StepResult result;
    result.finished_s = at;
    return result;
  };
  turns.add({step(0.01), step(0.07), step(0.19), step(0.21), step(0.27), step(0.30), step(0.35)}, 10.35);
  EXPECT_EQ(turns.all()[0].steps, 2);
  EXPECT_NEAR(turns.all()[0].us_each(), 120000, 1);
  EXPECT_EQ(turns.all()[1].steps, 3);
  EXPECT_TRUE(turns.watched());
}

TEST(Turns, WhatArrivesInAnUnwatchedTurnIsLate) {
  Turns turns;
  for (const double at : {10.0, 10.2, 10.4}) turns.begin(at);
  // In the second, watched; while the third settles; in the third.
  EXPECT_DOUBLE_EQ(turns.late_share({{10.3, 6}, {10.42, 2}, {10.5, 2}}), 0.2);
  EXPECT_DOUBLE_EQ(turns.late_share({}), 0);
}

}  // namespace
}  // namespace ws::bench
