// Work that is shared out is done once, in all sizes, by many callers at once; an exception of a piece reaches its caller.
#include "engine/cpu/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <thread>

namespace ws::cpu {
namespace {

TEST(Cores, NumberComesFromTheEnvironmentOrTheProcessorsOfThisProcess) {
  const char* wanted = std::getenv("OMP_NUM_THREADS");
  if (wanted && std::atoi(wanted) > 0) {
    EXPECT_EQ(cores(), std::atoi(wanted));
    return;
  }
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_GE(cores(), 1);
  EXPECT_LE(cores(), CPU_COUNT(&set));
}

TEST(Cores, EachPieceIsDoneOnce) {
  for (const int64_t pieces : {0, 1, 2, 7, 64, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(pieces));
    if (pieces > 0) share_out(pieces, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
}

TEST(Cores, RangesMakeUpTheWhole) {
  for (const int64_t size : {1, 5, 1000, 100001})
    for (const int64_t least : {1, 3, 40000}) {
      std::vector<int> seen(static_cast<size_t>(size));
      share_range(size, least, [&](int64_t first, int64_t end) {
        for (int64_t i = first; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), int64_t{0}), size);
    }
}

TEST(Cores, CallersAtOnceEachGetTheirWork) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) share_out(9, [&](int64_t piece) { sum += piece; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 6 * 200 * 36);
}

#ifdef __x86_64__
TEST(Cores, SmallNumbersAreZeroOnAllOfThem) {
  const volatile float small = std::numeric_limits<float>::min();
  const auto half = [&] { return small * 0.5f; };
  EXPECT_GT(half(), 0);
  {
    const SmallIsZero zero;
    std::atomic<int> not_zero{0};
    share_out(64, [&](int64_t) { not_zero += half() != 0; });
    EXPECT_EQ(not_zero, 0);
    const volatile float subnormal = std::bit_cast<float>(uint32_t{5});
    EXPECT_EQ(subnormal * 1e30f, 0) << "as an operand, too";
  }
  EXPECT_GT(half(), 0) << "only while it lives";
}
#endif

TEST(Cores, APieceSharesNothingOutAgain) {
  std::atomic<int64_t> most{0};
  share_out(8, [&](int64_t) {
    if (cores() > most) most = cores();
  });
  EXPECT_EQ(most, 1);
}

TEST(Cores, AFailureReachesTheCaller) {
  EXPECT_THROW(share_out(50, [](int64_t i) { if (i == 20) throw std::runtime_error("piece 20"); }), std::runtime_error);
  int64_t done = 0;
  share_range(4, 4, [&](int64_t first, int64_t end) { done += end - first; });
  EXPECT_EQ(done, 4);
}

// Sums of blocks: the same bits on one core as on all.
TEST(Cores, SumsDoNotDependOnTheNumberOfCores) {
  const int64_t rows = 3000, cols = 40;
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  const auto sum = [&] {
    std::vector<float> sums(static_cast<size_t>(cols));
    share_sums(rows, cols, sums.data(), [&](int64_t first, int64_t end, float* to) {
      for (int64_t r = first; r < end; ++r)
        for (int64_t j = 0; j < cols; ++j) to[j] += values[static_cast<size_t>(r * cols + j)];
    });
    return sums;
  };
  const auto all = sum();
  keep_to_one_core(true);
  const auto one = sum();
  keep_to_one_core(false);
  EXPECT_EQ(all, one);
}

}  // namespace
}  // namespace ws::cpu
