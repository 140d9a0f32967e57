// The comparison of multiprocessors, on made kernels whose late multiprocessor is known.
#include "profiling/analysis/multiprocessors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/profiling/analysis/made_inside.h"

namespace ws::prof {
namespace {

void expect_planted(const MultiprocessorReport& report, double delay_us) {
  ASSERT_EQ(report.late.size(), 1u);
  const LateMultiprocessor& late = report.late[0];
  EXPECT_EQ(late.name, "multiprocessor 17");
  EXPECT_EQ(late.phase, "forward");
  EXPECT_NEAR(late.late_us, delay_us, 0.05 * delay_us);
  EXPECT_NEAR(late.cost_us, 0.9 * delay_us, 0.05 * delay_us);
  EXPECT_NEAR(late.share, 0.9, 1e-9);
}

TEST(Multiprocessors, PlantedStragglersAreRecovered) {
  for (const TimeNs delay : {200, 400, 1000, 5000})
    expect_planted(multiprocessor_report(MadeInside{.delay = delay}.trace()), static_cast<double>(delay) * 1e-3);
}

TEST(Multiprocessors, OneNameForAllWarps) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.warps = true}.trace());
  EXPECT_EQ(report.rows.size(), 132u);
  expect_planted(report, 0.4);
}

TEST(Multiprocessors, ALaunchIsAStepWhereNoneHasANumber) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.numbered = false}.trace());
  EXPECT_EQ(report.steps.size(), 60u);
  expect_planted(report, 0.4);
}

TEST(Multiprocessors, NobodyIsLateByChance) {
  EXPECT_TRUE(multiprocessor_report(MadeInside{.late = -1}.trace()).late.empty());
  EXPECT_TRUE(multiprocessor_report(MadeInside{.late = -1, .other = 3000}.trace()).late.empty());
  EXPECT_TRUE(multiprocessor_report(MadeInside{.steps = 4}.trace()).late.empty()) << "too few steps to say it";
}

TEST(Multiprocessors, PartsHaveTheirSpreadInTheOrderOfTheStep) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.steps = 2000}.trace());
  EXPECT_LT(report.steps.size(), 2000u) << "only the newest steps are compared";
  EXPECT_GT(report.steps.size(), 500u);
  ASSERT_EQ(report.phases.size(), 3u);
  EXPECT_EQ(report.phases[0].name, "forward");
  EXPECT_NEAR(report.phases[0].median, 2.004, 0.002);
  EXPECT_NEAR(report.phases[0].most, 2.004 + 0.36, 0.01);
  EXPECT_EQ(report.phases[0].slowest, "multiprocessor 17");
  EXPECT_EQ(report.phases[1].name, "wait");
  EXPECT_LT(report.phases[1].least, 0.1) << "the late one does not wait";
  EXPECT_EQ(report.phases[2].name, "optimizer");
  EXPECT_NEAR(report.phases[2].median, 1, 1e-6);
  EXPECT_NEAR(report.step_us, 3.457, 0.01);
}

TEST(Multiprocessors, AWaitReportsForWhat) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.planned = true}.trace());
  ASSERT_EQ(report.phases.size(), 3u);
  EXPECT_EQ(report.phases[0].name, "forward");
  EXPECT_EQ(report.phases[1].name, "wait for sums");
}

