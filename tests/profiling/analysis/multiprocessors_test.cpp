// The comparison of multiprocessors, on made kernels whose late multiprocessor is known.
#include "profiling/analysis/multiprocessors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace ws::prof {
namespace {

// A kernel of many steps: forward, a wait until the last multiprocessor has ended it, optimizer.
struct MadeInside {
  int multiprocessors = 132, steps = 60;
  int late = 17;         // -1: none
  TimeNs delay = 400;    // of forward, in nine of ten steps
  TimeNs other = 0;      // longer optimizer of all
  bool warps = false;    // two rows a multiprocessor
  bool numbered = true;  // steps have numbers; otherwise each is a kernel
  bool planned = false;  // waits belong to an op that tells for what

  Trace trace() {
    Trace trace;
    if (planned) trace.ops = {{}, {"wait", "for sums", "", "", Meaning::Sync}};
    std::mt19937 random(1);
    const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
    TimeNs time = 1000;
    const TimeNs begin = time;
    for (int step = 0; step < steps; ++step) time = add_step(trace, random, step, time, stream);
    if (numbered) add(trace, stream, "persistent", Meaning::Matrix, SpanKind::Kernel, begin, time, 0);
    return trace;
  }

 private:
  TimeNs add_step(Trace& trace, std::mt19937& random, int step, TimeNs time, TrackId stream) {
    std::vector<TimeNs> ends;
    for (int m = 0; m < multiprocessors; ++m)
      ends.push_back(time + 2000 + static_cast<TimeNs>(random() % 9) + (m == late && step % 10 != 0 ? delay : 0));
    const TimeNs all = std::ranges::max(ends) + 50, done = all + 1000 + other;
    for (int m = 0; m < multiprocessors; ++m) {
      const std::string number = std::to_string(m);
      const std::string row = "SM " + std::string(3 - number.size(), '0') + number;
      for (int warp = 0; warp < (warps ? 2 : 1); ++warp) {
        const TrackId lane =
            trace.track(TrackKind::Inner, row + (warps ? " warp 0" + std::to_string(warp) : ""), "GPU 0");
        const auto at = static_cast<size_t>(m);
        add(trace, lane, "forward", Meaning::Matrix, SpanKind::Inner, time, ends[at], step + 1);
        add(trace, lane, "wait", Meaning::Sync, SpanKind::Inner, ends[at], all, step + 1);
        add(trace, lane, "optimizer", Meaning::Optimizer, SpanKind::Inner, all, done, step + 1);
      }
    }
    if (!numbered) add(trace, stream, "mine", Meaning::Matrix, SpanKind::Kernel, time, done, 0);
    return numbered ? done : done + 5000;
  }

  void add(Trace& trace, TrackId track, const char* name, Meaning meaning, SpanKind kind, TimeNs begin, TimeNs end,
           int step) const {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin);
    span.name = trace.intern(name), span.meaning = static_cast<uint64_t>(meaning);
    if (planned && meaning == Meaning::Sync) span.op = 1;
    span.kind = static_cast<uint64_t>(kind), span.step = numbered ? static_cast<uint32_t>(step) : 0;
    trace.append(track, span);
  }
};

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
  EXPECT_EQ(report.multiprocessors, 132u);
  expect_planted(report, 0.4);
}

TEST(Multiprocessors, ALaunchIsAStepWhereNoneHasANumber) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.numbered = false}.trace());
  EXPECT_EQ(report.steps, 60u);
  expect_planted(report, 0.4);
}

TEST(Multiprocessors, NobodyIsLateByChance) {
  EXPECT_TRUE(multiprocessor_report(MadeInside{.late = -1}.trace()).late.empty());
  EXPECT_TRUE(multiprocessor_report(MadeInside{.late = -1, .other = 3000}.trace()).late.empty());
  EXPECT_TRUE(multiprocessor_report(MadeInside{.steps = 4}.trace()).late.empty()) << "too few steps to say it";
}

TEST(Multiprocessors, PartsHaveTheirSpreadInTheOrderOfTheStep) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.steps = 2000}.trace());
  EXPECT_LT(report.steps, 2000u) << "only the newest steps are compared";
  EXPECT_GT(report.steps, 500u);
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

TEST(Multiprocessors, AWaitSaysForWhat) {
  const MultiprocessorReport report = multiprocessor_report(MadeInside{.planned = true}.trace());
  ASSERT_EQ(report.phases.size(), 3u);
  EXPECT_EQ(report.phases[0].name, "forward");
  EXPECT_EQ(report.phases[1].name, "wait for sums");
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
  EXPECT_NE(to_text(multiprocessor_report(Trace())).find("exec.launch=persistent"), std::string::npos);
}

}  // namespace
}  // namespace ws::prof
