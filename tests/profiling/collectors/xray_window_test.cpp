#include "profiling/collectors/xray_window.h"

#include <gtest/gtest.h>

#include <limits>

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
      for (int64_t later = step; later < std::min<int64_t>(step + until, 400); ++later) ASSERT_EQ(window.open(later), window.open(step)) << step;
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
  for (const char* bad : {"", "0", "-3", "5/5", "5/3", "a", "5/", "/5", "5/100x", "200ms"}) EXPECT_THROW(xray_steps(bad), Failure) << bad;
  for (const char* bad : {"", "20", "0ms", "2min", "200ms/100ms", "200ms/", "x"}) EXPECT_THROW(xray_time(bad), Failure) << bad;
}

TEST(XrayWindow, IsDescribed) {
  EXPECT_EQ(to_text(xray_steps("1")), "1 step");
  EXPECT_EQ(to_text(xray_steps("20/2000")), "20 of every 2000 steps");
  EXPECT_EQ(to_text(xray_time("200ms/10s")), "200 ms of every 10 s");
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

}  // namespace
}  // namespace ws::prof
