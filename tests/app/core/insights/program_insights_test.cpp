// A planted wait for data, .item() and hot line are each named with their line, before anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/core/insights/predicted_savings.h"
#include "app/core/insights/trace_insights.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/text.h"
#include "profiling/trace/code_places.h"

namespace ws::app {
namespace {

using namespace prof;
using testing::HasSubstr;
constexpr TimeNs kMillisecond = 1'000'000;

// Steps of 10 ms after a start of a second; a kernel of 4 ms in each.
class Recorded : public ::testing::Test {
 protected:
  Recorded() {
    for (int step = 0; step < 20; ++step) {
      add("steps", TrackKind::Steps, SpanKind::Step, start(step), 10 * kMillisecond, "step", kNoOp);
      add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(step) + 6 * kMillisecond, 4 * kMillisecond, "gemm", kNoOp);
    }
    sample(0, 1000 * kMillisecond, "slow_import (train.py:1)");
  }
  static TimeNs start(int step) { return 1000 * kMillisecond + step * 10 * kMillisecond; }
  OpTag op(const char* name, const char* phase, const char* line) {
    trace.ops.push_back({name, "", "", phase, Meaning::Other, 0, 0, stack_from_text(line)});
    return static_cast<OpTag>(trace.ops.size() - 1);
  }
  void add(const char* row, TrackKind kind, SpanKind what, TimeNs begin, TimeNs length, const char* name, OpTag tag) {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(length), span.op = tag;
    span.kind = static_cast<uint64_t>(what), span.name = trace.intern(name);
    trace.append(trace.track(kind, row, kind == TrackKind::Stream ? "GPU 0" : "CPU"), span);
  }
  void range(TimeNs begin, TimeNs length, OpTag tag) {
    add("thread 5 ranges", TrackKind::Ranges, SpanKind::Phase, begin, length, "range", tag);
  }
  void call(TimeNs begin, TimeNs length, const char* name, SpanKind kind, OpTag tag) {
    add("thread 5 calls", TrackKind::Api, kind, begin, length, name, tag);
  }
  void sample(TimeNs begin, TimeNs length, const char* stack) {
    add("samples of MainThread", TrackKind::Samples, SpanKind::Other, begin, length, stack, kNoOp);
  }
  Insight first() {
    const std::vector<Insight> all = trace_insights(look_of(trace));
    return all.empty() ? Insight{} : all.front();
  }
  Trace trace;
};

TEST_F(Recorded, AStepThatWaitsForDataReportsWhoIsSlow) {
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 5 * kMillisecond, wait);
    sample(start(step) + kMillisecond, 4 * kMillisecond, "sleep (/usr/lib/python3.11/x.py:3) < __getitem__ (data.py:7) < __next__ (/usr/lib/python3/dist-packages/torch/d.py:9) < main (train.py:22)");
  }
  const Insight found = first();
  EXPECT_EQ(found.rule, "waits for data");
  EXPECT_THAT(found.headline, HasSubstr("5.00 ms of the median step"));
  EXPECT_THAT(found.why, HasSubstr("data.py:7 in __getitem__"));
  ASSERT_TRUE(found.place);
  EXPECT_EQ(found.place->span.op, wait);
}

TEST_F(Recorded, WithoutSamplesTheLoopIsNamed) {
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  for (int step = 0; step < 20; ++step) range(start(step), 5 * kMillisecond, wait);
  EXPECT_THAT(first().why, HasSubstr("taken at train.py:22 in main"));
}

TEST_F(Recorded, SoManyWorkersAreNamedThatABatchIsReadyInTime) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  for (int step = 0; step < 20; ++step) {  // a batch takes 7.8 ms, the rest of a step 2.2 ms
    add("steps", TrackKind::Steps, SpanKind::Step, start(step), 10 * kMillisecond, "step", kNoOp);
    range(start(step), 7'800'000, wait);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(step) + 7'800'000, 2'200'000, "sgemm", kNoOp);
  }
  EXPECT_THAT(first().how, HasSubstr("`DataLoader(num_workers=0)` → `DataLoader(num_workers=4)`"));
}

