#include "profiling/analysis/waterfall.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "profiling/analysis/kernel_table.h"
#include "profiling/analysis/pace.h"
#include "tests/profiling/trace/made_spans.h"
#include "tests/profiling/trace/made_trace.h"

namespace ws::prof {
namespace {

constexpr Meaning kKernels[] = {Meaning::Matrix, Meaning::Pointwise, Meaning::Loss, Meaning::Optimizer, Meaning::Other};

StepSample random_sample(std::mt19937& random) {
  StepSample sample;
  sample.median_parts.steps = 1 + random() % 997;
  for (const Meaning meaning : {Meaning::Copy, Meaning::Allocation, Meaning::Sync, Meaning::Launch, Meaning::Idle})
    sample.median_parts.times[static_cast<size_t>(meaning)] = random() % 100'000'000;
  sample.median_parts.busy = random() % 2;
  for (HostGap& gap : sample.median_parts.gaps)
    gap = {sample.median_parts.times[static_cast<size_t>(Meaning::Launch)] / 5, sample.median_parts.times[static_cast<size_t>(Meaning::Idle)] / 7};
  for (const Meaning meaning : kKernels)
    for (unsigned op = random() % 6; op > 0; --op) {
      const auto ns = static_cast<int64_t>(random() % 10'000'000);
      const std::string name = (random() % 4 ? "op " : "") + std::string("work ") + std::to_string(random() % 12);
      sample.op_parts[{meaning, name}] += ns;
      sample.median_parts.times[static_cast<size_t>(meaning)] += ns;
    }
  return sample;
}

int64_t change(const Waterfall& w) {
  int64_t delta = 0;
  for (const Cause& cause : w.causes) delta += cause.delta_ps();
  return delta;
}

bool busy(const Cause& cause) {
  return cause.kind == PartKind::OfMeaning && std::ranges::count(kKernels, cause.meaning) > 0;
}

TEST(Waterfall, CausesSumToTheDifferenceExactly) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    Breakdown a, b;
    a.steps = 1 + random() % 997;
    b.steps = 1 + random() % 997;
    for (size_t m = 0; m < kMeanings; ++m) a.times[m] = random() % 100000000, b.times[m] = random() % 100000000;
    const Waterfall w = waterfall(a, b);
    int64_t delta = 0;
    for (const Cause& cause : w.causes) delta += cause.delta_ps();
    EXPECT_EQ(delta, w.b_ps - w.a_ps);
    EXPECT_EQ(w.a_ps, sum(a.times) * 1000 / a.steps);
  }
}

std::string names_of(const std::vector<BreakdownPart>& parts) {
  std::string text;
  for (const BreakdownPart& part : parts) text += part_name(part.id) + (" " + std::to_string(part.ns)) + "; ";
  return text;
}

int64_t& gap(Breakdown& b, HostWork work, bool launch) {
  HostGap& gap = b.gaps[static_cast<size_t>(work)];
  return launch ? gap.launch : gap.idle;
}

// Waiting for data is a cause of its own. What else the host does is one only if nothing else is known of the step.
TEST(Waterfall, NamesWhatTheHostDid) {
  Breakdown gpu;
  gpu.steps = 2, gpu.end = 1000, gpu.busy = 500;
  gpu.times[static_cast<size_t>(Meaning::Matrix)] = 500;
  gpu.times[static_cast<size_t>(Meaning::Launch)] = 300, gap(gpu, HostWork::Data, true) = 90;
  gpu.times[static_cast<size_t>(Meaning::Idle)] = 200, gap(gpu, HostWork::Data, false) = 150;
  gap(gpu, HostWork::Forward, true) = 200;
  EXPECT_EQ(names_of(parts_of(gpu)), "matrix product 500; launch gaps 210; waits for data 240; idle 50; ");

  Breakdown cpu;
  cpu.steps = 1, cpu.end = 1000;
  cpu.times[static_cast<size_t>(Meaning::Idle)] = 1000;
  EXPECT_EQ(names_of(parts_of(cpu)), "idle 1000; ") << "nothing is known of the host";
  gap(cpu, HostWork::Forward, false) = 400, gap(cpu, HostWork::Backward, false) = 300;
  gap(cpu, HostWork::Data, false) = 200;
  EXPECT_EQ(names_of(parts_of(cpu)),
            "forward (CPU) 400; backward (CPU) 300; waits for data 200; other CPU work 100; ");

  const Waterfall w = waterfall(cpu, gpu);
  EXPECT_EQ(change(w), w.b_ps - w.a_ps);
  const auto data = std::ranges::find(w.causes, PartKind::HostData, &Cause::kind);
  ASSERT_NE(data, w.causes.end());
  EXPECT_EQ(data->delta_ps(), 120'000 - 200'000);
  EXPECT_EQ(cause_name(*data), "waits for data");
}

