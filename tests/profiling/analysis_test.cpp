#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "profiling/analysis/activity.h"
#include "profiling/analysis/compare.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_history.h"
#include "profiling/analysis/occupancy.h"
#include "profiling/analysis/roofline.h"
#include "profiling/analysis/step_breakdown.h"
#include "tests/profiling/made_spans.h"
#include "tests/profiling/made_trace.h"

namespace ws::prof {
namespace {

TEST(KernelTable, KnowsTheStatisticsOfKnownNumbers) {
  Made made;
  for (int i = 1; i <= 1000; ++i)
    made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, i * 10000, i * 10000 + i, "gemm");
  made.add(TrackKind::Stream, SpanKind::Copy, Meaning::Copy, 0, 50, "copy");
  const auto rows = kernel_table(made.trace, -kAlways, kAlways);
  ASSERT_EQ(rows.size(), 1u);
  const DurationStats& t = rows[0].time;
  EXPECT_EQ(t.count, 1000u);
  EXPECT_EQ(t.total, 500500);
  EXPECT_DOUBLE_EQ(t.mean, 500.5);
  EXPECT_EQ(t.median, 500);
  EXPECT_EQ(t.p99, 990);
  EXPECT_EQ(t.p999, 999);
  EXPECT_EQ(t.min, 1);
  EXPECT_EQ(t.max, 1000);
  EXPECT_NEAR(t.stddev, 288.819, 0.001);
  EXPECT_DOUBLE_EQ(rows[0].share, 1);
}

TEST(KernelTable, GroupsByLayerAndOp) {
  const MadeTrace made(10);
  const auto layers = kernel_table(made.trace, -kAlways, kAlways, GroupBy::Layer);
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0].key, "fc1");
  EXPECT_EQ(layers[0].time.count, 200u);
  EXPECT_EQ(kernel_table(made.trace, -kAlways, kAlways, GroupBy::Op).size(), 2u);
  EXPECT_EQ(kernel_table(made.trace, -kAlways, kAlways, GroupBy::Shape).size(), 20u);
}

TEST(KernelNames, KeepWhatTellsThemApart) {
  EXPECT_EQ(plain_kernel_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"),
            "vectorized_elementwise_kernel<4, FillFunctor<float>>");
  EXPECT_EQ(plain_kernel_name("void ws::cuda::(anonymous namespace)::relu<float>(float*, int)"), "relu<float>");
  EXPECT_EQ(plain_kernel_name("cutlass::Kernel2<a<(int)4>>(Params)"), "cutlass::Kernel2<a<(int)4>>");
}

TEST(Histogram, CountsEachValueOnce) {
  std::vector<int64_t> values;
  for (int i = 1; i <= 10000; ++i) values.push_back(i);
  const Histogram histogram = histogram_of(values, 20);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), uint64_t{0}), 10000u);
  EXPECT_NEAR(histogram.edges[1] / histogram.edges[0], histogram.edges[20] / histogram.edges[19], 1e-9);
  EXPECT_EQ(histogram_of({5, 5, 5}, 3).counts[0], 3u);
}

Detail kernel_of(int threads, int registers, int shared) {
  Detail d;
  d.block[0] = threads, d.block[1] = d.block[2] = 1;
  d.registers = registers;
  d.static_shared = shared;
  return d;
}