TEST_F(Recorded, TheLineThatCallsItemIsNamed) {
  const OpTag item = op(".item()", "sync", "train.py:52 in main"), other = op(".cpu()", "sync", "train.py:60 in main");
  for (int step = 0; step < 20; ++step) range(start(step), 3 * kMillisecond, item);
  range(start(3) + 5 * kMillisecond, kMillisecond, other);
  const Insight found = first();
  EXPECT_EQ(found.rule, "sync at this line");
  EXPECT_EQ(found.headline, "train.py:52 in main calls .item(): its syncs take 3.00 ms of the median step");
}

// The host runs ahead and waits now and then, and the GPU has work all the time.
TEST_F(Recorded, AWaitBesideABusyGpuIsNotReported) {
  const OpTag item = op(".item()", "sync", "train.py:52 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 3 * kMillisecond, item);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(step), 9'800'000, "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8", kNoOp);
  }
  std::map<std::string, std::string> said;
  for (const Insight& found : program_insights(look_of(trace))) said[found.rule] = found.headline;
  EXPECT_FALSE(said.contains("sync at this line"));
  EXPECT_EQ(said["fp32 products"], "matrix products in fp32 take 98 % of the median step");
}

TEST_F(Recorded, ALineThatWaitsIsNotHot) {
  const OpTag item = op(".item()", "sync", "train.py:52 in main"), reads = op("aten::_local_scalar_dense", "", "train.py:60 in main");
  const OpTag read = op("aten::_local_scalar_dense", "", "train.py:52 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 3 * kMillisecond, item);
    call(start(step) + 100'000, 2'800'000, "cudaStreamSynchronize", SpanKind::Sync, read);
    sample(start(step) + 10'000, 2'900'000, "cudaStreamSynchronize (libcudart.so.12) < main (train.py:52)");
    call(start(step) + 4 * kMillisecond, 2 * kMillisecond, "cudaStreamSynchronize", SpanKind::Sync, reads);
    sample(start(step) + 4 * kMillisecond, 4 * kMillisecond, "main (train.py:60)");
  }
  std::map<std::string, std::string> said;
  for (const Insight& insight : trace_insights(look_of(trace))) said[insight.rule] += insight.headline;
  EXPECT_EQ(said["sync at this line"], "train.py:52 in main calls .item(): its syncs take 3.00 ms of the median step");
  EXPECT_EQ(said["hot line"], "train.py:60 in main takes 20 % of the median step") << "without its wait";
}

// What a recording on a GPU has: the range of .item(), and in it the copy and the wait of CUDA.
TEST_F(Recorded, ItemOfATensorOnTheCpuIsNoWait) {
  const OpTag cpu = op(".item()", "sync", "train.py:39 in main"), gpu = op(".item()", "sync", "train.py:52 in main");
  const OpTag reads = op("aten::_local_scalar_dense", "", "train.py:52 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 3 * kMillisecond, cpu);
    range(start(step) + 4 * kMillisecond, kMillisecond, gpu);
    call(start(step) + 4 * kMillisecond + 10'000, 900'000, "cudaMemcpyAsync", SpanKind::Copy, reads);
    call(start(step) + 4 * kMillisecond + 912'000, 50'000, "cudaStreamSynchronize", SpanKind::Sync, reads);
  }
  EXPECT_EQ(first().headline, "train.py:52 in main calls .item(): its syncs take 1.00 ms of the median step");
}

TEST_F(Recorded, AWaitThatNoCallOfPythonNamesHasTheLineOfItsOp) {
  const OpTag reads = op("aten::_local_scalar_dense", "", "train.py:60 in main"), copies = op("aten::copy_", "", "train.py:35 in main");
  for (int step = 0; step < 20; ++step) {
    call(start(step), 100'000, "cudaMemcpyAsync", SpanKind::Copy, copies);
    call(start(step) + 101'000, 500'000, "cudaStreamSynchronize", SpanKind::Sync, copies);
    call(start(step) + 2 * kMillisecond, kMillisecond, "cudaMemcpyAsync", SpanKind::Copy, reads);
    call(start(step) + 3 * kMillisecond + 1000, 2 * kMillisecond, "cudaStreamSynchronize", SpanKind::Sync, reads);
    call(start(step) + 6 * kMillisecond, kMillisecond, "cudaStreamWaitEvent", SpanKind::Api, reads);  // the host does not wait
  }
  EXPECT_EQ(first().headline, "train.py:60 in main reads a value from the GPU: its syncs take 3.00 ms of the median step");
}

// The wait that ends an epoch brings no batch. The card says what the split of a step says.
TEST_F(Recorded, AWaitForDataIsAsLongAsInTheSplit) {
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 3 * kMillisecond, wait);
    if (step % 4 == 3) range(start(step) + 4 * kMillisecond, kMillisecond, wait);
    range(start(step) + 7 * kMillisecond, 2 * kMillisecond, wait);  // the GPU works meanwhile
  }
  const StepSample split = StepsOfRun::of(trace).sample();
  const auto parts = parts_of(split.parts);
  const auto data = std::ranges::find(parts, PartKind::HostData, [](const auto& part) { return part.id.kind; });
  ASSERT_NE(data, parts.end());
  const double us = static_cast<double>(data->ns) * 1e-3 / static_cast<double>(split.parts.steps);
  EXPECT_NEAR(us, 3250, 50);
  EXPECT_EQ(first().headline, "the step waits for data: " + time_text(us) + " of the median step");
  EXPECT_NEAR(first().share, 0.32, 0.01);
  EXPECT_EQ(first().part, prof::PartKind::HostData);
}

// Details shows the median step. Each tenth step is slow and waits for no data: the mean step waits for a smaller share.
TEST_F(Recorded, AWaitForDataIsOfTheMedianStep) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  TimeNs at = 0;
  for (int step = 0; step < 40; ++step) {
    const TimeNs length = (step % 10 == 9 ? 30 : 10) * kMillisecond;
    add("steps", TrackKind::Steps, SpanKind::Step, at, length, "step", kNoOp);
    range(at, 4 * kMillisecond, wait);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, at + 5 * kMillisecond, length - 5 * kMillisecond, "gemm", kNoOp);
    at += length;
  }
  const StepSample split = StepsOfRun::of(trace).sample();
  EXPECT_NEAR(split.median_step_us(), 10'000, 10);
  EXPECT_GT(split.mean_step_us(), 11'000);
  EXPECT_EQ(first().headline, "the step waits for data: 4.00 ms of the median step");
}

// The median step does not wait where only each fourth step does.
TEST_F(Recorded, FewStepsThatWaitAreSeenInTheMeanStep) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  TimeNs at = 0;
  for (int step = 0; step < 41; ++step) {
    const TimeNs waits = step % 4 == 3 ? 10 * kMillisecond : 0;
    add("steps", TrackKind::Steps, SpanKind::Step, at, waits + 10 * kMillisecond, "step", kNoOp);
    if (waits > 0) range(at, waits, wait);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, at + waits, 10 * kMillisecond, "gemm", kNoOp);
    at += waits + 10 * kMillisecond;
  }
  EXPECT_EQ(first().headline, "the step waits for data: 2.50 ms of the mean step");
}

