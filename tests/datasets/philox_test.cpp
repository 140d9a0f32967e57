#include "profiling/base/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ws::data {
namespace {

void expect_words(const PhiloxWords& words, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  EXPECT_EQ(words.w[0], a);
  EXPECT_EQ(words.w[1], b);
  EXPECT_EQ(words.w[2], c);
  EXPECT_EQ(words.w[3], d);
}

// The known answers published with the Random123 library.
TEST(Philox, GivesThePublishedAnswers) {
  expect_words(philox4x32({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const uint32_t ones = 0xffffffff;
  expect_words(philox4x32({{ones, ones, ones, ones}}, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd);
  expect_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0), 0xd16cfe09,
               0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Philox, UsesAllBitsOfSeedStreamAndIndex) {
  const uint32_t plain = philox_at(1, 2, 3).w[0];
  EXPECT_NE(plain, philox_at(1 + (uint64_t{1} << 32), 2, 3).w[0]);
  EXPECT_NE(plain, philox_at(1, 2 + (uint64_t{1} << 32), 3).w[0]);
  EXPECT_NE(plain, philox_at(1, 2, 3 + (uint64_t{1} << 32)).w[0]);
}

TEST(Philox, LogarithmIsAccurateOverItsWholeRange) {
  double worst = 0;
  for (uint32_t i = 1; i < (1u << 24); i += 101) {
    const float u = static_cast<float>(i) * 0x1p-24f;
    const double truth = std::log(static_cast<double>(u));
    worst = std::max(worst, std::abs((static_cast<double>(exact::log(u)) - truth) / truth));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(exact::log(1.0f), 0.0f);
}

TEST(Philox, CosineAndSineAreAccurateOverTheWholeCircle) {
  double worst = 0;
  for (uint32_t i = 0; i < (1u << 24); i += 101) {
    const float turn = static_cast<float>(i) * 0x1p-24f;
    const double angle = 2 * std::acos(-1.0) * static_cast<double>(turn);
    const NormalPair got = exact::cos_sin_turn(turn);
    worst = std::max(worst, std::abs(static_cast<double>(got.first) - std::cos(angle)));
    worst = std::max(worst, std::abs(static_cast<double>(got.second) - std::sin(angle)));
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(Philox, UniformNumbersFillTheirRangeEvenly) {
  constexpr int kNumbers = 100'000, kBins = 10;
  std::vector<int> bins(kBins);
  for (uint64_t i = 0; i < kNumbers; ++i) {
    const float u = uniform_at(7, 1, i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ++bins[static_cast<size_t>(u * kBins)];
  }
  // Five standard deviations of a bin's count.
  for (int count : bins) EXPECT_NEAR(count, kNumbers / kBins, 5 * std::sqrt(kNumbers * 0.09));
}

TEST(Philox, NormalNumbersHaveTheMomentsOfTheNormalDistribution) {
  constexpr int kNumbers = 400'000;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
  for (uint64_t i = 0; i < kNumbers; ++i) {
    const double z = normal_at(7, 1, i);
    ASSERT_TRUE(std::isfinite(z));
    sum += z;
    squares += z * z;
    fourth += z * z * z * z;
    neighbours += z * before;
    before = z;
  }
  EXPECT_NEAR(sum / kNumbers, 0, 0.008);
  EXPECT_NEAR(squares / kNumbers, 1, 0.012);
  EXPECT_NEAR(fourth / kNumbers, 3, 0.08);
  EXPECT_NEAR(neighbours / kNumbers, 0, 0.008);
}

TEST(Philox, EveryWordMakesAFiniteNormalNumber) {
  for (uint32_t a : {0u, 1u, 255u, 256u, 0x7fffffffu, 0xffffffffu})
    for (uint32_t b : {0u, 0x20000000u, 0x40000000u, 0x80000000u, 0xffffffffu}) {
      const NormalPair pair = standard_normal(a, b);
      EXPECT_LT(std::abs(pair.first), 6.0f);
      EXPECT_LT(std::abs(pair.second), 6.0f);
    }
}

TEST(Philox, IndexBelowStaysBelowAndReachesEveryIndex) {
  std::vector<int> seen(7);
  for (uint64_t i = 0; i < 1000; ++i) ++seen.at(index_below(philox_at(1, 1, i).w[0], 7));
  for (int count : seen) EXPECT_GT(count, 90);
  EXPECT_EQ(index_below(0xffffffffu, 7), 6u);
}

}  // namespace
}  // namespace ws::data