// What the picture of a step shows.
TEST(Multiprocessors, AStepHasTheBarsOfEachMultiprocessor) {
  const Trace trace = MadeInside{.steps = 30}.trace();
  const MultiprocessorReport report = multiprocessor_report(trace);
  ASSERT_EQ(report.steps.size(), 30u);
  EXPECT_EQ(report.bars.size(), 30u * 132 * 3);
  for (size_t step = 0; step < report.steps.size(); ++step) {
    const auto bars = report.bars_of(step);
    ASSERT_EQ(bars.size(), 132u * 3);
    EXPECT_EQ(report.steps[step].number, static_cast<int64_t>(step));
    EXPECT_EQ(report.steps[step].kernel, "persistent");
    EXPECT_EQ(bars.front().begin, report.steps[step].begin);
    for (size_t i = 0; i < bars.size(); ++i) {
      EXPECT_EQ(bars[i].row, i / 3);
      EXPECT_EQ(bars[i].part, i % 3);
      EXPECT_LE(bars[i].end, report.steps[step].end);
    }
  }
  EXPECT_EQ(row_name(report, 17), "multiprocessor 17");
  EXPECT_EQ(report.rows[17].lanes, std::vector<std::string>{"SM 017"});
}

TEST(Multiprocessors, TheLateEndIsMarkedInTheStepsThatHaveIt) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{}.trace());
  for (size_t step = 0; step < report.steps.size(); ++step) {
    const std::vector<LateEnd>& late = report.steps[step].late;
    ASSERT_EQ(late.size(), step % 10 == 0 ? 0u : 1u) << step;
    if (late.empty()) continue;
    EXPECT_EQ(row_name(report, late[0].row), "multiprocessor 17");
    EXPECT_EQ(report.phases[late[0].part].name, "forward");
    EXPECT_NEAR(static_cast<double>(late[0].end - late[0].usual), 400, 9);
  }
  EXPECT_EQ(report.typical, report.late[0].step);
  EXPECT_EQ(report.steps[report.typical].late.size(), 1u);
}

// One late step is not a habit, but whoever looks at this step wants to know.
TEST(Multiprocessors, AStepOfItsOwnHasItsLateEnd) {
  MadeInside made{.late = -1};
  made.once = 33;
  const MultiprocessorReport report = multiprocessor_report(made.trace());
  EXPECT_TRUE(report.late.empty());
  for (size_t step = 0; step < report.steps.size(); ++step)
    EXPECT_EQ(report.steps[step].late.size(), step == 33 ? 1u : 0u) << step;
  EXPECT_EQ(report.steps[33].late[0].row, 5u);
  EXPECT_TRUE(late_text(report, report.steps[33].late[0]).starts_with("multiprocessor 5 ends forward 0.40 µs later"));
}

TEST(Multiprocessors, WarpsAreLanesOfTheirMultiprocessor) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.warps = true}.trace());
  EXPECT_EQ(report.rows[3].lanes, (std::vector<std::string>{"SM 003 warp 00", "SM 003 warp 01"}));
  const auto bars = report.bars_of(0);
  EXPECT_EQ(bars[0].lane, 0u);
  EXPECT_EQ(bars[3].lane, 1u);
  EXPECT_EQ(bars[5].row, 0u);
  EXPECT_EQ(bars[6].row, 1u);
}

TEST(Multiprocessors, TextNamesTheLateOneAndWhatToDoWithoutLanes) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{}.trace());
  const std::string text = to_text(report);
  EXPECT_TRUE(
      text.starts_with("multiprocessor 17 ends forward 0.40 µs later than the median in 90 % of the steps: costs "))
      << text;
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["late"][0]["name"], "multiprocessor 17");
  EXPECT_EQ(json["parts"].size(), 3u);
  EXPECT_EQ(json["typical_step"]["parts"].size(), 132u * 3);
  EXPECT_EQ(json["typical_step"]["step"], report.steps[report.typical].number);
  const std::string late = late_text(report, report.steps[report.typical].late[0]);
  EXPECT_EQ(json["typical_step"]["late"][0], late);
  EXPECT_NE(text.find(step_caption(report, report.typical) + "\n" + late), std::string::npos) << text;
  EXPECT_TRUE(bar_text(report, report.bars_of(0)[0]).starts_with("multiprocessor 0: forward takes 2.0"));
  EXPECT_NE(to_text(multiprocessor_report(Trace())).find("exec.launch=persistent"), std::string::npos);
}

}  // namespace
}  // namespace ws::prof
