#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/step_times.h"
#include "profiling/analysis/activity.h"
#include "profiling/analysis/waterfall.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/memory_account.h"
#include "profiling/analysis/occupancy.h"
#include "profiling/analysis/roofline.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/base/failure.h"
#include "tests/profiling/trace/made_spans.h"
#include "tests/profiling/trace/made_trace.h"
#include "profiling/trace/code_places.h"

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

// Algorithms are tried before the training, without an op.
TEST(KernelTable, AKernelHasTheMeaningOfMostOfItsTime) {
  Made made;
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Other, 0, 30, "gemm");
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 20, "gemm");
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 200, 20, "gemm");
  const auto rows = kernel_table(made.trace, -kAlways, kAlways);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].meaning, Meaning::Matrix);
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

TEST(KernelNames, KeepWhatMakesThemDistinct) {
  EXPECT_EQ(plain_kernel_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"),
            "vectorized_elementwise_kernel<4, FillFunctor<float>>");
  EXPECT_EQ(plain_kernel_name("void ws::cuda::(anonymous namespace)::relu<float>(float*, int)"), "relu<float>");
  EXPECT_EQ(plain_kernel_name("cutlass::Kernel2<a<(int)4>>(Params)"), "cutlass::Kernel2<a<(int)4>>");
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
  EXPECT_EQ(limits_of_card("NVIDIA A100-SXM4-80GB").value().threads_per_sm, 2048);
  EXPECT_EQ(limits_of_card("NVIDIA RTX A1000", "8.6").value().threads_per_sm, 1536) << "what the driver says counts";
  for (const char* other : {"NVIDIA RTX A1000", "Quadro RTX 4000", "NVIDIA RTX 3000 Ada"})
    EXPECT_FALSE(limits_of_card(other)) << other;
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

// Kernels that are launched to begin while the one before them ends, as the fused ones of a graph: the loss waits inside.
TEST(Breakdown, AKernelCountsFromTheEndOfTheOneBeforeIt) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Loss, 0, 400);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 700);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Optimizer, 200, 600);
  const Breakdown b = breakdown(made.trace, 0, 1000);
  EXPECT_EQ(part(b, Meaning::Loss), 400);
  EXPECT_EQ(part(b, Meaning::Matrix), 300);
  EXPECT_EQ(part(b, Meaning::Optimizer), 0);
  EXPECT_EQ(b.kernels(), 700);
  EXPECT_EQ(sum(b.times), b.wall());
}

TEST(Breakdown, CommunicationCountsWhereNothingComputes) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 0, 400);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Communication, 300, 700);
  made.add(TrackKind::Stream, SpanKind::Copy, Meaning::Copy, 650, 800);
  const Breakdown b = breakdown(made.trace, 0, 1000);
  EXPECT_EQ(part(b, Meaning::Matrix), 400);
  EXPECT_EQ(part(b, Meaning::Communication), 300) << "its first 100 ns are hidden";
  EXPECT_EQ(part(b, Meaning::Copy), 100);
  EXPECT_EQ(b.kernels(), 700);
  EXPECT_EQ(sum(b.times), b.wall());
}

// A kernel of many steps, and the lanes of two multiprocessors and of warps that fetch.
Trace resident_kernel() {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 900, "ws_train");
  const auto inside = [&](const char* lane, Meaning meaning, TimeNs start, TimeNs end, uint32_t step, uint8_t flags = 0) {
    Span span;
    span.start = start, span.duration = static_cast<uint64_t>(end - start);
    span.kind = static_cast<uint64_t>(SpanKind::Inner), span.meaning = static_cast<uint64_t>(meaning);
    span.name = made.trace.intern(meaning == Meaning::Sync ? "wait" : "fc1 forward");
    span.step = step, span.flags = flags;
    made.trace.append(made.trace.track(TrackKind::Inner, lane, "GPU 0"), span);
  };
  for (const char* lane : {"SM 000", "SM 001"})
    for (uint32_t step : {1u, 2u}) {
      const TimeNs at = 100 + 100 * step;
      inside(lane, Meaning::Matrix, at, at + 60, step), inside(lane, Meaning::Sync, at + 60, at + 80, step);
    }
  inside("SM 000 copies", Meaning::Sync, 200, 400, 1, kHelper);
  return std::move(made.trace);
}