// Values of CUDA's occupancy calculator for compute capability 9.0.
TEST(Occupancy, AgreesWithKnownCases) {
  const DeviceLimits h200 = limits_of_card("NVIDIA H200").value();
  EXPECT_EQ(limits_of_card("NVIDIA RTX PRO 6000", "12.0").value().threads_per_sm, 1536);
  EXPECT_FALSE(limits_of_card("NVIDIA Rubin", "15.0")) << "no guess about a card of tomorrow";
  for (const char* unknown : {"", "9", ".", "x.y", "9."}) EXPECT_FALSE(limits_of_card("a card", unknown)) << unknown;
  const Occupancy full = occupancy_of(kernel_of(256, 32, 0), h200);
  EXPECT_EQ(full.blocks, 8);
  EXPECT_DOUBLE_EQ(full.share, 1);
  EXPECT_EQ(full.limit, OccupancyLimit::Warps);
  const Occupancy registers = occupancy_of(kernel_of(128, 255, 0), h200);
  EXPECT_EQ(registers.blocks, 2);
  EXPECT_DOUBLE_EQ(registers.share, 0.125);
  EXPECT_EQ(registers.limit, OccupancyLimit::Registers);
  const Occupancy shared = occupancy_of(kernel_of(128, 32, 48 * 1024), h200);
  EXPECT_EQ(shared.blocks, 4);
  EXPECT_EQ(shared.limit, OccupancyLimit::SharedMemory);
  const Occupancy blocks = occupancy_of(kernel_of(32, 16, 0), h200);
  EXPECT_EQ(blocks.blocks, 32);
  EXPECT_DOUBLE_EQ(blocks.share, 0.5);
  EXPECT_EQ(blocks.limit, OccupancyLimit::Blocks);
  EXPECT_EQ(occupancy_of(kernel_of(2048, 32, 0), h200).limit, OccupancyLimit::Impossible);
}

TEST(Breakdown, EachNsHasOneCause) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::Api, SpanKind::Alloc, Meaning::Allocation, 50, 150);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 400);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Pointwise, 350, 500);
  made.add(TrackKind::Stream, SpanKind::Copy, Meaning::Copy, 450, 600);
  made.add(TrackKind::Api, SpanKind::Sync, Meaning::Sync, 580, 700);
  const Breakdown b = breakdown(made.trace, 0, 1200);
  EXPECT_EQ(part(b, Meaning::Matrix), 300);
  EXPECT_EQ(part(b, Meaning::Pointwise), 100);
  EXPECT_EQ(part(b, Meaning::Copy), 100);
  EXPECT_EQ(part(b, Meaning::Allocation), 50);
  EXPECT_EQ(part(b, Meaning::Sync), 100);
  EXPECT_EQ(part(b, Meaning::Launch), 50 + 300);
  EXPECT_EQ(part(b, Meaning::Idle), 200);
  EXPECT_EQ(sum(b.times), b.wall());
  EXPECT_EQ(b.steps, 1);
}

TEST(Breakdown, WithoutAGpuNothingWaitsForLaunches) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::CpuThread, SpanKind::Op, Meaning::Matrix, 100, 400);
  const Breakdown b = breakdown(made.trace, 0, 1000);
  EXPECT_EQ(part(b, Meaning::Matrix), 300);
  EXPECT_EQ(part(b, Meaning::Launch), 0);
  EXPECT_EQ(part(b, Meaning::Idle), 700);
}

TEST(Breakdown, PartsSumExactlyOverRandomTraces) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Made made;
    for (int i = 0; i < 300; ++i) {
      const TimeNs start = random() % 100000;
      made.add(random() % 2 ? TrackKind::Stream : TrackKind::Api, static_cast<SpanKind>(random() % 12),
               static_cast<Meaning>(random() % kMeanings), start, start + random() % 3000);
    }
    const TimeNs begin = random() % 50000, end = begin + random() % 80000;
    EXPECT_EQ(sum(breakdown(made.trace, begin, end).times), end - begin);
  }
}

TEST(Breakdown, StepsFollowEachOther) {
  const MadeTrace made(100);
  const auto steps = step_times(made.trace, -kAlways, kAlways);
  ASSERT_EQ(steps.size(), 100u);
  int64_t whole = 0;
  for (const StepTimes& step : steps) {
    EXPECT_EQ(sum(step.parts.times), step.parts.wall());
    whole += step.parts.wall();
  }
  EXPECT_EQ(whole, breakdown(made.trace).wall());
  EXPECT_EQ(steps[7].step, 7);
  EXPECT_EQ(breakdown(made.trace).steps, 100);
}

