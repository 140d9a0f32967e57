// Which steps a run is measured by, and where the GPU ran the steps of a graph.
#include "profiling/analysis/steps_of_run.h"

#include <gtest/gtest.h>

#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/why_left_out.h"
#include "profiling/base/statistics.h"
#include "tests/profiling/trace/made_spans.h"
#include "tests/profiling/trace/made_trace.h"
#include "tests/support/step_times.h"
#include "tests/support/graph_run.h"

namespace ws::prof {
namespace {

TEST(Breakdown, InsideAGraphNothingWaitsForTheHost) {
  Made made;
  const auto in_graph = [&](TimeNs start, TimeNs end) {
    made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, start, end, "k", 9);
  };
  made.add(TrackKind::Api, SpanKind::GraphLaunch, Meaning::Launch, 0, 50, "launch", 9);
  made.add(TrackKind::Api, SpanKind::Sync, Meaning::Sync, 60, 1000);
  in_graph(100, 300), in_graph(400, 600);
  const auto flagged = [&] {
    Trace marked;
    for (const Track& track : made.trace.tracks())
      for (const SpanBlock& block : track.blocks)
        for (Span span : block.spans) {
          span.name = marked.intern("x");
          if (track.kind == TrackKind::Stream) span.flags = kInGraph;
          marked.append(marked.track(track.kind, track.name, track.group), span);
        }
    return marked;
  };
  EXPECT_EQ(part(breakdown(made.trace, 0, 1000), Meaning::Sync), 40 + 100 + 400) << "as far as is known";
  const Breakdown b = breakdown(flagged(), 0, 1000);
  EXPECT_EQ(part(b, Meaning::Matrix), 400);
  EXPECT_EQ(part(b, Meaning::Launch), 100 + 100) << "until its first kernel, and between the two";
  EXPECT_EQ(part(b, Meaning::Sync), 400) << "after its last kernel the host may be what is waited for";
  EXPECT_EQ(sum(b.times), 1000);
}

// A program that marks the ends of its steps: an evaluation lies inside of the next step, which is then no typical step.
TEST(StepSample, AStepThatContainsAPauseIsLeftOut) {
  Trace trace;
  const TrackId steps = trace.track(TrackKind::Steps, "steps", "CPU"), ranges = trace.track(TrackKind::Phases, "ranges", "CPU");
  TimeNs now = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    Span step;
    const TimeNs own = 4'000'000 + 1000 * (i % 7), pause = i > 0 && i % 50 == 0 ? 300'000'000 : 0;
    step.start = now, step.duration = static_cast<uint64_t>(own + pause), step.kind = static_cast<uint64_t>(SpanKind::Step), step.step = i + 1;
    trace.append(steps, step);
    Span forward = step;
    forward.start += pause, forward.duration = 1'000'000, forward.kind = static_cast<uint64_t>(SpanKind::Phase);
    trace.append(ranges, forward);
    now += own + pause;
  }
  const StepSample sample = StepsOfRun::of(trace).sample();
  EXPECT_EQ(sample.pauses, 3u);
  EXPECT_EQ(sample.parts.steps, 199 - 3);
  EXPECT_EQ(sample.step_us.size(), 199u - 3u);
  EXPECT_NEAR(sample.mean_step_us(), 4003, 1);
  EXPECT_EQ(which_steps(sample.which), "196 of steps 0–198") << "the last one is open";
  EXPECT_EQ(left_out_text(sample), ", without 3 at pauses") << "the steps add up";
  EXPECT_EQ(which_steps(sample.row_steps), "steps 151–198");
  int64_t counted = sample.all.end - sample.all.begin;
  for (const TimeRange& gap : sample.left_out) counted -= gap.length();
  EXPECT_EQ(counted, sample.parts.wall()) << "what is not left out is measured";
  EXPECT_EQ(gpu_figures(trace, sample.row, sample.row_steps).of, "steps 151–198");
  EXPECT_EQ(gpu_figures(trace, {}, {}).of, "the whole trace");
  EXPECT_EQ(which_steps({.count = 38}), "38 steps");
  EXPECT_EQ(which_steps({7, 7, 1}), "step 7");
  EXPECT_EQ(which_steps({}), "");
  EXPECT_EQ(left_out_text(0) + left_out_text(1) + left_out_text(3), ", one pause left out, 3 pauses left out");
}

