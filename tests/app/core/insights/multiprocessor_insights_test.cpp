// The advice about a late multiprocessor, on kernels whose delay is known.
#include "app/core/insights/trace_insights.h"

#include <gtest/gtest.h>

#include "tests/profiling/analysis/made_inside.h"

namespace ws::app {
namespace {

using prof::MadeInside;

TEST(MultiprocessorInsights, TheLateOneIsNamedWithItsCostAndPlace) {
  const prof::Trace trace = MadeInside{}.trace();
  const prof::MultiprocessorReport report = prof::multiprocessor_report(trace);
  const auto found = late_multiprocessor(report);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->headline, "multiprocessor 17 ends forward late and costs 0.4 µs of a step");
  EXPECT_TRUE(found->more.starts_with("Multiprocessor 17 ends forward 0.40 µs later than the median in 90 %")) << found->more;
  EXPECT_EQ(found->look_at, prof::Meaning::Matrix);
  EXPECT_NEAR(found->cost_ns, 0.36e3 * 60, 0.02e3 * 60);
  const auto place = span_of(trace, report, bar_of(report, report.late[0]));
  ASSERT_TRUE(place);
  EXPECT_EQ(trace.tracks()[place->track].name, "SM 017");
  EXPECT_EQ(trace.name(place->span.name), "forward");
  EXPECT_NEAR(static_cast<double>(place->span.duration), 2400, 10);
  EXPECT_LE(found->around.begin, place->span.start);
  EXPECT_GE(found->around.end, place->span.end());
}

TEST(MultiprocessorInsights, LittleIsNotSaid) {
  EXPECT_FALSE(late_multiprocessor(prof::multiprocessor_report(MadeInside{.late = -1}.trace())));
  EXPECT_FALSE(late_multiprocessor(prof::multiprocessor_report({})));
  const auto little = prof::multiprocessor_report(MadeInside{.delay = 60}.trace());
  EXPECT_FALSE(little.late.empty());
  EXPECT_FALSE(late_multiprocessor(little)) << "54 ns of 3.1 µs";
}

}  // namespace
}  // namespace ws::app
