#include "app/core/comparison/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "app/core/comparison/comparison_text.h"
#include "app/core/runs/change_marks.h"
#include "app/core/runs/data_shape.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/trace_stats.h"
#include "tests/profiling/analysis/made_ranks.h"
#include "tests/profiling/trace/made_spans.h"
#include "tests/profiling/trace/made_trace.h"
#include "tests/support/graph_run.h"
#include "tests/support/made_stalls.h"

namespace ws::app {
namespace {

using namespace prof;
using ::testing::HasSubstr;
using ::testing::Not;

Comparison compared(const RunData& a, const RunData& b) { return compare(compared_run(a), compared_run(b)); }

int64_t change(const Waterfall& w) {
  int64_t delta = 0;
  for (const Cause& cause : w.causes) delta += cause.delta_ps();
  return delta;
}

TEST(Comparison, TwoRunsOfWhichOneIsFaster) {
  RunData a, b;
  a.summary.name = "direct";
  b.summary.name = "arena";
  a.trace = std::move(MadeTrace(100, 20).trace);
  b.trace = std::move(MadeTrace(100, 10).trace);
  const Comparison c = compared(a, b);
  EXPECT_LT(c.by_kind.b_ps, c.by_kind.a_ps);
  EXPECT_EQ(c.measures.at(0).a.kind, MeasureKind::StepTime);
  EXPECT_EQ(c.measures[0].delta.verdict, Verdict::Better);
  EXPECT_EQ(c.kernels.size(), 20u);
  EXPECT_DOUBLE_EQ(c.kernels[0].a_count, 1);
  EXPECT_DOUBLE_EQ(c.kernels[0].b_count, 0);
  EXPECT_NE(to_text(c).find("sum = step time"), std::string::npos);
  EXPECT_EQ(compared(a, a).by_kind.a_ps, compared(a, a).by_kind.b_ps);
  EXPECT_EQ(compared(a, a).measures[0].delta.verdict, Verdict::WithinNoise);
}

TEST(Comparison, DifferentProgramsStandSideBySide) {
  RunData a, b;
  a.trace = std::move(MadeTrace(100, 20).trace), b.trace = std::move(MadeTrace(100, 10).trace);
  a.summary.origin = b.summary.origin = "record";
  a.summary.extra[kCommandKey] = R"(["python3","a/cnn.py","40"])", b.summary.extra[kCommandKey] = R"(["torchrun","--nproc-per-node","2","gpt.py"])";
  const Comparison c = compared(a, b);
  EXPECT_EQ(answer_text(c), "A and B are different programs: cnn.py and gpt.py");
  for (const ComparedMeasure& m : c.measures) {
    EXPECT_EQ(m.delta.verdict, Verdict::Neutral) << m.a.name;
    EXPECT_STREQ(verdict_text(m.delta), "not judged");
  }
  b.summary.extra[kCommandKey] = R"(["python3","b/cnn.py","--fused"])";
  EXPECT_EQ(compared(a, b).measures[0].delta.verdict, Verdict::Better);
  ComparedRun ours;
  ours.spec.emplace(), ours.time.us = {20, 1};
  const Comparison other = compare(compared_run(a), ours);
  EXPECT_EQ(answer_text(other), "A and B are different programs: cnn.py and a training of Warpsight");
  EXPECT_EQ(other.of(MeasureKind::StepTime).delta.verdict, Verdict::Neutral);
  EXPECT_EQ(program_of({"python3", "-m", "train.main"}), "train.main");
  EXPECT_EQ(program_of({}), "");
}

TEST(Comparison, RunsOfSeveralRanksAreComparedByWaitAndTransfer) {
  RunData late, even;
  late.trace = MadeRanks{.ranks = 4, .steps = 60, .late = 500'000, .late_rank = 2, .every = 2}.joined();
  even.trace = MadeRanks{.ranks = 4, .steps = 60, .late = 0, .late_rank = -1}.joined();
  const Comparison c = compared(late, even);
  const ComparedMeasure& wait = c.of(MeasureKind::RankWait);
  constexpr double kOfEach = 500.0 / 2;  // µs per step: each of the other three waits in every second one
  EXPECT_NEAR(wait.a.value.value, kOfEach, 60);
  EXPECT_LT(wait.b.value.value, 10);
  EXPECT_EQ(wait.delta.verdict, Verdict::NoiseUnknown);
  EXPECT_STREQ(verdict_text(wait.delta), "one value a run");
  EXPECT_GT(c.of(MeasureKind::ExposedTransfer).a.value.value, 100);
  EXPECT_GT(c.of(MeasureKind::BusBandwidth).b.value.value, 100);
  RunData one;
  one.trace = std::move(MadeTrace(100, 20).trace);
  EXPECT_FALSE(compared(one, one).of(MeasureKind::RankWait).delta.known());
}

// A warning that losses are not comparable stands above no table that judges them.
// The page Ranks shows the same mean step. Without it, the newest steps of one rank would stand for all.
TEST(Comparison, TheMeanStepOfSeveralRanksEqualsTheirReport) {
  RunData made;
  made.trace = MadeRanks{.ranks = 2, .steps = 60, .late = 500'000, .late_rank = 1, .every = 2}.joined();
  RankReport report = rank_report(made);
  EXPECT_EQ(compared_run(made).mean_step_us, report.step_us);
  report.step_us = 12'500, report.wait_us = 2'990;  // of a file whose older steps are not in memory
  const ComparedRun run = compared_run(made, report);
  EXPECT_EQ(measure(measures_of(run), MeasureKind::SampleMean).value.value, 12'500);
  EXPECT_EQ(measure(measures_of(run), MeasureKind::SampleMean).name, "mean step");
  EXPECT_EQ(steps_text({{"A", &run}}), "Median of " + which_steps(run.sample.which) + " of rank 0");
  RunData other;
  other.trace = std::move(MadeTrace(100, 20).trace);
  const ComparedRun second = compared_run(other);
  EXPECT_EQ(second.sample.which.count, 99);
  const Comparison c = compare(run, second);
  EXPECT_EQ(c.steps_used, "Medians of " + which_steps(run.sample.which) + " of A (rank 0), " + which_steps(second.sample.which) + " of B");
  EXPECT_NE(to_text(c).find(c.steps_used), std::string::npos);
}

TEST(Comparison, TheTimesOfAGroupHaveOneUnit) {
  ComparedRun run;
  run.time = {{11'390, 50}, 9'800, 16'060}, run.mean_step_us = 12'500, run.rank_wait_us = 2'986, run.exposed_us = 3'193;
  const auto unit = [](const Measures& all, MeasureKind kind) { return measure(all, kind).unit; };
  Measures all = measures_of(std::vector<const ComparedRun*>{&run}).at(0);
  using enum MeasureKind;
  for (const MeasureKind kind : {StepTime, StepP5, StepP95, SampleMean, RankWait, ExposedTransfer}) EXPECT_EQ(unit(all, kind), "ms");
  EXPECT_DOUBLE_EQ(measure(all, StepP5).value.value, 9.8);
  run.time.p5_us = 40;
  all = measures_of(std::vector<const ComparedRun*>{&run}).at(0);
  for (const MeasureKind kind : {StepTime, StepP5, StepP95, SampleMean}) EXPECT_EQ(unit(all, kind), "µs") << "the shortest one keeps its digits";
}

TEST(Comparison, AChoiceThatIsEmptyHasAWord) {
  ComparedRun a, b;
  a.spec.emplace(), b.spec.emplace();
  set_field(*a.spec, "model.layers", "conv 3x3 16 | relu | linear");
  EXPECT_NE(to_text(compare(a, b)).find("conv 3x3 16 | relu | linear -> none\n"), std::string::npos) << to_text(compare(a, b));
}

TEST(Comparison, OtherWorkIsNotJudged) {
  ComparedRun a, b;
  a.spec.emplace(), b.spec.emplace();
  a.time = {{300, 0.5}, 299, 301}, b.time = {{100, 0.5}, 99, 101};
  a.first_loss = 2.3, b.first_loss = 1.1;
  a.evaluations = {{100, 1, 0.1, 0.4, 0.9}}, b.evaluations = {{100, 1, 0.1, 0.2, 0.9}};
  const auto verdict = [&](MeasureKind kind) { return compare(a, b).of(kind).delta.verdict; };
  for (const MeasureKind kind : {MeasureKind::StepTime, MeasureKind::Throughput, MeasureKind::FirstLoss, MeasureKind::TestLoss})
    EXPECT_EQ(verdict(kind), Verdict::Better);
  b.spec->train.batch = 4 * a.spec->train.batch;
  EXPECT_EQ(verdict(MeasureKind::StepTime), Verdict::Neutral);
  for (const MeasureKind kind : {MeasureKind::Throughput, MeasureKind::FirstLoss, MeasureKind::TestLoss})
    EXPECT_EQ(verdict(kind), Verdict::Better) << "the data are the same";
  b.spec->data.name = "iris";
  for (const MeasureKind kind : {MeasureKind::StepTime, MeasureKind::Throughput, MeasureKind::FirstLoss, MeasureKind::TestLoss})
    EXPECT_EQ(verdict(kind), Verdict::Neutral);
  EXPECT_NE(to_text(compare(a, b)).find("losses are not comparable"), std::string::npos);
  EXPECT_EQ(to_text(compare(a, b)).find("better"), std::string::npos);
  b.spec = a.spec;
  b.spec->model.hidden = {7};
  EXPECT_EQ(verdict(MeasureKind::StepTime), Verdict::Neutral);
  EXPECT_EQ(verdict(MeasureKind::TestLoss), Verdict::Better);
}

// Steps as a graph leaves them: `slow_every`-th steps take nine times as long. With a pause, they would be left out.
RunData steps_of(TimeNs step_ns, int slow_every) {
  RunData run;
  const TrackId steps = run.trace.track(TrackKind::Steps, "steps", "CPU"), stream = run.trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  TimeNs at = 0;
  for (int i = 0; i < 200; ++i) {
    const TimeNs takes = slow_every && i % slow_every == 0 ? 9 * step_ns : step_ns;
    Span step;
    step.start = at, step.duration = static_cast<uint64_t>(takes), step.step = static_cast<uint32_t>(i + 1);
    step.kind = static_cast<uint64_t>(SpanKind::Step);
    run.trace.append(steps, step);
    Span kernel = step;
    kernel.duration = static_cast<uint64_t>(takes / 2);
    kernel.kind = static_cast<uint64_t>(SpanKind::Kernel);
    run.trace.append(stream, kernel);
    at += takes;
  }
  return run;
}

// A few slow steps move the mean, not the median: the causes must not contradict the headline.
TEST(Comparison, CausesComeFromTheMedianThatTheHeadlineNames) {
  const RunData even = steps_of(1000, 0), uneven = steps_of(850, 25);
  const Comparison c = compared(even, uneven);
  ASSERT_TRUE(c.split);
  EXPECT_EQ(c.of(MeasureKind::StepTime).delta.verdict, Verdict::Better);
  EXPECT_GT(c.of(MeasureKind::SampleMean).delta.delta, 0) << "the mean is worse";
  for (const prof::Waterfall* w : {&c.by_kind, &c.by_op}) {
    int64_t sum = 0;
    for (const prof::Cause& cause : w->causes) sum += cause.delta_ps();
    EXPECT_NEAR(static_cast<double>(w->a_ps) * 1e-6, c.of(MeasureKind::StepTime).a.value.value, 1e-3);
    EXPECT_NEAR(static_cast<double>(w->b_ps) * 1e-6, c.of(MeasureKind::StepTime).b.value.value, 1e-3);
    EXPECT_EQ(sum, w->b_ps - w->a_ps);
  }
  EXPECT_NE(to_text(c).find("a few slow steps move the mean"), std::string::npos);
  EXPECT_EQ(to_text(compared(even, steps_of(800, 0))).find("slow steps"), std::string::npos);
}

// A run without samples has the step time of its losses: the parts sum to that one, too.
TEST(Comparison, PartsSumToTheStepTimeThatAllViewsShow) {
  RunData stored = steps_of(1000, 25);
  stored.summary.step_time = {{1.25, 0.01}, 1.2, 1.3};
  const ComparedRun run = compared_run(stored);
  EXPECT_NEAR(run.sample.median_step_us(), 1.25, 1e-3);
}

TEST(Comparison, NothingIsSplitUnlessBothWereTracedAlike) {
  RunData traced, bare, steps;
  traced.trace = std::move(MadeTrace(100, 20).trace);
  traced.summary.us_per_step = 20, bare.summary.us_per_step = 10;
  const TrackId row = steps.trace.track(TrackKind::Steps, "steps", "CPU");
  for (int i = 0; i < 50; ++i) {
    Span span;
    span.start = i * 1000, span.duration = 900, span.step = static_cast<uint32_t>(i + 1);
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    steps.trace.append(row, span);
  }
  for (const RunData* other : {&bare, &steps}) {
    const Comparison c = compared(traced, *other);
    EXPECT_FALSE(c.split);
    EXPECT_TRUE(c.kernels.empty());
    EXPECT_TRUE(c.by_kind.causes.empty());
    const std::string text = to_text(c), as_json = to_json(c);
    EXPECT_EQ(text.find("sum = step time"), std::string::npos);
    EXPECT_NE(text.find("the causes are not known"), std::string::npos);
    EXPECT_NE(as_json.find("\"step\": null"), std::string::npos);
  }
  EXPECT_TRUE(compared(traced, bare).of(MeasureKind::WholeRunMean).delta.known()) << "what both know is compared";
}

// The phases of a program without a GPU tell as much of its step as kernels do. Phases of a host that feeds a GPU do not.
TEST(Comparison, ACpuBesideAGpuHasItsCauses) {
  RunData cpu, gpu;
  gpu.trace = std::move(MadeTrace(100, 20).trace);
  gpu.summary.device = "NVIDIA H200";
  cpu.trace.ops.push_back({"net", "", "net", "forward"}), cpu.trace.ops.push_back({"backward", "", "", "backward"});
  const TrackId steps = cpu.trace.track(TrackKind::Steps, "steps", "CPU"), ranges = cpu.trace.track(TrackKind::Ranges, "thread 5 ranges", "CPU");
  for (int step = 0; step < 50; ++step) {
    Span span;
    span.start = step * 100'000, span.duration = 99'000, span.step = static_cast<uint32_t>(step + 1);
    span.kind = static_cast<uint64_t>(SpanKind::Step);
    cpu.trace.append(steps, span);
    span.kind = static_cast<uint64_t>(SpanKind::Phase);
    for (const OpTag op : {OpTag{1}, OpTag{2}}) {
      span.op = op, span.duration = 30'000, span.start = step * 100'000 + (op - 1) * 40'000;
      cpu.trace.append(ranges, span);
    }
  }
  const Comparison c = compared(cpu, gpu);
  ASSERT_TRUE(c.split);
  EXPECT_EQ(c.by_kind.a_ps, 100'000'000);
  EXPECT_EQ(change(c.by_kind), c.by_kind.b_ps - c.by_kind.a_ps);
  EXPECT_EQ(change(c.by_op), c.by_kind.b_ps - c.by_kind.a_ps);
  const auto forward = std::ranges::find(c.by_kind.causes, PartKind::HostForward, &Cause::kind);
  ASSERT_NE(forward, c.by_kind.causes.end());
  EXPECT_EQ(forward->delta_ps(), -30'000'000);
  const std::string text = to_text(c);
  EXPECT_NE(text.find("one ran on the CPU alone, the other on NVIDIA H200"), std::string::npos) << text;
  EXPECT_EQ(text.find("the causes are not known"), std::string::npos) << text;
  cpu.summary.device = "NVIDIA H200";  // recorded by steps: its kernels are not known
  EXPECT_FALSE(compared(cpu, gpu).split);
}

// Recorded as a whole, a graph has a number of the driver's: two runs of the same one have different ones.
TEST(Comparison, WholeGraphsOfTwoRunsAreTheSameWork) {
  const auto run = [](const char* graph, TimeNs ns) {
    Made made;
    for (int step = 0; step < 40; ++step) {
      const TimeNs at = step * 1000;
      made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, at, at + 900, "step");
      made.add(TrackKind::GraphLaunches, SpanKind::GraphRun, Meaning::Launch, at, at + ns, graph);
    }
    RunData data;
    data.trace = std::move(made.trace);
    return data;
  };
  const Comparison c = compared(run("graph 2", 800), run("graph 17", 600));
  std::map<std::string, int64_t> bars;
  for (const Cause& cause : c.by_op.causes)
    if (cause.delta_ps() != 0) bars[cause_name(cause)] = cause.delta_ps();
  EXPECT_EQ(bars, (std::map<std::string, int64_t>{{"whole graphs", -200'000}, {"launch gaps", 200'000}}));
  ASSERT_EQ(c.kernels.size(), 1u);
  EXPECT_EQ(c.kernels[0].name, "whole graphs");
  EXPECT_NEAR(c.kernels[0].delta_us(), -0.2, 1e-9);
}

TEST(Comparison, TracesAreSplitByOpAsByKind) {
  RunData a, b;
  a.trace = std::move(MadeTrace(100, 20).trace);
  b.trace = std::move(MadeTrace(100, 10).trace);
  const Comparison c = compared(a, b);
  EXPECT_EQ(change(c.by_op), c.by_kind.b_ps - c.by_kind.a_ps);
  EXPECT_EQ(std::ranges::count_if(c.by_op.causes, [](const Cause& cause) { return cause.op == "fc1"; }), 1);
  EXPECT_NE(to_text(c).find("relu1"), std::string::npos);
  EXPECT_NE(to_json(c).find("\"causes_by_op\""), std::string::npos);
}

TEST(Comparison, TrainingsAreSplitByLayerAndRecordedProgramsByModule) {
  RunData a;
  a.trace = std::move(MadeTrace(100, 20).trace);
  const Comparison program = compared(a, a);
  EXPECT_EQ(group_word(program, GroupBy::Layer), "module");
  EXPECT_EQ(group_word(program, GroupBy::Name), "kernel");
  a.summary.spec = spec_text(RunSpec{});
  const Comparison training = compared(a, a);
  EXPECT_EQ(group_word(training, GroupBy::Layer), "layer");
  EXPECT_NE(to_text(training, GroupBy::Layer).find("layer"), std::string::npos);
  EXPECT_EQ(to_text(training, GroupBy::Layer).find("module"), std::string::npos);
}

TEST(Comparison, LayersAreAddedUpByBlock) {
  RunData made;
  made.trace = std::move(MadeTrace(100, 20).trace);
  ComparedRun a = compared_run(made), b = a;
  EXPECT_FALSE(compare(a, b).grouped.contains(GroupBy::Block)) << "a network without blocks";
  a.spec = b.spec = RunSpec{};
  a.spec->data.name = b.spec->data.name = "sentences";
  a.spec->model.layers = b.spec->model.layers = "embed 8 | 2 x block(heads 2) | layernorm | linear";
  a.sample.grouped[GroupBy::Layer] = {{"embed1", {1, 5}}, {"ln2", {1, 2}}, {"attn3", {3, 30}}, {"ln4", {1, 3}}, {"attn8", {3, 40}}};
  b.sample.grouped[GroupBy::Layer] = {{"embed1", {1, 5}}, {"ln2", {1, 2}}, {"attn3", {1, 10}}, {"ln4", {1, 3}}, {"attn8", {1, 12}}};
  const auto layers = blocks_of(*a.spec);
  ASSERT_EQ(layers.at("attn3"), "block 1");
  ASSERT_EQ(layers.at("attn8"), "block 2") << "the test names a layer of the second block";
  const Comparison c = compare(a, b);
  const auto& rows = c.grouped.at(GroupBy::Block);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "block 2");
  EXPECT_DOUBLE_EQ(rows[0].delta_us(), -28);
  EXPECT_EQ(rows[1].name, "block 1");
  EXPECT_DOUBLE_EQ(rows[1].a_us, 35);
  EXPECT_DOUBLE_EQ(rows[1].b_us, 15);
  EXPECT_DOUBLE_EQ(rows[1].a_count, 5);
  EXPECT_EQ(rows[2].name, "embed1");
  EXPECT_NE(to_text(c, GroupBy::Block).find("by block"), std::string::npos);
}

// A recording in windows that were too short for steps: what lies between them is not idle.
TEST(Comparison, WithoutStepsTheLongestTracedPartIsCompared) {
  RunData run;
  run.trace.append(run.trace.track(TrackKind::Stream, "stream 7", "GPU 0"), [&] {
    std::vector<Span> kernels;
    for (const TimeNs start : {0, 100, 5000, 5100, 5200}) {
      Span kernel;
      kernel.start = start, kernel.duration = 90;
      kernel.name = run.trace.intern("k");
      kernels.push_back(kernel);
    }
    return kernels;
  }());
  Span rest;
  rest.start = 200, rest.duration = 4800;
  rest.kind = static_cast<uint8_t>(SpanKind::Overhead);
  run.trace.append(run.trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), rest);
  const Comparison c = compared(run, run);
  EXPECT_EQ(c.by_kind.a_ps, 290'000);
  ASSERT_EQ(c.kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(c.kernels[0].a_count, 3);
}

// A run without a trace has the times at which its losses were seen.
TEST(Comparison, UntracedRunsHaveNoiseToo) {
  RunData a, b;
  const auto give = [](RunData& run, double us, double unrest) {
    double wall = 0.4;  // the first step took long
    run.metrics.clear();
    for (int64_t step = 0; step < 4000; ++step) {
      wall += (us + (step / 100 % 2 ? unrest : -unrest)) * 1e-6;
      run.metrics.push_back({step, wall, 1, 1});
    }
    run.summary.us_per_step = us;
  };
  give(a, 100, 10), give(b, 102, 10);
  const auto time = [](const Comparison& c) { return c.of(MeasureKind::StepTime).delta; };
  EXPECT_EQ(time(compared(a, b)).verdict, Verdict::WithinNoise);
  EXPECT_GT(time(compared(a, b)).noise, 2);
  give(a, 100, 0.5), give(b, 102, 0.5);
  EXPECT_EQ(time(compared(a, b)).verdict, Verdict::Worse);
  EXPECT_EQ(time(compared(a, a)).verdict, Verdict::WithinNoise);
  a.metrics.resize(4);
  EXPECT_FALSE(compared_run(a).time.has_spread()) << "too short to tell";
}

// Five steps of each, whose own intervals overlap: if all of one run are slower, their order decides.
TEST(Comparison, FiveStepsOfEachAreComparedByTheirOrder) {
  const auto run_of = [](const std::vector<int64_t>& steps_us) {
    RunData run;
    const TrackId steps = run.trace.track(TrackKind::Steps, "steps", "CPU"), stream = run.trace.track(TrackKind::Stream, "stream 7", "GPU 0");
    Span span;
    for (const int64_t us : steps_us) {
      ++span.step, span.duration = static_cast<uint64_t>(us) * 1000;
      span.kind = static_cast<uint8_t>(SpanKind::Step), span.name = run.trace.intern("step");
      run.trace.append(steps, span);
      span.kind = static_cast<uint8_t>(SpanKind::Kernel), span.name = run.trace.intern("gemm");
      run.trace.append(stream, span);
      span.start = span.end();
    }
    return run;
  };
  const auto verdict = [](const RunData& a, const RunData& b) { return compared(a, b).of(MeasureKind::StepTime).delta.verdict; };
  const RunData fast = run_of({100, 130, 105, 140, 110}), slow = run_of({150, 190, 160, 145, 175});
  EXPECT_EQ(verdict(fast, slow), Verdict::Worse);
  EXPECT_EQ(verdict(slow, fast), Verdict::Better);
  EXPECT_EQ(verdict(fast, run_of({100, 130, 160, 145, 110})), Verdict::WithinNoise);
}

TEST(Comparison, GraphRunsOfKnownSteps) {
  RunData a, b;
  test::GraphRun slow, fast;
  slow.update_ns = 11'500, fast.steps_a_graph = 4, fast.graphs_an_epoch = 200;
  test::add_graph_run(a.trace, slow, 3);
  test::add_graph_run(b.trace, fast, 3);
  const Comparison c = compared(a, b);
  EXPECT_EQ(c.by_kind.a_ps, slow.step_ns() * 1000);
  EXPECT_EQ(c.by_kind.b_ps, fast.step_ns() * 1000);
  EXPECT_NEAR(c.of(MeasureKind::StepTime).delta.delta, -4.5, 1e-9);
  ASSERT_EQ(c.kernels.size(), 2u);
  EXPECT_EQ(c.kernels[0].name, "update");
  EXPECT_DOUBLE_EQ(c.kernels[0].a_count, 1);
  EXPECT_NEAR(c.kernels[0].delta_us(), -4.5, 1e-9);
  EXPECT_EQ(c.by_kind.causes[0].meaning, Meaning::Optimizer);
  EXPECT_EQ(c.by_kind.causes[0].delta_ps(), -4'500'000);
}

TEST(Comparison, StatsSayTheSameTimeOfAStep) {
  for (const int steps : {100, 0}) {
    RunData run;
    if (steps > 0) run.trace = std::move(MadeTrace(steps, 20).trace);
    for (int64_t i = 0; i < 1000; ++i) run.metrics.push_back({i, 1e-4 * static_cast<double>(i + i % 7), 1, 1});
    const StepTime said = run_stats(run).step_time, compared = compared_run(run).time;
    EXPECT_TRUE(said.has_spread());
    EXPECT_DOUBLE_EQ(said.us.value, compared.us.value);
    EXPECT_DOUBLE_EQ(said.p5_us, compared.p5_us);
    EXPECT_DOUBLE_EQ(said.p95_us, compared.p95_us);
  }
}

// What differs says what is asked: a choice of training asks for the result, one of execution for the time.
// A run that began with the arena and ended with direct allocation differs from one that kept the arena.
TEST(Comparison, ChangesInMidRunArePartOfTheChoices) {
  RunData a, b;
  for (RunData* run : {&a, &b}) run->summary.origin = "run", run->summary.spec = spec_text(RunSpec{});
  b.marks.push_back(mark_of({70, "exec.allocator", "arena", "direct"}, 0.1));
  b.marks.push_back({80, 0.2, "of another program"});
  const Comparison c = compared(a, b);
  ASSERT_EQ(c.choices.size(), 1u);
  EXPECT_EQ(c.choices[0].key, "exec.allocator");
  EXPECT_EQ(c.choices[0].to, "direct");
}

TEST(Comparison, AnswersWhatWasAsked) {
  const auto run = [](double us, double accuracy) {
    ComparedRun out;
    out.spec.emplace();
    out.time.us = {us, 0.5};
    out.evaluations.push_back({100, 1, 0.1, 0.3, accuracy});
    return out;
  };
  ComparedRun a = run(100, 0.9), b = run(122.4, 0.97);
  EXPECT_EQ(answer_text(compare(a, b)), "B takes 22.4 % more time per step");
  b.spec->model.init = Init::Xavier;
  Comparison c = compare(a, b);
  EXPECT_EQ(answer_text(c), "B reaches 97.00 % test accuracy, A 90.00 %");
  EXPECT_EQ(c.measures.front().a.group, "Result");
  b.spec->exec.allocator = Allocator::Direct;
  c = compare(a, b);
  EXPECT_EQ(answer_text(c), "B reaches 97.00 % test accuracy, A 90.00 %; B takes 22.4 % more time per step");
  const Interval exact = std::exchange(a.time.us, {7928, 41350});
  EXPECT_TRUE(answer_text(compare(a, b)).ends_with("; too much noise to compare A and B")) << answer_text(compare(a, b));
  a.time.us = exact;
  b.spec->model.init = a.spec->model.init;
  EXPECT_EQ(answer_text(compare(a, b)), "B takes 22.4 % more time per step");
  a.spec->model.loss = b.spec->model.loss = LossKind::MeanSquared;
  b.spec->train.optimizer = Optimizer::Adam;
  a.evaluations.back().test_loss = 0.5;
  EXPECT_EQ(answer_text(compare(a, b)).substr(0, 33), "B ends at 0.3000 test loss, A 0.5");
}

TEST(Comparison, ABusyMachineIsAWarning) {
  ComparedRun calm, busy;
  calm.time = {{100, 1}, 98, 104}, busy.time = {{100, 1}, 80, 190};
  const auto said = [](const ComparedRun& a, const ComparedRun& b) {
    std::string all;
    for (const std::string& warning : compare(a, b).warnings) all += warning + "\n";
    return all;
  };
  EXPECT_EQ(said(calm, calm).find("something else"), std::string::npos);
  EXPECT_NE(said(calm, busy).find("something else used the machine while the candidate was measured"), std::string::npos);
  EXPECT_NE(said(busy, calm).find("something else used the machine while the baseline was measured"), std::string::npos);
  EXPECT_NE(said(busy, busy).find("something else used the machine while the baseline and the candidate were measured"), std::string::npos);
  EXPECT_EQ(warnings_of(calm, busy, "A", "C").front(), "something else used the machine while C was measured: measure again when it is quiet");
  // Others made some steps slow, so a mean of steps that lie close together gets no verdict either.
  ComparedRun program = busy;
  program.imported = true;
  EXPECT_EQ(said(calm, program).find("something else"), std::string::npos);
  EXPECT_NE(said(calm, program).find("the steps of the candidate vary: record again"), std::string::npos);
  ComparedRun fast = busy;
  for (ComparedRun* run : {&busy, &fast}) {
    const int64_t ns = run == &fast ? 100'000 : 400'000;
    run->sample.parts.steps = 100, run->sample.parts.begin = 0, run->sample.parts.end = 100 * ns;
    run->sample.step_us.assign(100, static_cast<double>(ns) * 1e-3);
    run->mean_step_us = run->sample.mean_step_us();
  }
  EXPECT_STREQ(verdict_text(compare(busy, fast).of(MeasureKind::SampleMean).delta), "machine busy");
}

TEST(Comparison, ATracingCostWithinItsNoiseHasNoNumber) {
  ComparedRun run;
  run.tracing_cost = {0.01, 0.05};
  EXPECT_FALSE(measure(measures_of(run), MeasureKind::TracingCost).value.known());
  run.tracing_cost = {0.10, 0.01};
  EXPECT_DOUBLE_EQ(measure(measures_of(run), MeasureKind::TracingCost).value.value, 10);
}

// Exact counts cannot vary: no noise hides a difference between them.
TEST(Comparison, CountsAreEqualOrNot) {
  const auto count = [](double value) { return MeasureValue{MeasureKind::Kernels, "", "kernels per step", "", {value}, Better::Lower, 1}; };
  EXPECT_EQ(delta_of(count(20), count(20)).verdict, Verdict::Equal);
  EXPECT_EQ(delta_of(count(20), count(3)).verdict, Verdict::Better);
  const MeasureValue time{MeasureKind::StepTime, "", "step time", "µs", {20, 1}, Better::Lower, 1};
  EXPECT_EQ(delta_of(time, time).verdict, Verdict::WithinNoise);
}

// The verdict above the table is the one in it.
TEST(Comparison, TheSentenceEqualsTheTable) {
  const auto run = [](double us, double noise, int64_t batch = 64) {
    ComparedRun out;
    out.spec.emplace();
    out.spec->train.batch = batch;
    out.time.us = {us, noise};
    return out;
  };
  const auto said = [](const ComparedRun& a, const ComparedRun& b) { return speed_text(compare(a, b)); };
  EXPECT_EQ(said(run(100, 0.5), run(121.7, 0.5)), "B takes 21.7 % more time per step");
  EXPECT_EQ(said(run(121.7, 0.5), run(100, 0.5)), "B takes 17.8 % less time per step");
  EXPECT_EQ(said(run(100, 0.5), run(30, 0.5)), "B is 3.33× faster per step");
  EXPECT_EQ(said(run(100, 5), run(103, 5)), "B is as fast as A: within noise");
  EXPECT_EQ(said(run(7928, 41350), run(24, 2)), "Too much noise to compare A and B");
  EXPECT_EQ(said(run(100, 0.5), run(100, 0.5, 128)), "B trains 2.00× as many samples per second as A");
  EXPECT_EQ(said(run(100, 0.5), ComparedRun{}), "A and B side by side");
  // Without samples the noise is unknown, which is not zero noise.
  EXPECT_EQ(said(run(100, 0), run(121.7, 0.5)), "B takes 21.7 % more time per step (no interval: too few steps)");
  EXPECT_EQ(compare(run(100, 0), run(121.7, 0)).of(MeasureKind::Throughput).delta.verdict, Verdict::NoiseUnknown);
  const auto pace = [&](const ComparedRun& a, const ComparedRun& b) {
    return pace_text(step_time_measure(a.time), step_time_measure(b.time), " than A");
  };
  EXPECT_EQ(pace(run(100, 0.5), run(30, 0.5)), "3.33× faster than A");
  EXPECT_EQ(pace(run(100, 5), run(103, 5)), "within noise");
  EXPECT_EQ(pace(run(269.4, 0.5), run(168.7, 0.5)), "37.4 % less time than A");
  EXPECT_EQ(pace(run(100, 5), ComparedRun{}), "");
  const auto hides = [](const ComparedRun& a, const ComparedRun& b) {
    return noise_hides_all(step_time_measure(a.time), step_time_measure(b.time));
  };
  EXPECT_TRUE(hides(run(111.6, 8480), run(63.8, 1)));
  EXPECT_FALSE(hides(run(100, 5), run(103, 5)));
  ComparedRun other = run(100, 0.5);
  other.spec->data.name = "iris";
  EXPECT_EQ(said(run(100, 0.5), other), "A and B train different things");
}

TEST(JudgeStep, TheWholeIntervalDecides) {
  const auto step = [](double us, double noise) { return MeasureValue{MeasureKind::StepTime, {}, "step time, median", "µs", {us, noise}, Better::Lower, 1}; };
  const StepVerdict slower = judge_step(step(100, 0.3), step(105, 0.4));
  EXPECT_EQ(slower.verdict, GateVerdict::Slower);
  EXPECT_NEAR(slower.low, 0.045, 1e-9);
  EXPECT_NEAR(slower.high, 0.055, 1e-9);
  EXPECT_EQ(judged_text(slower), "slower by 5.00 % (+4.50 % to +5.50 %)");
  EXPECT_EQ(judge_step(step(100, 0.3), step(90, 0.4)).verdict, GateVerdict::Faster);
  EXPECT_EQ(judge_step(step(100, 0.3), step(101, 0.4)).verdict, GateVerdict::NoDifference);
  EXPECT_EQ(judged_text(judge_step(step(100, 3), step(102, 4))), "cannot tell (-3.00 % to +7.00 %)");
  EXPECT_EQ(judged_text(judge_step(step(100, std::nan("")), step(102, 4))), "cannot tell: the noise is not known");
  EXPECT_EQ(judged_text(judge_step(step(std::nan(""), 0), step(102, 4))), "cannot tell: a step time is not known");
  EXPECT_EQ(judge_step(step(100, 0.3), step(105, 0.4), 0.10).verdict, GateVerdict::NoDifference);
}

TEST(Comparison, WhereKernelsWaitIsComparedIfBothWereSampled) {
  prof::MadeStalls a, b;
  b.add("bias_relu(float*)", 1, "/home/my.cu", 0, 18, {{prof::Stall::GlobalMemory, 5000}});
  const Comparison c = compared(a.run, b.run);
  EXPECT_THAT(to_text(c), HasSubstr("Samples of an X-ray by kernel"));
  EXPECT_THAT(to_text(c), HasSubstr("my.cu:18"));
  const auto parsed = nlohmann::json::parse(to_json(c));
  ASSERT_EQ(parsed["stalls"]["kernels"].size(), 3u);
  EXPECT_EQ(parsed["stalls"]["lines"][0]["line"], "my.cu:18");
  EXPECT_EQ(parsed["stalls"]["lines"][0]["verdict"], "more");
  EXPECT_THAT(to_text(compared(a.run, prof::RunData())), Not(HasSubstr("X-ray")));
}

}  // namespace
}  // namespace ws::app