TEST(InnerParts, ShowWhatAKernelOfManyStepsDoes) {
  const InnerParts inner(resident_kernel());
  const auto parts = inner.of(kNoOp);
  ASSERT_EQ(parts.size(), 2u) << "the warps that fetch are left out";
  EXPECT_EQ(parts[0].meaning, Meaning::Matrix);
  EXPECT_DOUBLE_EQ(parts[0].share, 0.75);
  EXPECT_DOUBLE_EQ(parts[0].ns_a_step, 60);
  EXPECT_DOUBLE_EQ(parts[1].share, 0.25);
  EXPECT_TRUE(InnerParts(Trace{}).empty());
}

TEST(InnerParts, SplitTheKernelsTimeAndKeepItsSum) {
  const Trace trace = resident_kernel();
  WorkTimes by_work;
  const Breakdown b = breakdown(trace, 0, 1000, &by_work);
  EXPECT_EQ(part(b, Meaning::Matrix), 600);
  EXPECT_EQ(part(b, Meaning::Sync), 200);
  EXPECT_EQ(b.inner_wait, 200);
  const std::vector<BreakdownPart> parts = parts_of(b);
  const auto inside_wait = std::ranges::find(parts, PartKind::InnerWait, [](const BreakdownPart& one) { return one.id.kind; });
  ASSERT_NE(inside_wait, parts.end());
  EXPECT_EQ(inside_wait->ns, 200);
  EXPECT_STREQ(part_name(inside_wait->id), "waits for other multiprocessors");
  EXPECT_FALSE(gpu_waits_in(inside_wait->id)) << "the kernel runs";
  for (const BreakdownPart& one : parts) EXPECT_STRNE(part_name(one.id), "sync") << "the host waits for nothing";
  EXPECT_EQ(part(b, Meaning::Launch), 200);
  EXPECT_EQ(sum(b.times), b.wall());
  EXPECT_EQ(b.busy, 800) << "the GPU runs while a kernel waits inside";
  EXPECT_EQ(by_work.size(), 2u);
  const Breakdown odd = breakdown(trace, 150, 633);
  EXPECT_EQ(sum(odd.times), odd.wall());
  EXPECT_EQ(part(odd, Meaning::Matrix) + part(odd, Meaning::Sync), 483);
}

TEST(KernelNames, NcclCommunicatesWhateverItReduces) {
  for (const char* name : {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                           "ncclKernel_AllGather_RING_LL_Sum_int8_t", "ncclDevKernel_ReduceScatter_Sum_bf16_NVLS_LL"})
    EXPECT_EQ(meaning_of_kernel(name), Meaning::Communication) << name;
  EXPECT_EQ(meaning_of_kernel("reduce_kernel<512, 1>"), Meaning::Reduction);
}

// PyTorch 2.11 with cuDNN has these names on an H200.
TEST(KernelNames, ConvolutionsNormsAndPoolsHaveAMeaning) {
  for (const char* name : {"wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>", "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>",
                           "void cudnn::winograd_nonfused::winogradWgradDelta4x4<float, float>"})
    EXPECT_EQ(meaning_of_kernel(name), Meaning::Matrix) << name;
  for (const char* name : {"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>", "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 32, true, 1>",
                           "void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>", "column sum dz2 → db2"})
    EXPECT_EQ(meaning_of_kernel(name), Meaning::Reduction) << name;
  for (const char* name : {"void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>",
                           "void at::native::(anonymous namespace)::CatArrayBatchedCopy_vectorized<at::native::(anonymous namespace)::OpaqueType<4u>>",
                           "void at::native::vectorized_gather_kernel<16, long>", "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, long>"})
    EXPECT_EQ(meaning_of_kernel(name), Meaning::Pointwise) << name;
  for (const char* name : {"sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize64x32x64_stage5", "void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float, true, true, 1>",
                           "fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwardKernel)"})
    EXPECT_EQ(meaning_of_kernel(name), Meaning::Matrix) << name;
}