void expect_known_steps(const StepSample& sample, const test::GraphRun& truth) {
  const double step_us = static_cast<double>(truth.step_ns()) * 1e-3;
  EXPECT_NEAR(sample.mean_step_us(), step_us, 1e-9);
  EXPECT_EQ(sample.stride, 1);
  EXPECT_GT(sample.parts.steps, 700);
  EXPECT_EQ(part(sample.parts, Meaning::Matrix), truth.gemm_ns * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Optimizer), truth.update_ns * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Launch), 2 * truth.gap_ns * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Sync), 0);
  EXPECT_DOUBLE_EQ(sample.kernels_per_step, 2);
  EXPECT_DOUBLE_EQ(sample.work.at("gemm").us, static_cast<double>(truth.gemm_ns) * 1e-3);
  EXPECT_EQ(sample.work.count("evaluate"), 0u) << "an evaluation is no part of a step";
  for (const double us : sample.step_us) ASSERT_NEAR(us, step_us, 1e-9);
  EXPECT_EQ(sample.median_step.end - sample.median_step.begin, truth.step_ns());
}

// Each tenth step has a long allocation: it moves the mean, but the parts of the median step know nothing of it.
TEST(StepSample, PartsOfTheMedianStepSumToTheMedian) {
  Trace trace;
  const TrackId steps = trace.track(TrackKind::Steps, "steps", "CPU"), stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0"),
                api = trace.track(TrackKind::Api, "CUDA API", "CPU");
  TimeNs now = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    const bool slow = i % 10 == 5;
    Span step;
    step.start = now, step.duration = slow ? 4000u : 1000u + i % 5, step.kind = static_cast<uint64_t>(SpanKind::Step), step.step = i + 1;
    trace.append(steps, step);
    Span kernel = step;
    kernel.duration = 800, kernel.kind = static_cast<uint64_t>(SpanKind::Kernel), kernel.meaning = static_cast<uint64_t>(Meaning::Matrix);
    trace.append(stream, kernel);
    Span call = step;
    call.start += 800, call.duration = slow ? 3000 : 10, call.kind = static_cast<uint64_t>(SpanKind::Alloc), call.meaning = static_cast<uint64_t>(Meaning::Allocation);
    trace.append(api, call);
    now = step.end();
  }
  const StepSample sample = StepsOfRun::of(trace).sample();
  EXPECT_GT(sample.mean_step_us(), 1.2);
  EXPECT_NEAR(sample.median_step_us(), median(sample.step_us), 1e-3);
  EXPECT_NEAR(static_cast<double>(part(sample.median_parts, Meaning::Allocation)) / static_cast<double>(sample.median_parts.steps), 10, 0.1);
  EXPECT_GT(static_cast<double>(part(sample.parts, Meaning::Allocation)) / static_cast<double>(sample.parts.steps), 200);
  EXPECT_EQ(sum(sample.median_parts.times), sample.median_parts.wall());
}

TEST(StepSample, StepsOfGraphsComeFromTheGpu) {
  const test::GraphRun truth;
  Trace trace;
  test::add_graph_run(trace, truth, 3);
  EXPECT_TRUE(host_ran_ahead(trace));
  for (const double steps_per_epoch : {0.0, 16.0 * truth.graphs_an_epoch})
    expect_known_steps(StepsOfRun::of(trace, {.per_epoch = steps_per_epoch}).sample(), truth);
  EXPECT_FALSE(host_ran_ahead(MadeTrace(50).trace));
}

TEST(StepSample, AMarkOfTheHostStandsForTheStepsOfItsGraph) {
  Trace trace;
  test::add_graph_run(trace, {}, 1);
  const auto marks = step_times(trace);
  ASSERT_EQ(marks.size(), 50u);
  for (const StepTimes& mark : marks) EXPECT_EQ(mark.parts.steps, 16);
}