// Without steps, as where a model is only evaluated, there is no split.
TEST_F(Recorded, WithoutStepsAWaitBelongsToABatch) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag wait = op("wait for data", "data", "evaluate.py:22 in main");
  for (int batch = 0; batch < 20; ++batch) {
    range(start(batch), 3 * kMillisecond, wait);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(batch) + 6 * kMillisecond, 4 * kMillisecond, "gemm", kNoOp);
  }
  EXPECT_EQ(first().headline, "the step waits for data: 3.00 ms a batch");
}

// record --trace-window: calls and kernels are known in the windows only, here in every fifth step; ranges always.
TEST_F(Recorded, SharesAreOfTheTracedTime) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag item = op(".item()", "sync", "train.py:52 in main"), reads = op("aten::_local_scalar_dense", "", "train.py:52 in main");
  const OpTag wait = op("wait for data", "data", "train.py:22 in main");
  for (int step = 0; step < 20; ++step) {
    add("steps", TrackKind::Steps, SpanKind::Step, start(step), 10 * kMillisecond, "step", kNoOp);
    range(start(step), kMillisecond, wait);
    range(start(step) + kMillisecond, 3 * kMillisecond, item);
    if (step % 5 == 0) {
      call(start(step) + kMillisecond, 2'900'000, "cudaStreamSynchronize", SpanKind::Sync, reads);
      add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(step) + 6 * kMillisecond, 4 * kMillisecond, "sgemm", kNoOp);
    } else {
      add(kUntracedTrack, TrackKind::Untraced, SpanKind::Overhead, start(step), 10 * kMillisecond, "untraced on purpose", kNoOp);
    }
  }
  std::map<std::string, std::string> said;
  for (const Insight& insight : trace_insights(look_of(trace))) said[insight.rule] = insight.headline;
  EXPECT_EQ(said["sync at this line"], "train.py:52 in main calls .item(): its syncs take 3.00 ms of the median step");
  EXPECT_EQ(said["waits for data"], "the step waits for data: 1.00 ms of the median step");
  EXPECT_EQ(said["fp32 products"], "matrix products in fp32 take 40 % of the median step");
  EXPECT_EQ(said["idle GPU"], "beside its waits for data, the GPU is idle for 50 % of the median step");
  EXPECT_EQ(said["slowest gap"], "") << "nobody knows what was between two windows";
}