TEST(KernelNames, ReductionsHaveTheirOwnName) {
  for (const char* name : {"void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>", "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 32, true, 1>",
                           "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::InvStd, float>", "batch norm grad"})
    EXPECT_EQ(kind_of_reduction(name), "batch norm") << name;
  EXPECT_EQ(kind_of_reduction("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"), "layer norm");
  EXPECT_EQ(kind_of_reduction("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, int>"), "pooling");
  EXPECT_EQ(kind_of_reduction("reduce_kernel<512, 1>"), "") << "it has no more exact name";
  EXPECT_EQ(kind_of_reduction("sm80_xmma_gemm_with_batchnorm_epilogue"), "") << "a matrix product";
}

// What the GPU computed is not known then. It was not idle.
TEST(Breakdown, CollectivesAloneLeaveTheRestUnrecorded) {
  Made made;
  made.add(TrackKind::Steps, SpanKind::Step, Meaning::Other, 0, 1000);
  made.add(TrackKind::Collectives, SpanKind::Op, Meaning::Communication, 100, 400);
  const std::vector<BreakdownPart> parts = parts_of(breakdown(made.trace, 0, 1000));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_STREQ(part_name(parts[0].id), "communication");
  EXPECT_EQ(parts[0].ns, 300);
  EXPECT_STREQ(part_name(parts[1].id), "not recorded");
  EXPECT_EQ(parts[1].ns, 700);
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
  const auto steps = step_times(made.trace);
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

// The driver says of which launch it was that the profiler took time.
TEST(Activity, WhatTheProfilerTookIsNoLaunch) {
  Made made;
  made.add(TrackKind::Overhead, SpanKind::Overhead, Meaning::Other, 0, 2, "profiler", 5);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 300, "k", 5);
  EXPECT_EQ(launch_delay(made.trace, 0, 1000).count, 0u);
}

// Thirty-two kernels share a graph's launch: what the last of them waited for was the rest.
TEST(Activity, AGraphIsLaunchedOnce) {
  Made made;
  made.add(TrackKind::Api, SpanKind::GraphLaunch, Meaning::Launch, 1000, 1500, "cudaGraphLaunch", 7);
  for (int node = 31; node >= 0; --node)
    made.add(node % 2 ? TrackKind::Stream : TrackKind::Copies, node % 2 ? SpanKind::Kernel : SpanKind::Copy,
             Meaning::Matrix, 4000 + 1000 * node, 4900 + 1000 * node, "node", 7);
  made.add(TrackKind::Api, SpanKind::Api, Meaning::Launch, 50'000, 50'100, "launch", 8);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 50'600, 50'700, "k", 8);
  const DurationStats delay = launch_delay(made.trace, 0, 100'000);
  EXPECT_EQ(delay.count, 2u);
  EXPECT_EQ(delay.min, 600);
  EXPECT_EQ(delay.max, 3000);
}