// One kernel runs many steps. Some launches have few steps, which are inspected and take longer.
TEST(StepSample, TheStepTimeCountsEachStepAndNotEachLaunch) {
  Trace trace;
  const TrackId steps = trace.track(TrackKind::Steps, "steps", "GPU 0"), stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  TimeNs now = 0;
  uint32_t number = 1;
  for (int launch = 0; launch < 40; ++launch) {
    const bool looked_into = launch % 2 == 0;
    const uint32_t count = looked_into ? 16 : 160;
    Span kernel;
    kernel.start = now, kernel.duration = count * (looked_into ? 35'000u : 28'000u), kernel.kind = static_cast<uint64_t>(SpanKind::Kernel), kernel.step = number;
    trace.append(stream, kernel);
    kernel.kind = static_cast<uint64_t>(SpanKind::Step);
    trace.append(steps, kernel);
    now += static_cast<TimeNs>(kernel.duration), number += count;
  }
  const StepSample sample = StepsOfRun(trace, trace).sample();
  EXPECT_EQ(sample.stride, 16);
  EXPECT_EQ(sample.pauses, 0u) << "a launch of ten times as many steps is no pause";
  EXPECT_EQ(sample.step_us.size(), 20u + 19u * 10u);
  EXPECT_NEAR(step_time(sample, {}, 0).us.value, 28, 1e-9);
  EXPECT_NEAR(sample.longer_launch_us, 28, 1e-9);
  EXPECT_EQ(left_out_text(sample), ", from short launches (28.0 µs in long ones)");
  EXPECT_EQ(sample.marked, 20 * 16 + 19 * 160 + 16) << "each launch with its steps; the last one is open";
  EXPECT_EQ(sample.longer_launch_steps, 19 * 160);
  EXPECT_EQ(StepsOfRun(trace, trace, {.run_steps = 20 * 16 + 19 * 160 + 7}).sample().marked, 20 * 16 + 19 * 160 + 7) << "the run ended in the last launch";
  EXPECT_EQ(why_left_out(sample), "Left out: the last 16 steps (no next step marks the end) and 3 040 in longer launches (no time stamps inside).");
}


// One record a graph and none of its kernels: the steps between two graphs' starts are known all the same.
TEST(StepSample, WholeGraphsSayHowLongTheirStepsTook) {
  Trace trace;
  const TrackId marks = trace.track(TrackKind::Steps, "steps", "CPU"),
                graphs = trace.track(TrackKind::GraphLaunches, "stream 13 graphs", "GPU 0");
  for (uint32_t i = 0; i < 100; ++i) {
    Span mark;
    mark.start = i * 30'000, mark.duration = 29'000, mark.kind = static_cast<uint64_t>(SpanKind::Step);
    mark.step = 1 + 16 * i;
    Span graph = mark;
    graph.start = 50'000 + i * 160'000, graph.duration = 150'000;
    graph.kind = static_cast<uint64_t>(SpanKind::GraphRun), graph.meaning = static_cast<uint64_t>(Meaning::Launch);
    trace.append(marks, mark), trace.append(graphs, graph);
  }
  const StepSample sample = StepsOfRun::of(trace).sample();
  EXPECT_EQ(sample.stride, 16);
  EXPECT_NEAR(sample.mean_step_us(), 10, 1e-9);
  EXPECT_EQ(part(sample.parts, Meaning::Other) * 16, 15 * sample.parts.wall());
}

// While the tracing pauses on purpose the host goes on to mark its steps: they seem to have done nothing.
TEST(StepSample, LeavesOutWhatWasNotTracedOnPurpose) {
  Made made;
  for (uint32_t step = 1; step <= 300; ++step) {
    const TimeNs start = step * 1000;
    made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, start, start + 990, "step", step);
    if (step <= 100 || step > 200)
      made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, start, start + 800, "gemm", step);
  }
  Span rest;
  rest.start = 100'995, rest.duration = 99'995, rest.kind = static_cast<uint64_t>(SpanKind::Overhead);
  made.trace.append(made.trace.track(TrackKind::Untraced, kUntracedTrack, "CPU"), rest);
  const StepSample sample = StepsOfRun::of(made.trace).sample();
  EXPECT_EQ(sample.parts.steps, 99 + 99) << "the last of each row only ends the one before it";
  EXPECT_EQ(part(sample.parts, Meaning::Matrix), 800 * sample.parts.steps);
  EXPECT_DOUBLE_EQ(sample.mean_step_us(), 1.0);
  EXPECT_EQ(StepsOfRun(made.trace, made.trace).sample({kAlways, 50}).parts.steps, 49);
}