TEST(Waterfall, DriverCallsOfRecordedAndOwnRunsAreTheSameThing) {
  RunSummary own, recorded, other;
  own.extra["driver_calls_per_step"] = "40";
  own.allocator_calls_per_step = 44;
  recorded.origin = "record", recorded.steps = 10, recorded.allocator_calls_per_step = 12;
  EXPECT_DOUBLE_EQ(driver_calls_per_step(own), 40);
  EXPECT_DOUBLE_EQ(driver_calls_per_step(recorded), 12);
  EXPECT_TRUE(std::isnan(driver_calls_per_step(other)));
}

// Not within a tenth of a percent: to the ps, however the ops round, and all that is no kernel as by kind.
TEST(Waterfall, CausesByOpSumToTheSameDifference) {
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const StepSample a = random_sample(random), b = random_sample(random);
    const Waterfall kinds = waterfall(a.median_parts, b.median_parts), ops = waterfall_by_op(a, b);
    EXPECT_EQ(ops.a_ps, kinds.a_ps);
    EXPECT_EQ(ops.b_ps, kinds.b_ps);
    EXPECT_EQ(change(ops), kinds.b_ps - kinds.a_ps);
    int64_t by_kind = 0, by_op = 0;
    std::map<std::string, int64_t> rest;
    for (const Cause& cause : kinds.causes)
      busy(cause) ? by_kind += cause.a_ps : rest[cause_name(cause)] = cause.delta_ps();
    for (const Cause& cause : ops.causes) {
      if (cause.op.empty()) {
        EXPECT_EQ(cause.delta_ps(), rest[cause_name(cause)]) << cause_name(cause);
      } else {
        by_op += cause.a_ps;
      }
    }
    EXPECT_EQ(by_op, by_kind);
    for (const size_t most : {0U, 1U, 3U, 50U}) {
      const Waterfall few = folded(ops, most);
      EXPECT_EQ(change(few), change(ops));
      const auto bars = std::ranges::count_if(few.causes, [](const Cause& cause) { return !cause.op.empty(); });
      EXPECT_LE(static_cast<size_t>(bars), most + 1);
    }
  }
}