TEST(Activity, AnUntracedStretchIsNeitherBusyNorIdle) {
  Made made;
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 100, 300);
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 800, 1000);
  Span rest;
  rest.start = 250;
  rest.duration = 500;
  rest.kind = static_cast<uint8_t>(SpanKind::Overhead);
  const TrackId track = made.trace.track(TrackKind::Untraced, kUntracedTrack, "CPU");
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
  Span on_host;  // the launching of it takes longer than itself, and is none of its work
  on_host.start = 10'000, on_host.duration = 50'000, on_host.op = 1, on_host.step = 1;
  on_host.kind = static_cast<uint8_t>(SpanKind::Op);
  made.trace.append(made.trace.track(TrackKind::CpuThread, "thread 1", "CPU"), on_host);
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
  trace.append_memory({0, 1000, 400, 1, 0, MemoryAction::Reserve, 0});
  trace.append_memory({10, 1000, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({20, 1100, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({30, 1200, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({40, 1100, 0, 1, 0, MemoryAction::Free, 0});
  trace.append_memory({50, 7777, 0, 1, 0, MemoryAction::Free, 0});
  const MemoryHistory history = memory_history(trace);
  EXPECT_EQ(history.peak_live, 300u);
  EXPECT_EQ(history.peak_reserved, 400u);
  EXPECT_EQ(history.points.back().live, 200u);
  EXPECT_EQ(history.unmatched_frees, 1u);
  EXPECT_EQ(history.allocations, 3u);
  ASSERT_EQ(history.blocks.size(), 4u);
  EXPECT_EQ(history.blocks[2].end, 40);
  EXPECT_TRUE(history.blocks[2].freed);
  EXPECT_DOUBLE_EQ(memory_moment(history, 45).fragmentation(), 0.5);  // two holes of 100
  EXPECT_DOUBLE_EQ(memory_moment(history, 35).fragmentation(), 0);
  ASSERT_EQ(size_histogram(history).size(), 1u);
  EXPECT_EQ(size_histogram(history)[0].from, 64u);
  EXPECT_EQ(size_histogram(history)[0].count, 3u);
}

// A pool that does not say where its segments are, or cudaMalloc itself: holes lie between the places it ever gave out.
TEST(MemoryHistory, HolesWithoutSegmentsLieBetweenTheBlocks) {
  Trace trace;
  trace.memory_sources = {"cudaMalloc", "caching"};
  const uint64_t far = uint64_t{1} << 40;
  trace.append_memory({0, 1000, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({1, 1100, 300, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({2, 1400, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({3, far, 50, 1, 0, MemoryAction::Allocate, 0});  // elsewhere: what lies between is no hole
  trace.append_memory({4, 1100, 0, 1, 0, MemoryAction::Free, 0});
  trace.append_memory({5, far, 0, 1, 0, MemoryAction::Free, 0});
  trace.append_memory({6, 4096, 4096, 1, 0, MemoryAction::Reserve, 1});
  trace.append_memory({7, 5120, 1024, 1, 0, MemoryAction::Allocate, 1});
  const auto accounts = memory_accounts(trace);
  ASSERT_EQ(accounts.size(), 2u);
  EXPECT_EQ(accounts[0].allocator, "caching");
  EXPECT_EQ(accounts[0].at_peak.reserved, 4096u);
  EXPECT_EQ(accounts[0].at_peak.holes, 2u);
  EXPECT_DOUBLE_EQ(accounts[0].at_peak.fragmentation(), 1 - 2048.0 / 3072);
  EXPECT_TRUE(accounts[1].driver());
  EXPECT_EQ(accounts[1].history.peak_live, 550u);
  EXPECT_DOUBLE_EQ(accounts[1].at_peak.fragmentation(), 0) << "nothing was free then";
  EXPECT_EQ(accounts[1].worst.time, 1);  // before the last two places were taken
  EXPECT_EQ(accounts[1].worst.free_bytes, 150u);
  EXPECT_DOUBLE_EQ(accounts[1].worst.fragmentation(), 1 - 100.0 / 150);
  EXPECT_DOUBLE_EQ(memory_moment(accounts[1].history, 5).fragmentation(), 1 - 300.0 / 350);
  const auto moments = memory_moments(accounts[1].history, 3, 5, 100);
  ASSERT_EQ(moments.size(), 2u);
  EXPECT_EQ(moments[0].live, 550u);
  ASSERT_EQ(moments[0].sizes.size(), 3u);  // 32-64, 64-128, 256-512
  EXPECT_EQ(moments[0].sizes[1].count, 2u);
  EXPECT_EQ(moments[1].live, 250u);
  EXPECT_EQ(memory_moments(accounts[1].history, -kAlways, kAlways, 2).size(), 2u);
  const std::string text = memory_text(trace, accounts);
  EXPECT_NE(text.find("33.3 %"), std::string::npos) << "wrong worst\n" << text;
  EXPECT_NE(text.find("< 512 B"), std::string::npos) << text;
}

// PyTorch's cache holds three blocks of cudaMalloc: one is full, one half full, one without a tensor.
TEST(MemoryHistory, WhatIsTakenAndUnusedIsBesideBlocksOrInEmptySegments) {
  Trace trace;
  trace.memory_sources = {"cudaMalloc", "PyTorch", "PyTorch CPU"};
  trace.append_memory({0, 1000, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({1, 2000, 100, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({2, 3000, 70, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({3, 1000, 100, 1, 0, MemoryAction::Allocate, 1});
  trace.append_memory({4, 3000, 20, 1, 0, MemoryAction::Allocate, 1});
  trace.append_memory({5, 3000, 0, 1, 0, MemoryAction::Free, 1});
  trace.append_memory({6, 2040, 50, 1, 0, MemoryAction::Allocate, 1});  // the peak: 150
  trace.append_memory({7, 90'000, 64, 1, 0, MemoryAction::Allocate, 2});
  trace.append_memory({8, 1000, 0, 1, 0, MemoryAction::Free, 1});
  trace.append_memory({9, 4000, 500, 1, 0, MemoryAction::Allocate, 0});  // after the peak of the tensors
  const auto accounts = memory_accounts(trace);
  ASSERT_EQ(accounts.size(), 3u);
  const MemoryGap& gap = accounts[0].gap;
  EXPECT_EQ(gap.live, 150u);
  EXPECT_EQ(gap.taken, 270u);
  EXPECT_EQ(gap.most_taken, 770u);
  EXPECT_EQ(gap.beside, 50u);
  EXPECT_EQ(gap.empty, 70u);
  EXPECT_EQ(gap.taken, gap.live + gap.beside + gap.empty);
  EXPECT_FALSE(accounts[1].gap.known()) << "memory of the CPU lies in no block of the driver";
  EXPECT_FALSE(accounts[2].gap.known());
  const std::string text = memory_text(trace, accounts);
  EXPECT_NE(text.find("PyTorch: 150 B live at the peak, in 270 B of the driver's memory (770 B at most)."), std::string::npos) << text;
  EXPECT_NE(text.find("Unused of it: 50 B beside live blocks, 70 B in segments without one."), std::string::npos) << text;
}

// A pool that reports its segments is measured by them.
TEST(MemoryHistory, UnusedIsMeasuredByTheSegmentsOfAPoolThatReportsThem) {
  Trace trace;
  trace.memory_sources = {"caching"};
  trace.append_memory({1, 4096, 4096, 1, 0, MemoryAction::Reserve, 0});
  trace.append_memory({2, 5120, 1024, 1, 0, MemoryAction::Allocate, 0});
  trace.append_memory({3, 16384, 512, 1, 0, MemoryAction::Reserve, 0});
  trace.append_memory({4, 6144, 1024, 1, 0, MemoryAction::Allocate, 0});
  const MemoryGap gap = memory_accounts(trace)[0].gap;
  EXPECT_EQ(gap.taken, 4608u);
  EXPECT_EQ(gap.beside, 2048u);
  EXPECT_EQ(gap.empty, 512u);
}

// Three ops of two layers. At the peak, the second block of "a" is given back, and the driver's segment is no block.
TEST(MemoryHistory, HoldersAtThePeakAreByLayerOpOrLine) {
  Trace trace;
  trace.memory_sources = {"PyTorch", "cudaMalloc"};
  const auto op = [&trace](const char* name, const char* layer, const char* line) {
    trace.ops.push_back({name, "", layer, "forward", Meaning::Matrix, 0, 0, stack_from_text(line)});
    return static_cast<OpTag>(trace.ops.size() - 1);
  };
  const OpTag mm = op("aten::mm", "a", "net.py:3 in forward"), add = op("aten::add", "a", "net.py:4 in forward"),
              relu = op("aten::relu", "b", "net.py:4 in forward");
  trace.append_memory({0, 1000, 100, 1, mm, MemoryAction::Allocate, 0});
  trace.append_memory({1, 2000, 70, 1, mm, MemoryAction::Allocate, 0});
  trace.append_memory({2, 2000, 0, 1, kNoOp, MemoryAction::Free, 0});
  trace.append_memory({3, 3000, 30, 1, add, MemoryAction::Allocate, 0});
  trace.append_memory({4, 4000, 60, 1, relu, MemoryAction::Allocate, 0});
  trace.append_memory({5, 5000, 10, 1, kNoOp, MemoryAction::Allocate, 0});  // the peak: 200
  trace.append_memory({6, 1000, 0, 1, kNoOp, MemoryAction::Free, 0});
  trace.append_memory({7, 6000, 50, 1, relu, MemoryAction::Allocate, 0});
  trace.append_memory({8, 9000, 4096, 1, kNoOp, MemoryAction::Allocate, 1});
  const auto rows = [&trace](GroupBy by) {
    std::vector<std::string> texts;
    const auto by_row = memory_accounts(trace, by);
    for (const MemoryHolder& row : by_row[0].held)
      texts.push_back(row.name + " " + std::to_string(row.bytes) + " in " + std::to_string(row.blocks));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(rows(GroupBy::Name), (Texts{"a 130 in 2", "b 60 in 1", "(no op) 10 in 1"}));
  EXPECT_EQ(rows(GroupBy::Op), (Texts{"a · aten::mm 100 in 1", "b · aten::relu 60 in 1", "a · aten::add 30 in 1", "(no op) 10 in 1"}));
  EXPECT_EQ(rows(GroupBy::Line), (Texts{"net.py:3 in forward 100 in 1", "net.py:4 in forward 90 in 2", "(no op) 10 in 1"}));
  const auto accounts = memory_accounts(trace);
  EXPECT_TRUE(accounts[1].driver() && accounts[1].held.empty()) << "no block of it has an op";
  const std::string text = memory_text(trace, accounts);
  EXPECT_NE(text.find("live at the peak of PyTorch, by layer"), std::string::npos) << text;
  EXPECT_NE(text.find("65.00            2  a"), std::string::npos) << text;
}

// cudaMalloc for each block: every block is its own segment, and what is between them is still broken up.
TEST(MemoryHistory, BlocksThatAreTheirOwnSegmentsAreNoPool) {
  Trace trace;
  trace.memory_sources = {"direct"};
  for (int round = 0; round < 2; ++round)  // an address is used again for another size
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t address = 1000 + i * 100, bytes = round == 0 ? 100 : 50;
      const auto time = static_cast<TimeNs>(round * 100 + i * 10);
      trace.append_memory({time, address, bytes, 1, 0, MemoryAction::Reserve, 0});
      trace.append_memory({time, address, bytes, 1, 0, MemoryAction::Allocate, 0});
      if (i == 1) continue;
      trace.append_memory({time + 5, address, bytes, 1, 0, MemoryAction::Free, 0});
      trace.append_memory({time + 5, address, bytes, 1, 0, MemoryAction::Release, 0});
    }
  const MemoryHistory history = memory_history(trace);
  EXPECT_DOUBLE_EQ(memory_moment(history, 50).fragmentation(), 0.5) << "a hole before and one behind the second block";
}

TEST(KernelTable, GraphsRecordedAsAWholeHaveRows) {
  Made made;
  made.trace.ops.push_back({"fc1", "", "fc1", "forward", Meaning::Matrix, 0, 0});
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 0, 100, "gemm");
  for (int i = 1; i <= 3; ++i)
    made.add(TrackKind::GraphLaunches, SpanKind::GraphRun, Meaning::Launch, i * 1000, i * 1000 + 300, "graph 7");
  made.add(TrackKind::CpuThread, SpanKind::Op, Meaning::Matrix, 0, 50, "mark of the capture");
  for (const GroupBy by : {GroupBy::Name, GroupBy::Op, GroupBy::Layer}) {
    const auto rows = work_table(made.trace, -kAlways, kAlways, by);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].kind, SpanKind::GraphRun);
    EXPECT_EQ(rows[0].key, "graph 7");
    EXPECT_EQ(rows[0].time.count, 3u);
    EXPECT_DOUBLE_EQ(rows[0].share, 0.9);
    EXPECT_DOUBLE_EQ(rows[1].share, 0.1);
  }
  const TraceStats stats = trace_stats(made.trace);
  EXPECT_EQ(stats.kernels, 1u);
  EXPECT_EQ(stats.graphs, 3u);
  EXPECT_TRUE(stats.cpu_ops.empty());
  EXPECT_NE(to_text(stats).find("graph 7 · whole graph"), std::string::npos) << to_text(stats);
  const std::string json = to_json(stats);
  EXPECT_LT(json.find("gemm"), json.find("\"graphs\"")) << "by_name holds kernels alone";
  EXPECT_GT(json.find("graph 7"), json.find("\"graphs\""));
}

TEST(KernelTable, MarksOfTheHostAreNoWorkOfAGpu) {
  Made made;
  made.add(TrackKind::CpuThread, SpanKind::Op, Meaning::Matrix, 0, 50, "mark");
  EXPECT_EQ(work_table(made.trace, -kAlways, kAlways).size(), 1u) << "a run of the CPU";
  made.add(TrackKind::Api, SpanKind::Alloc, Meaning::Allocation, 0, 50, "cudaMalloc");
  EXPECT_TRUE(work_table(made.trace, -kAlways, kAlways).empty());
}

TEST(RunStats, SayWhereAStepWentAndWhatLimitsAKernel) {
  RunData run;
  run.trace = std::move(MadeTrace(100).trace);
  run.summary.device = "NVIDIA H200";
  run.allocations = {{.step = 1, .op = 1, .allocations = 2, .frees = 1, .time_ns = 9000, .bytes = 4'000'000},
                     {.step = 4, .op = 1, .async_allocations = 1, .async_frees = 2, .time_ns = 3000},
                     {.step = 0, .op = 0, .host_allocations = 5, .time_ns = 1000}};
  const TraceStats stats = run_stats(run);
  ASSERT_TRUE(stats.step.traced());
  const std::string text = to_text(stats);
  for (const char* said : {"matrix product", "step time, their sum", "GPU busy", "launch delay", "100 %",
                           "allocator calls of", "all steps", "peak live", "blocks of"})
    EXPECT_NE(text.find(said), std::string::npos) << said << " is missing in\n" << text;
  EXPECT_EQ(stats.calls.all().calls(), 11u);
  EXPECT_EQ(stats.calls.in_steps().calls(), 6u);
  const std::string wide = to_text(stats, {"min", "sigma", "p999"});
  EXPECT_NE(wide.find("P99.9"), std::string::npos);
  EXPECT_EQ(wide.find("median µs"), std::string::npos);
  EXPECT_THROW(to_text(stats, {"colour"}), Failure);
  const std::string by_layer = to_text(run_stats(run, GroupBy::Layer), {"registers", "occupancy"});
  EXPECT_NE(by_layer.find("32* "), std::string::npos) << "one row of twenty shapes says so\n" << by_layer;
  EXPECT_NE(by_layer.find("* Of the first of several shapes"), std::string::npos) << by_layer;
  RunData unknown;
  unknown.trace = std::move(MadeTrace(3).trace);
  EXPECT_EQ(to_text(run_stats(unknown)).find("occupancy"), std::string::npos) << "no guess about a card";
}

// An arena reports its block only. "0 B live" would be wrong: the plan places buffers in it.
TEST(RunStats, AnArenaIsPlanned) {
  RunData run;
  run.trace = std::move(MadeTrace(3).trace);
  run.trace.memory_sources = {"arena"};
  run.trace.drop_points();
  run.trace.append_memory({10, 0x1000, 440'115, 0, 0, MemoryAction::Reserve, 0});
  const TraceStats stats = run_stats(run);
  const std::string text = to_text(stats);
  EXPECT_NE(text.find("arena: reserves 429.8 KiB before the first step and allocates nothing while training."), std::string::npos) << text;
  EXPECT_EQ(text.find(" 0 B"), std::string::npos) << text;
  EXPECT_NE(to_json(stats).find("\"peak_live\": null"), std::string::npos) << to_json(stats);
}

TEST(AllocatorHistory, StaysExactWhenItGrowsCoarse) {
  AllocatorHistory history;
  for (uint32_t step = 1; step <= 10'000; ++step)
    history.take(
        StepAllocations{.step = step, .op = static_cast<OpTag>(step % 3), .allocations = 2, .frees = 1, .time_ns = 10});
  EXPECT_EQ(history.steps_each(), 4);
  EXPECT_EQ(history.by_step().size(), 2500u);
  uint64_t calls = 0;
  for (const CallSums& entry : history.by_step()) {
    calls += entry.calls();
    EXPECT_EQ(entry.calls(), 12u);
  }
  EXPECT_EQ(calls, 30'000u);
  EXPECT_EQ(history.all().ns, 100'000);
  EXPECT_EQ(history.by_op().size(), 3u);
  const std::string text = allocator_text(Trace(), history, 20'000);
  EXPECT_NE(text.find("10016–19999"), std::string::npos) << "steps without a call have a row together";
  EXPECT_NE(text.find("1.00        0.50"), std::string::npos) << text;
}

}  // namespace
}  // namespace ws::prof