// A window of steps kernel by kernel, whole graphs between: a mean over both would tell of no step there was.
TEST(StepSample, WhatAStepIsMadeOfIsKnownFromThoseWhoseGraphsHaveKernels) {
  Made made;
  for (uint32_t step = 0; step < 300; ++step) {
    const TimeNs start = 1000 + step * 1000;
    made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, start, start + 990);
    if (step % 100 == 20) continue;  // recorded neither way: how a window ends
    if (step % 100 < 20) {
      made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, start, start + 600, "gemm", 1, kInGraph);
      made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Loss, start + 700, start + 900, "loss", 1, kInGraph);
    } else {
      made.add(TrackKind::GraphLaunches, SpanKind::GraphRun, Meaning::Launch, start, start + 900, "graph 2");
    }
  }
  const StepSample sample = StepsOfRun(made.trace, made.trace).sample();
  EXPECT_EQ(sample.parts.steps, 3 * 19) << "the last of each window only ends the one before it";
  EXPECT_EQ(part(sample.parts, Meaning::Matrix), 600 * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Loss), 200 * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Other), 0);
  EXPECT_DOUBLE_EQ(sample.kernels_per_step, 2);
  EXPECT_EQ(sample.work.count(kWholeGraphs), 0u);
  EXPECT_EQ(StepsOfRun(made.trace, made.trace).sample({kAlways, 20}).parts.steps, 19) << "of the newest window";
}

// The first steps were launched kernel by kernel, to warm up, and no graph's kernels are known.
TEST(StepSample, WarmingUpReportsNothingOfGraphs) {
  Made made;
  for (uint32_t step = 0; step < 100; ++step) {
    const TimeNs start = 1000 + step * 1000;
    made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, start, start + 990);
    if (step < 5)
      made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, start, start + 600, "gemm");
    else
      made.add(TrackKind::GraphLaunches, SpanKind::GraphRun, Meaning::Launch, start, start + 900, "graph 2");
  }
  EXPECT_EQ(StepsOfRun(made.trace, made.trace).sample().parts.steps, 99);
}

// Libraries load in the first step of a program. A long step later on is a step.
TEST(StepSample, LeavesTheWarmUpOut) {
  Made made;
  TimeNs start = 1000;
  for (uint32_t step = 0; step < 100; ++step) {
    const TimeNs length = step == 0 ? 90'000 : step == 50 ? 11'000 : 1000;
    made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, start, start + length - 10, "step", step + 1);
    made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, start, start + 800, "gemm", step + 1);
    start += length;
  }
  const StepSample sample = StepsOfRun(made.trace, made.trace).sample();
  EXPECT_EQ(sample.parts.steps, 98);
  EXPECT_NEAR(sample.mean_step_us(), (97 + 11) / 98.0, 1e-9);
  EXPECT_EQ(StepsOfRun(made.trace, made.trace).sample({kAlways, 40}).parts.steps, 39) << "it is not among the newest";
}

// It ended while the tracing rested, before the rest was written down.
TEST(StepSample, LeavesOutLastStepsOfWhichNothingWasRecorded) {
  Made made;
  for (int step = 1; step <= 100; ++step) {
    const TimeNs start = step * 1000;
    made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, start, start + 990, "step");
    made.add(TrackKind::Phases, SpanKind::Phase, Meaning::Other, start, start + 990, "forward");
    if (step <= 80) made.add(TrackKind::CpuThread, SpanKind::Op, Meaning::Matrix, start, start + 800, "gemm");
  }
  const StepSample sample = StepsOfRun::of(made.trace).sample();
  EXPECT_EQ(sample.parts.steps, 79) << "the last one only ends the one before it";
  EXPECT_EQ(part(sample.parts, Meaning::Matrix), 800 * sample.parts.steps);
  EXPECT_EQ(part(sample.parts, Meaning::Idle), 200 * sample.parts.steps);
}

// Only a part of a long run is in memory; steps without their kernels would look idle.
TEST(StepSample, LooksOnlyWhereEverythingIsInMemory) {
  MadeTrace made(3000);
  StepSample whole = StepsOfRun::of(made.trace).sample();
  made.trace.evict(made.trace.resident_bytes() / 5);
  const StepSample part_of_it = StepsOfRun::of(made.trace).sample();
  ASSERT_TRUE(part_of_it.traced());
  EXPECT_DOUBLE_EQ(part_of_it.kernels_per_step, whole.kernels_per_step);
}

}  // namespace
}  // namespace ws::prof
