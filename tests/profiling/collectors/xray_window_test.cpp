#include "profiling/collectors/xray_window.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "profiling/base/failure.h"
#include "profiling/collectors/trace_levels.h"

namespace ws::prof {
namespace {

TEST(XrayWindow, OpensAfterTheWarmUpOnceOrAgain) {
  const XrayWindow once = xray_steps("5"), again = xray_steps("5/100");
  for (int64_t step = 0; step < 400; ++step) {
    EXPECT_EQ(once.open(step), step >= 20 && step < 25) << step;
    EXPECT_EQ(again.open(step), step >= 20 && (step - 20) % 100 < 5) << step;
  }
  // until_change() is exact: nothing changes before, and something changes then.
  for (const XrayWindow& window : {once, again})
    for (int64_t step = 0; step < 400; ++step) {
      const int64_t until = window.until_change(step);
      for (int64_t later = step; later < 400 && later - step < until; ++later) ASSERT_EQ(window.open(later), window.open(step)) << step;
      if (until < 400) {
        EXPECT_NE(window.open(step + until), window.open(step)) << step;
      }
    }
  EXPECT_EQ(once.until_change(30), std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(XrayWindow().open(30));
  const XrayWindow time = xray_time("200ms/10s");
  EXPECT_FALSE(time.open(1'999'999'999));
  EXPECT_TRUE(time.open(2'000'000'000));
  EXPECT_FALSE(time.open(2'200'000'000));
  EXPECT_TRUE(time.open(12'000'000'000));
}

TEST(XrayWindow, RefusesWhatIsNoWindow) {
  for (const char* bad : {"", "0", "-3", "5/5", "5/3", "a", "5/", "/5", "5/100x", "200ms", "/30s", "5/0s", "5/30h"}) EXPECT_THROW(xray_steps(bad), Failure) << bad;
  for (const char* bad : {"", "20", "0ms", "2min", "200ms/100ms", "200ms/", "x"}) EXPECT_THROW(xray_time(bad), Failure) << bad;
}

TEST(XrayWindow, IsDescribed) {
  EXPECT_EQ(to_text(xray_steps("1")), "1 step");
  EXPECT_EQ(to_text(xray_steps("20/2000")), "20 of every 2000 steps");
  EXPECT_EQ(to_text(xray_time("200ms/10s")), "200 ms of every 10 s");
  EXPECT_EQ(to_text(xray_steps("20/30s")), "20 steps each 30 s");
  EXPECT_EQ(describe(xray_steps("20"), {}, "another profiler is reading them"), "No X-ray: another profiler is reading them.");
  EXPECT_EQ(describe(xray_steps("20"), {}, ""), "X-ray of 20 steps, from step 20 on; kernel records pause meanwhile.");
  EXPECT_EQ(describe(xray_steps("20/100"), {.windows = 2, .samples = 5000, .period = 10}, ""),
            "X-ray of 20 of every 100 steps, from step 20 on; kernel records pause meanwhile. 5000 samples in 2 windows, one every 1024 cycles; none dropped.");
}

// Long windows have longer periods, so that each gives about as many samples.
TEST(XrayWindow, ChoosesThePeriodByTheLength) {
  EXPECT_EQ(sampling_period(1'000'000), 10u);
  EXPECT_EQ(sampling_period(100'000'000), 14u);
  EXPECT_EQ(sampling_period(1'000'000'000), 17u);
  EXPECT_EQ(sampling_period(60'000'000'000), 20u);
  EXPECT_EQ(sampling_period(0), 10u);
}

// The period follows the length of the steps before the window, and stays for the whole window.
TEST(XrayPace, FollowsTheSteps) {
  const XrayWindow window = xray_steps("5/100");
  XrayPace pace(window);
  constexpr int64_t kShort = 1'000'000, kLong = 50 * kShort;
  int64_t now = 0;
  uint32_t first = 0, second = 0;
  for (int64_t step = 0; step < 200; ++step) {
    const uint32_t period = pace.at_step(step, now);
    EXPECT_EQ(period > 0, window.open(step)) << step;
    uint32_t& kept = step < 100 ? first : second;
    if (period > 0 && kept == 0) kept = period;
    if (period > 0) {
      EXPECT_EQ(period, kept) << step;
    }
    now += step < 50 ? kShort : kLong;
  }
  EXPECT_EQ(first, sampling_period(5 * kShort));
  EXPECT_EQ(second, sampling_period(5 * kLong));
  const XrayWindow by_time = xray_time("200ms");
  EXPECT_EQ(XrayPace(by_time).at_step(20, now), 0u);
  EXPECT_EQ(XrayPace(XrayWindow()).at_step(20, now), 0u);
}

// Some steps, and again some time after they ended, however long steps take.
TEST(XrayPace, ComesAgainByTheClock) {
  constexpr int64_t kStep = 100'000'000;  // 0.1 s
  const XrayWindow window = xray_steps("5/30s");
  XrayPace pace(window);
  std::vector<int64_t> opened, closed;
  bool open = false;
  for (int64_t step = 0; step < 700; ++step) {
    const bool now_open = pace.at_step(step, step * kStep) > 0;
    if (now_open != open) (now_open ? opened : closed).push_back(step);
    open = now_open;
    if (open) {
      EXPECT_EQ(pace.until_change(step), opened.back() + 5 - step) << step;
    } else if (!opened.empty()) {
      EXPECT_EQ(pace.until_change(step), std::numeric_limits<int64_t>::max()) << step;
    }
  }
  EXPECT_EQ(opened, (std::vector<int64_t>{20, 325, 630}));
  EXPECT_EQ(closed, (std::vector<int64_t>{25, 330, 635}));
}

// A window lasts its length from its real begin on, and the next one comes with the period, however late the first began.
TEST(XrayPace, FollowsTheClock) {
  constexpr int64_t kMs = 1'000'000, kWarm = XrayWindow::kFirstNs, kStart = 7'000 * kMs;  // of the first work, in steady clock
  const XrayWindow window = xray_time("200ms/10s");
  XrayPace pace(window);
  const auto turn = [&](int64_t since) { return pace.by_clock(since, kStart + since); };
  EXPECT_FALSE(turn(500 * kMs).changes);
  EXPECT_EQ(turn(500 * kMs).look_again, kWarm - 500 * kMs);
  const XrayPace::Turn opening = turn(kWarm);
  EXPECT_TRUE(opening.changes && opening.opens);
  EXPECT_FALSE(turn(kWarm + 5'000 * kMs).changes) << "it has not begun";
  pace.began(kStart + kWarm + 5'000 * kMs);
  EXPECT_EQ(turn(kWarm + 5'150 * kMs).look_again, 50 * kMs);
  EXPECT_FALSE(turn(kWarm + 5'199 * kMs).changes);
  const XrayPace::Turn closing = turn(kWarm + 5'200 * kMs);
  EXPECT_TRUE(closing.changes && !closing.opens);
  EXPECT_EQ(turn(kWarm + 6'000 * kMs).look_again, 4'000 * kMs);
  EXPECT_TRUE(turn(kWarm + 10'000 * kMs).opens);

  const XrayWindow once = xray_time("200ms");
  XrayPace single(once);
  EXPECT_TRUE(single.by_clock(kWarm, kStart).opens);
  single.began(kStart);
  EXPECT_TRUE(single.by_clock(kWarm + 200 * kMs, kStart + 200 * kMs).changes);
  EXPECT_EQ(single.by_clock(100 * kWarm, kStart + 100 * kWarm).look_again, std::numeric_limits<int64_t>::max()) << "never again";
}

}  // namespace
}  // namespace ws::prof