TEST(Waterfall, RoundedChangesAreDifferencesOfThePrintedTimes) {
  Waterfall w{10'290, 5'020, {{Meaning::Loss, 1'120, 5'950}, {Meaning::Matrix, 9'170, -930}}};
  w = rounded(w, 100);
  EXPECT_EQ(w.a_ps, 10'300);
  EXPECT_EQ(w.b_ps, 5'000);
  EXPECT_EQ(w.causes[0].meaning, Meaning::Matrix);
  EXPECT_EQ(w.causes[1].a_ps, 1'100);
  EXPECT_EQ(w.causes[1].delta_ps(), 4'900) << "1.1 and 6.0, not 4.83";
}

TEST(Waterfall, SwappedOrWithItselfByOp) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const StepSample a = random_sample(random), b = random_sample(random);
    const Waterfall there = waterfall_by_op(a, b), back = waterfall_by_op(b, a);
    ASSERT_EQ(there.causes.size(), back.causes.size());
    for (size_t i = 0; i < there.causes.size(); ++i) {
      EXPECT_EQ(there.causes[i].op, back.causes[i].op);
      EXPECT_EQ(there.causes[i].delta_ps(), -back.causes[i].delta_ps());
    }
    for (const Cause& cause : waterfall_by_op(a, a).causes) EXPECT_EQ(cause.delta_ps(), 0) << cause_name(cause);
  }
}

TEST(Waterfall, OpsAreNamedAndTheSmallOnesAreOneBar) {
  StepSample a, b;
  a.median_parts.steps = b.median_parts.steps = 1;
  for (int op = 1; op <= 5; ++op) {
    b.op_parts[{Meaning::Matrix, "op dW" + std::to_string(op)}] = 100 * op;
    b.median_parts.times[0] += 100 * op;
  }
  b.op_parts[{Meaning::Other, "volta_sgemm"}] = 50;  // of a program whose ops are not known
  b.median_parts.times[static_cast<size_t>(Meaning::Other)] = 50;
  const Waterfall w = folded(waterfall_by_op(a, b), 2);
  ASSERT_EQ(w.causes.size(), 3u);
  EXPECT_EQ(cause_name(w.causes[0]), "dW5");
  EXPECT_EQ(cause_name(w.causes[1]), "dW4");
  EXPECT_EQ(cause_name(w.causes[2]), "4 other ops");
  EXPECT_EQ(w.causes[2].delta_ps(), 650'000);
  EXPECT_EQ(folded(waterfall_by_op(a, b), 5).causes.size(), 6u) << "one op alone keeps its name";
}

TEST(Waterfall, NamesThatAreNoSignatureStayWhole) {
  for (const char* name : {"graph 2", "copy pinned → device", "host waits for the stream", "memset"})
    EXPECT_EQ(short_kernel_name(name), name);
  EXPECT_EQ(short_kernel_name("void ws::cuda::relu(float*)"), "relu");
  EXPECT_EQ(short_kernel_name("unsigned int scan<int>(int*)"), "scan");
  EXPECT_EQ(short_kernel_name("void plain"), "plain");
  EXPECT_EQ(short_kernel_name("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(Params<int>)"), "gemvx::kernel");
  EXPECT_EQ(short_kernel_name("void kernel<4, float>(int)"), "kernel");
  // Symbols that no demangler reads.
  EXPECT_EQ(short_kernel_name("_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock22ImplicitG"),
            "ImplicitGemmConvolution");
  EXPECT_EQ(short_kernel_name("_Z4gemmILi3EXX"), "gemm");
  EXPECT_EQ(short_kernel_name("_ZN6KernelI"), "Kernel");
  EXPECT_EQ(short_kernel_name("_ZN99999"), "_ZN99999");
  EXPECT_EQ(short_kernel_name("_Z"), "_Z");
  EXPECT_EQ(short_kernel_name("ws::plain"), "plain");
  const std::string types = "sm80_xmma_gemm_f32f32_tf32f32_f32", rest = "_ffma_aligna4_alignc4_execute_kernel__5x_cublas";
  EXPECT_EQ(short_kernel_name(types + "_nn_n_tilesize64x32x8_stage3_warpsize2x2x1" + rest),
            "gemm 64x32x8 nn_n stage3_warpsize2x2x1 f32f32_tf32f32_f32 sm80");
  EXPECT_EQ(short_kernel_name("sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1_execute_split_k_kernel__5x_cudnn"),
            "wgrad 64x64x32 nhwckrsc_nhwc warpgroupsize1x1x1 split_k f32f32_tf32f32_f32 indexed_implicit_gemm sm90");
  EXPECT_EQ(short_kernel_name("sm90_xmma_gemm_tilesize"), "sm90_xmma_gemm_tilesize");
  EXPECT_EQ(short_kernel_name("sm90_xmma_gemm_nn_tilesize8"), "sm90_xmma_gemm_nn_tilesize8");
  EXPECT_EQ(short_kernel_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)"),
            "elementwise add");
  EXPECT_EQ(short_kernel_name("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>>>(R)"), "reduce MeanOps");
}

// Two kernels of a meaning at a time: the time counts once, for the one that began first.
TEST(PaceLog, StaysSmallWhateverTheTimes) {
  for (const double step_s : {0.0, 1e-6, std::numeric_limits<double>::quiet_NaN()}) {
    PaceLog log;
    for (int i = 0; i < 100'000; ++i) log.add({static_cast<double>(i), step_s * i});
    EXPECT_LE(log.seen().size(), 4096u) << step_s;
    EXPECT_EQ(log.seen().front().step, 0) << step_s;
  }
}

TEST(Waterfall, TimeOfKernelsThatOverlapIsCountedOnce) {
  Made made;
  made.trace.ops.push_back({"fc1", "", "", "", Meaning::Matrix});
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Matrix, 0, 100, "first");
  made.add(TrackKind::Copies, SpanKind::Kernel, Meaning::Matrix, 60, 150, "second");
  made.add(TrackKind::Stream, SpanKind::Kernel, Meaning::Pointwise, 140, 200, "third");
  made.add(TrackKind::Stream, SpanKind::Copy, Meaning::Copy, 210, 250, "copy");
  WorkTimes work;
  const Breakdown parts = breakdown(made.trace, 0, 300, &work);
  std::map<std::string, int64_t> ns;
  for (const auto& [id, time] : work) ns[made.trace.name(id.name)] = time;
  EXPECT_EQ(ns, (std::map<std::string, int64_t>{{"first", 100}, {"second", 50}, {"third", 50}}));
  EXPECT_EQ(part(parts, Meaning::Matrix), 150);
  EXPECT_EQ(parts.kernels(), 200);
}

double spread(const std::vector<Metric>& metrics) {
  PaceLog losses;
  for (const Metric& m : metrics) losses.add({static_cast<double>(m.step), m.wall_s});
  return mean_with_interval(pace_stretches_us(losses.seen())).half_width;
}

// A graph of many steps, a queue that is read now and then: losses come many at a time, which is no unrest.
TEST(Waterfall, LossesThatComeTogetherAreOneMeasurement) {
  std::vector<Metric> steady, bulks;
  for (int64_t step = 0; step < 4000; ++step) {
    const double wall = 1e-4 * static_cast<double>(step),
                 seen = 1e-4 * static_cast<double>(std::min<int64_t>((step / 64 + 1) * 64, 4000));
    steady.push_back({step, wall, 1, 1});
    bulks.push_back({step, seen + 1e-7 * static_cast<double>(step % 64), 1, 1});
  }
  EXPECT_LT(spread(steady), 0.01);
  EXPECT_LT(spread(bulks), 0.1);
  for (size_t i = 2000; i < bulks.size(); ++i) bulks[i].wall_s += 0.5e-4 * static_cast<double>(i / 64 - 31) * 64;
  EXPECT_GT(spread(bulks), 5) << "the second half takes half as long again";
}

}  // namespace
}  // namespace ws::prof