// A line may wait between the windows only, for example in an evaluation every 5 s.
TEST_F(Recorded, AWaitThatNoWindowSawIsNamed) {
  const OpTag item = op(".item()", "sync", "train.py:70 in evaluate"), cpu = op(".item()", "sync", "train.py:39 in main"),
              list = op(".tolist()", "sync", "train.py:40 in main"), reads = op("aten::mm", "", "train.py:5 in main");
  for (int step = 0; step < 20; ++step) {
    range(start(step), 20'000, cpu);  // reads a value of the CPU
    if (step % 5 == 0) {
      call(start(step) + 6 * kMillisecond, 1000, "cudaStreamSynchronize", SpanKind::Sync, reads);
      continue;
    }
    add(kUntracedTrack, TrackKind::Untraced, SpanKind::Overhead, start(step), 10 * kMillisecond, "untraced on purpose", kNoOp);
    range(start(step) + kMillisecond, 3 * kMillisecond, list);
    if (step % 5 == 4) range(start(step) + 4 * kMillisecond, 4 * kMillisecond, item);
  }
  EXPECT_EQ(first().headline,
            "train.py:70 in evaluate calls .item(): its syncs take 4.00 ms each time, between trace windows");
}

// On an H100 the first step of a small program took as long as a hundred others.
TEST_F(Recorded, WarmUpIsNotJudged) {
  Trace recorded;
  std::swap(trace, recorded);
  const OpTag item = op(".item()", "sync", "train.py:52 in main");
  add("steps", TrackKind::Steps, SpanKind::Step, 0, start(0), "step", kNoOp);
  for (int step = 0; step < 20; ++step) {
    add("steps", TrackKind::Steps, SpanKind::Step, start(step), 10 * kMillisecond, "step", kNoOp);
    range(start(step), 3 * kMillisecond, item);
    add("stream 7", TrackKind::Stream, SpanKind::Kernel, start(step) + 6 * kMillisecond, 4 * kMillisecond, "gemm", kNoOp);
  }
  EXPECT_THAT(first().headline, HasSubstr("its syncs take 3.00 ms of the median step"));
  std::map<std::string, std::string> said;
  for (const Insight& insight : trace_insights(look_of(trace))) said[insight.rule] = insight.headline;
  EXPECT_EQ(said["idle GPU"], "the GPU is idle for 60 % of the median step");
  EXPECT_EQ(said["slowest gap"], "") << "the start of the program is no gap";
}

TEST_F(Recorded, ALineOfPythonThatTakesLongIsNamed) {
  for (int step = 0; step < 20; ++step) {
    sample(start(step), 2 * kMillisecond, "augment (train.py:12) < main (train.py:20)");
    const char* const inside = "at::native::add (libtorch_cpu.so) < ? (libtorch_python.so) < augment (train.py:12) < main (train.py:20)";
    sample(start(step) + 2 * kMillisecond, 2 * kMillisecond, step % 2 ? inside : "main::x (trainer) < augment (train.py:12) < main (train.py:20)");
    sample(start(step) + 4 * kMillisecond, 5 * kMillisecond, "backward (/usr/lib/python3/dist-packages/torch/t.py:5) < main (train.py:24)");
  }
  const Insight found = first();
  EXPECT_EQ(found.rule, "hot line");
  EXPECT_THAT(found.headline, HasSubstr("train.py:12 in augment takes 40 % of the median step"));
}

TEST_F(Recorded, ALineThatKeepsMemoryIsNamedFirst) {
  const OpTag keeps = op("aten::addmm", "forward", "train.py:31 in main"),
              uses = op("aten::relu", "forward", "train.py:30 in main");
  const OpTag item = op(".item()", "sync", "train.py:52 in main");
  trace.memory_sources = {"torch"};
  const auto event = [&](TimeNs time, uint64_t address, uint64_t bytes, OpTag tag, MemoryAction action) {
    trace.append_memory(MemoryEvent{time, address, bytes, 1, tag, action, 0});
  };
  for (int step = 0; step < 20; ++step) {
    range(start(step), 3 * kMillisecond, item);
    event(start(step) + 1, 1000 + static_cast<uint64_t>(step), 4 << 20, keeps, MemoryAction::Allocate);
    event(start(step) + 2, 1, 64 << 20, uses, MemoryAction::Allocate);
    event(start(step) + 3, 1, 64 << 20, uses, MemoryAction::Free);
  }
  const Insight found = first();
  EXPECT_EQ(found.rule, "memory grows");
  EXPECT_THAT(found.headline, HasSubstr("train.py:31 in main keeps 4.00 MiB more each step"));
}

TEST_F(Recorded, WarmUpIsNoLeak) {
  const OpTag warm = op("aten::addmm", "forward", "train.py:31 in main");
  trace.memory_sources = {"torch"};
  for (uint64_t block = 0; block < 8; ++block)  // what the first steps take stays, as in any pool
    trace.append_memory(
        MemoryEvent{start(static_cast<int>(block / 4)) + 1, 1000 + block, 4 << 20, 1, warm, MemoryAction::Allocate, 0});
  for (const Insight& found : program_insights(look_of(trace))) EXPECT_NE(found.rule, "memory grows");
}

TEST_F(Recorded, CopiesAndKernelsThatPytorchCanAvoidAreNamed) {
  const OpTag copy = op("aten::copy_", "data", "train.py:20 in main"), update = op("aten::addcdiv_", "optimizer", "");
  Detail detail;
  detail.bytes = 4 << 20, detail.copy_kind = "pageable → device";
  const DetailId pageable = trace.intern(detail);
  for (int step = 0; step < 20; ++step) {
    Span span;
    span.start = start(step), span.duration = 2 * kMillisecond, span.op = copy, span.detail = pageable;
    span.kind = static_cast<uint64_t>(SpanKind::Copy), span.name = trace.intern("HtoD");
    trace.append(trace.track(TrackKind::Stream, "stream 13", "GPU 0"), span);
    for (int k = 0; k < 40; ++k)
      add("stream 8", TrackKind::Stream, SpanKind::Kernel, start(step) + k * 100'000, 20'000, "multi_tensor", update);
    add("stream 9", TrackKind::Stream, SpanKind::Kernel, start(step), 5 * kMillisecond, "ampere_sgemm_128x64_nn",
        kNoOp);
  }
  std::map<std::string, std::string> said;
  for (const Insight& found : program_insights(look_of(trace))) said[found.rule] = found.headline + " " + found.why + " " + saving_text(found, 0);
  EXPECT_THAT(said["pageable copies"],
              HasSubstr("train.py:20 in main copies from pageable memory: 2.00 ms of the median step"));
  EXPECT_THAT(said["pageable copies"], HasSubstr("up to 2.00 ms less"));
  EXPECT_THAT(said["many kernels of the optimizer"], HasSubstr("launches 40 kernels per step"));
  EXPECT_THAT(said["fp32 products"], HasSubstr("50 % of the median step"));
}

// What PyTorch can leave out: each card has its gain, and the line and span where it is.
TEST_F(Recorded, ZeroedGradientsTransposedImagesAndPointwiseChainsHaveTheirGain) {
  const OpTag zero = op("aten::zero_", "", "train.py:30 in step > /usr/lib/python3/dist-packages/torch/optim/optimizer.py:90 in Optimizer.zero_grad < train.py:50 in main");
  const OpTag other_zero = op("aten::zero_", "", "train.py:33 in masks < train.py:50 in main");
  const OpTag sum = op("aten::add_", "backward", ""), convolution = op("aten::conv2d", "forward", "net.py:8 in forward < train.py:50 in main");
  const OpTag act = op("aten::gelu", "forward", "net.py:12 in forward < train.py:50 in main");
  const auto kernel = [this](const char* row, TimeNs begin, TimeNs length, const char* name, OpTag tag, Meaning meaning) {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(length), span.op = tag, span.name = trace.intern(name);
    span.kind = static_cast<uint64_t>(SpanKind::Kernel), span.meaning = static_cast<uint64_t>(meaning);
    trace.append(trace.track(TrackKind::Stream, row, "GPU 0"), span);
  };
  for (int step = 0; step < 20; ++step) {
    add("stream 8", TrackKind::Stream, SpanKind::Memset, start(step), 400'000, "memset", zero);
    add("stream 8", TrackKind::Stream, SpanKind::Memset, start(step) + 500'000, 5 * kMillisecond, "memset", other_zero);
    kernel("stream 8", start(step) + 6 * kMillisecond, 300'000, "add", sum, Meaning::Other);
    kernel("stream 9", start(step), kMillisecond, "void cudnn::engines_precompiled::nchwToNhwcKernel<float>", convolution, Meaning::Other);
    for (int k = 0; k < 4; ++k)  // 300 µs each with 10 µs between them
      kernel("stream 10", start(step) + k * 310'000, 300'000, "elementwise", act, Meaning::Pointwise);
    kernel("stream 10", start(step) + 5 * kMillisecond, 2 * kMillisecond, "elementwise", act, Meaning::Pointwise);  // alone
  }
  std::map<std::string, Insight> said;
  for (const Insight& found : program_insights(look_of(trace))) said[found.rule] = found;
  EXPECT_THAT(said["zeroed gradients"].headline, HasSubstr("at train.py:30 in step, and the backward pass adds to them: 0.70 ms of the median step"));
  EXPECT_NEAR(said["zeroed gradients"].at_most_us, 700, 0.05);
  EXPECT_THAT(said["channels last"].headline, HasSubstr("1.00 ms of the median step"));
  EXPECT_THAT(said["channels last"].why, HasSubstr("Most of it is net.py:8 in forward"));
  EXPECT_THAT(said["pointwise chains"].headline, HasSubstr("4 pointwise kernels per step run in chains"));
  EXPECT_THAT(said["pointwise chains"].why, HasSubstr("net.py:12 in forward"));
  ASSERT_TRUE(said["pointwise chains"].place);
  EXPECT_EQ(said["pointwise chains"].place->span.op, act);
  kernel("stream 11", start(3), 1000, "triton_poi_fused_gelu_0", act, Meaning::Other);
  for (const Insight& found : program_insights(look_of(trace))) EXPECT_NE(found.rule, "pointwise chains") << "it is compiled already";
}

TEST_F(Recorded, WhatIsShortOrBeforeTheStepsIsNotSaid) {
  range(start(0), kMillisecond, op("wait for data", "data", "train.py:22 in main"));
  range(start(0), kMillisecond, op(".item()", "sync", "train.py:52 in main"));
  EXPECT_TRUE(program_insights(look_of(trace)).empty());
  EXPECT_TRUE(program_insights(look_of(Trace{})).empty());
}

}  // namespace
}  // namespace ws::app