TEST(Activity, BusyAndOverlap) {
  Made made;
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 300, "k", 5);
  made.add(TrackKind::Copies, SpanKind::Copy, Meaning::Copy, 200, 400);
  made.add(TrackKind::Api, SpanKind::Api, Meaning::Launch, 40, 60, "launch", 5);
  const Activity a = activity(made.trace, 0, 1000);
  EXPECT_EQ(a.busy, 300);
  EXPECT_EQ(a.overlap, 100);
  EXPECT_DOUBLE_EQ(a.hidden_copies(), 0.5);
  EXPECT_EQ(launch_delay(made.trace, 0, 1000).median, 60);
}

TEST(Activity, AnUntracedStretchIsNeitherBusyNorIdle) {
  Made made;
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 300);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 800, 1000);
  Span rest;
  rest.start = 250;
  rest.duration = 500;
  rest.kind = static_cast<uint8_t>(SpanKind::Overhead);
  const TrackId track = made.trace.track(TrackKind::Overhead, kUntracedTrack, "CPU");
  made.trace.append(track, rest);
  rest.start = 500;  // they may touch and overlap
  made.trace.append(track, rest);
  const Activity a = activity(made.trace, 0, 1100);
  EXPECT_EQ(a.untraced, 750);
  EXPECT_EQ(a.wall, 350);
  EXPECT_EQ(a.busy, 150);
}

TEST(Roofline, RatesOfAnOp) {
  Made made;
  made.trace.ops.push_back({"fc1", "", "", "", Meaning::Matrix, 2'000'000, 1'000'000});
  for (uint32_t step = 1; step <= 2; ++step) {
    for (int half = 0; half < 2; ++half) {
      Span span;
      span.start = step * 10000 + half * 2000;
      span.duration = 1000;
      span.op = 1;
      span.step = step;
      made.trace.append(made.trace.track(TrackKind::Stream, "stream 7", "GPU 0"), span);
    }
  }
  const auto points = roofline(made.trace, 0, 100000, {2e12, 4e12});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].executions, 2u);  // two kernels each
  EXPECT_DOUBLE_EQ(points[0].flops_per_s, 1e12);
  EXPECT_DOUBLE_EQ(points[0].intensity, 2);
  EXPECT_DOUBLE_EQ(points[0].share, 0.5);
  EXPECT_FALSE(points[0].memory_bound);
}

TEST(MemoryHistory, FollowsBlocksAndHoles) {
  Trace trace;
  trace.memory_sources = {"arena"};
  trace.append_memory({0, 1000, 400, 1, 0, MemoryEventKind::Reserve, 0});
  trace.append_memory({10, 1000, 100, 1, 0, MemoryEventKind::Allocate, 0});
  trace.append_memory({20, 1100, 100, 1, 0, MemoryEventKind::Allocate, 0});
  trace.append_memory({30, 1200, 100, 1, 0, MemoryEventKind::Allocate, 0});
  trace.append_memory({40, 1100, 0, 1, 0, MemoryEventKind::Free, 0});
  trace.append_memory({50, 7777, 0, 1, 0, MemoryEventKind::Free, 0});
  const MemoryHistory history = memory_history(trace);
  EXPECT_EQ(history.peak_live, 300u);
  EXPECT_EQ(history.peak_reserved, 400u);
  EXPECT_EQ(history.points.back().live, 200u);
  EXPECT_EQ(history.unmatched_frees, 1u);
  EXPECT_EQ(history.allocations, 3u);
  ASSERT_EQ(history.blocks.size(), 4u);
  EXPECT_EQ(history.blocks[2].end, 40);
  EXPECT_TRUE(history.blocks[2].freed);
  EXPECT_DOUBLE_EQ(fragmentation(history, 45), 0.5);  // two holes of 100
  EXPECT_DOUBLE_EQ(fragmentation(history, 35), 0);
  ASSERT_EQ(size_histogram(history).size(), 1u);
  EXPECT_EQ(size_histogram(history)[0].from, 64u);
  EXPECT_EQ(size_histogram(history)[0].count, 3u);
}

}  // namespace
}  // namespace ws::prof
