// The advice about ranks, on trainings whose late rank and transfers are known.
#include "app/core/insights/trace_insights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/profiling/analysis/made_ranks.h"

namespace ws::app {
namespace {

prof::RankReport report_of(const prof::MadeRanks& made) { return prof::rank_report(made.joined()); }

TEST(RankInsights, TheLateRankIsNamedWithItsCostAndItsLatestStep) {
  prof::MadeRanks made{.steps = 60, .late = 2'000'000, .late_rank = 2, .every = 5};
  made.hiccups = {{25, 1'000'000}};
  const prof::RankReport report = report_of(made);
  const std::vector<Insight> found = rank_insights(report);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].rule, "late rank");
  EXPECT_EQ(found[0].headline, straggler_reason(report));
  EXPECT_TRUE(found[0].headline.starts_with("rank 2 makes all ranks lose ") && found[0].headline.ends_with(" per step")) << found[0].headline;
  EXPECT_NE(found[0].more.find("it comes about 2.0 ms late in every 5th step"), std::string::npos) << found[0].more;
  EXPECT_NEAR(found[0].cost_ns, report.straggler.cost_us * 1e3 * 60, 60e3);
  const auto step = latest_step(report);
  ASSERT_TRUE(step);
  EXPECT_NEAR(report.late(2, *step), 3'000, 50);
  EXPECT_EQ(found[0].part, prof::PartKind::RankWait) << "its bar has the name and the colour of the split";
}

TEST(RankInsights, ARankThatComputesLongMustComputeFaster) {
  prof::RankReport report = report_of({.steps = 60, .late = 2'000'000, .late_rank = 2, .every = 5});
  report.straggler.computes = 2.1, report.straggler.of_median = true, report.median_step_us = 12'000;
  std::ranges::find(report.ranks, 2, &prof::RankRow::rank)->computes = 10'080;
  EXPECT_EQ(rank_insights(report)[0].how,
            "To arrive on time, rank 2 must compute faster: compare the shapes of its batches, its kernels and its clock with another rank. The page Ranks shows each step.");
  EXPECT_TRUE(rank_insights(report)[0].headline.ends_with("waits for rank 2, which computes 2.1× as long")) << rank_insights(report)[0].headline;
  EXPECT_TRUE(rank_insights(report)[0].more.ends_with("Now rank 2 computes for 10.08 ms of a step.")) << rank_insights(report)[0].more;
  EXPECT_EQ(rank_insights(report)[0].edits, "rank 2 on time");
}

TEST(RankInsights, TheGreatestCostComesFirst) {
  prof::RankReport report = report_of({.steps = 60, .late = 1'000'000, .late_rank = 2, .every = 5});
  report.longest_exposed_us = 2 * report.straggler.cost_us;
  const std::vector<Insight> found = rank_insights(report);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rule, "exposed transfers");
  EXPECT_EQ(found[1].rule, "late rank");
}

TEST(RankInsights, TransfersThatNothingHidesAreSaid) {
  const prof::RankReport report = report_of({.steps = 60, .late = 0, .late_rank = -1});
  const std::vector<Insight> found = rank_insights(report);
  ASSERT_EQ(found.size(), 1u) << "no rank is late";
  EXPECT_EQ(found[0].rule, "exposed transfers");
  EXPECT_FALSE(latest_step(report));
  prof::RankReport hidden = report;
  hidden.longest_exposed_us = hidden.step_us / 20;
  EXPECT_TRUE(rank_insights(hidden).empty()) << "little";
  prof::RankReport unknown = report;
  unknown.computation = false, unknown.longest_exposed_us = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(rank_insights(unknown).empty()) << "only collectives were recorded";
}

TEST(RankInsights, ItsBarsComeFromTheMeanStepOfAllRanks) {
  const prof::RankReport report = report_of({.steps = 60, .late = 0, .late_rank = -1});
  RunFacts run;
  run.step_us = 1e6, run.whole_trace = true, run.steps.count = 38, run.part_us[static_cast<size_t>(prof::Meaning::Matrix)] = 1e6;
  const Insight found = rank_insights(report).at(0);
  EXPECT_EQ(found.part, prof::PartKind::OfMeaning) << "all ranks are there";
  const RunFacts facts = facts_for(found, run);
  EXPECT_EQ(facts.step_us, report.step_us);
  EXPECT_EQ(facts.part(prof::Meaning::Communication), report.longest_exposed_us);
  EXPECT_EQ(facts.part(prof::Meaning::Matrix), 0);
  EXPECT_FALSE(facts.whole_trace);
  EXPECT_EQ(facts_for(Insight{}, run).step_us, 1e6);
}

TEST(RankInsights, LittleAndOneRankAreNoAdvice) {
  EXPECT_TRUE(rank_insights({}).empty());
  prof::RankReport report = report_of({.steps = 60});
  report.longest_exposed_us = 0;
  ASSERT_EQ(rank_insights(report).size(), 1u);
  report.straggler.share = 0.01;
  EXPECT_TRUE(rank_insights(report).empty());
}

}  // namespace
}  // namespace ws::app
