// Every operation in every way on the GPU is right, and the pitfall is as wrong as it is said to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "app/core/kernels/kernel_check_process.h"
#include "app/core/lab/first_call.h"
#include "app/core/lab/recorded_lab.h"
#include "engine/cuda/runtime/faults.h"
#include "engine/devices/devices.h"
#include "engine/lab/lab.h"
#include "profiling/run_file/run_file.h"
#include "tests/support/gpu.h"
#include "tests/support/own_file.h"

namespace ws::lab {
namespace {

class LabOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_info().cuda) GTEST_SKIP() << device_info().why_not;
  }
};

LabResult sweep(LabSpec spec) {
  struct Quiet : LabSink {
  } sink;
  std::atomic<bool> cancel{false};
  spec.seconds_per_point = 0.05;
  if (test::slow_gpu()) spec.repeats = 3, spec.warm_up = 1, spec.longest_call_s = 600;
  return run_lab(spec, cancel, sink);
}

double tolerance(Way way) { return way == Way::GpuTf32 ? 2e-3 : way == Way::GpuFp16 ? 2e-3 : 2e-5; }

void expect_right_in_every_way(Operation operation, std::vector<int64_t> sizes) {
  LabSpec spec;
  spec.operation = operation;
  spec.sizes = std::move(sizes);
  for (Way way : ways_of(operation))
    if (way != Way::GpuCold) spec.ways.push_back(way);
  for (const LabPoint& p : sweep(spec).points) {
    EXPECT_TRUE(p.ok) << info(p.way).name << " " << p.size << ": " << p.note;
    EXPECT_LT(p.error, tolerance(p.way)) << to_string(operation) << " " << info(p.way).name << " " << p.size;
  }
}

TEST_F(LabOnGpu, EveryOperationInEveryWayIsRight) {
  for (Operation operation :
       {Operation::Sine, Operation::Add, Operation::Reduce, Operation::Softmax, Operation::Copy})
    expect_right_in_every_way(operation, {1, 3, 127, 1000, 1000003});
}

TEST_F(LabOnGpu, ProductsThroughTheLibraryAreRightInEveryWay) {
  expect_right_in_every_way(Operation::MatMul, {1, 3, 127, 1000});
}

// A call that fails costs its point, with a sentence; the sweep after it is right again.
void fail_calls_of(LabSpec spec) {
  spec.sizes = {65};
  spec.repeats = 3, spec.warm_up = 1;
  for (Way way : ways_of(spec.operation))
    if (info(way).gpu && way != Way::GpuCold) spec.ways.push_back(way);
  sweep(spec);  // what is made once for the process
  cuda::faults::fail_at(0);
  sweep(spec);
  const int64_t calls = cuda::faults::calls(), stride = 1 + calls / 150;
  ASSERT_GT(calls, 50);
  int64_t tried = 0, hit = 0;
  for (int64_t n = 1; n <= calls; n += stride, ++tried) {
    cuda::faults::fail_at(n, n % 2 ? cudaErrorUnknown : cudaErrorMemoryAllocation);
    for (const LabPoint& p : sweep(spec).points)
      EXPECT_TRUE(p.ok || p.note.size() > 10) << info(p.way).name << " after " << cuda::faults::last_hit();
    hit += !cuda::faults::last_hit().empty();
    cuda::faults::fail_at(0);
  }
  EXPECT_GT(hit * 10, tried * 7) << "few of the calls were made";  // how many a sweep makes hangs on its trials
  for (const LabPoint& p : sweep(spec).points) EXPECT_TRUE(p.ok) << info(p.way).name << ": " << p.note;
}

TEST_F(LabOnGpu, EveryCallFailsOnce) {
  for (Operation operation : {Operation::MatMul, Operation::Sine, Operation::Reduce}) {
    SCOPED_TRACE(std::string(to_string(operation)));
    LabSpec spec;
    spec.operation = operation;
    fail_calls_of(spec);
  }
}

TEST_F(LabOnGpu, UnsynchronisedReadsTheLaunchOnly) {
  LabSpec spec;
  spec.sizes = {4096};
  spec.ways = {Way::GpuResident, Way::GpuUnsynced};
  const LabResult result = sweep(spec);
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_LT(result.points[1].median_s * 5, result.points[0].median_s);
}

TEST_F(LabOnGpu, CopiesAndComputeSumToTheDeviceTime) {
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 22};
  spec.ways = {Way::GpuPinned, Way::GpuPageable};
  for (const LabPoint& p : sweep(spec).points) EXPECT_NEAR(p.copy_s + p.compute_s, p.device_s, 0.05 * p.device_s);
}

TEST_F(LabOnGpu, CopiesOutweighOneSine) {
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 22};
  spec.ways = {Way::GpuPinned, Way::GpuPageable};
  for (const LabPoint& p : sweep(spec).points) EXPECT_GT(p.copy_s, p.compute_s);
}

TEST_F(LabOnGpu, OverlappedCopiesHaveADeviceTimeOfTheirOwn) {
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 24};
  spec.ways = {Way::GpuPinned, Way::GpuOverlap};
  const auto points = sweep(spec).points;
  ASSERT_EQ(points.size(), 2u);
  const LabPoint &serial = points[0], &overlapped = points[1];
  EXPECT_GT(overlapped.compute_s, 0);
  EXPECT_GT(overlapped.device_s, overlapped.compute_s);
  EXPECT_LT(overlapped.device_s, serial.device_s);
  EXPECT_LT(overlapped.device_s, 1.2 * overlapped.median_s);
  EXPECT_LT(overlapped.copy_s, serial.copy_s) << "the part that the compute does not hide";
}

// The one kernel uses a short polynomial from the second level on: as exact as the library's sine.
TEST_F(LabOnGpu, FusedSinesAreAsExactAsOpByOp) {
  for (int depth : {1, 2, 4, 17, 64}) {
    LabSpec spec;
    spec.operation = Operation::Sine;
    spec.depth = depth;
    spec.sizes = {1000003, 1 << 23};
    spec.ways = {Way::GpuResident, Way::GpuOpByOp};
    for (const LabPoint& p : sweep(spec).points) EXPECT_LT(p.error, 6e-7) << depth << " " << info(p.way).name;
  }
}

TEST_F(LabOnGpu, NestedSineReachesItsBound) {
  if (device_info().name.find("H200") == std::string::npos) GTEST_SKIP() << "the bar is set for an H200";
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 28};
  spec.ways = {Way::GpuResident, Way::GpuOpByOp, Way::GpuPinned, Way::GpuOverlap};
  const auto points = sweep(spec).points;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_GT(points[0].bound_s, 0.8 * points[0].device_s);
  EXPECT_GT(points[1].device_s, 3 * points[0].device_s);
  EXPECT_GT(points[2].median_s, 1.6 * points[3].median_s) << "overlapped copies";
}

TEST_F(LabOnGpu, WhatDoesNotFitIsSaidBeforeAnythingIsAllocated) {
  LabSpec spec;
  spec.operation = Operation::Add;
  spec.sizes = {device_info().memory_bytes / 4};
  spec.ways = {Way::GpuResident};
  const auto points = sweep(spec).points;
  ASSERT_EQ(points.size(), 1u);
  EXPECT_FALSE(points[0].ok);
  EXPECT_THAT(points[0].note, testing::HasSubstr("the largest that fits is"));
}

size_t spans_of(const prof::Trace& trace, prof::SpanKind kind, const Recorded& within) {
  size_t count = 0;
  for (const prof::Track& track : trace.tracks())
    for (const prof::SpanBlock& block : track.blocks)
      for (const prof::Span& span : block.spans)
        if (span.span_kind() == kind && span.start >= within.begin_ns && span.end() <= within.end_ns) ++count;
  return count;
}

TEST_F(LabOnGpu, EveryPointHasTheTraceThatItCameFrom) {
  const std::string path = test::own_file("every-point.wsrun");
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 12, 1 << 20};
  spec.ways = {Way::GpuPinned, Way::GpuResident, Way::GpuOpByOp};
  spec.seconds_per_point = 0.05;
  struct Quiet : LabSink {
  } sink;
  std::atomic<bool> cancel{false};
  const LabResult result = app::run_sweep(spec, path, cancel, sink);
  prof::RunFileReader reader(path);
  prof::Trace trace = reader.trace();
  reader.fill(trace);
  ASSERT_EQ(result.points.size(), 6u);
  for (const LabPoint& p : result.points) {
    const size_t kernels = p.way == Way::GpuOpByOp ? 4 : 1, copies = p.way == Way::GpuPinned ? 2 : 0;
    EXPECT_EQ(p.recorded.steps, 3);
    EXPECT_EQ(spans_of(trace, prof::SpanKind::Kernel, p.recorded), 3 * kernels) << info(p.way).name << " " << p.size;
    EXPECT_EQ(spans_of(trace, prof::SpanKind::Copy, p.recorded), 3 * copies) << info(p.way).name << " " << p.size;
  }
  EXPECT_EQ(app::read_lab(path)->points.size(), 6u);
}

LabResult recorded(const LabSpec& spec, const std::string& path) {
  struct Quiet : LabSink {
  } sink;
  std::atomic<bool> cancel{false};
  return app::run_sweep(spec, path, cancel, sink);
}

// Spans of the process that made the first call.
size_t of_first_call(const prof::Trace& trace, const Recorded& within, prof::SpanKind kind,
                     std::string_view name = {}) {
  size_t count = 0;
  for (const prof::Track& track : trace.tracks()) {
    if (!track.group.starts_with(app::kFirstCallRows)) continue;
    for (const prof::SpanBlock& block : track.blocks)
      for (const prof::Span& span : block.spans)
        if (span.span_kind() == kind && span.start >= within.begin_ns && span.end() <= within.end_ns &&
            (name.empty() || trace.name(span.name) == name))
          ++count;
  }
  return count;
}

TEST_F(LabOnGpu, AFirstCallRunsInAFreshProcessAndHasItsTrace) {
  const std::string path = test::own_file("first-call.wsrun");
  for (const Operation operation : {Operation::MatMul, Operation::Sine}) {
    SCOPED_TRACE(std::string(to_string(operation)));
    LabSpec spec;
    spec.operation = operation;
    spec.sizes = {64};
    spec.ways = {Way::GpuResident, Way::GpuCold};
    spec.repeats = 3, spec.warm_up = 0;
    spec.seconds_per_point = 0.05;
    const LabResult result = recorded(spec, path);
    ASSERT_EQ(result.points.size(), 2u);
    const LabPoint &warm = result.points[0], &cold = result.points[1];
    ASSERT_TRUE(warm.ok) << warm.note;
    ASSERT_TRUE(cold.ok) << cold.note;
    EXPECT_GT(cold.median_s, 100 * warm.median_s) << "a context takes milliseconds at the least";
    EXPECT_THAT(cold.note, testing::StartsWith("context "));
    prof::RunFileReader reader(path);
    prof::Trace trace = reader.trace();
    reader.fill(trace);
    const auto calls = static_cast<size_t>(cold.recorded.steps);
    ASSERT_GE(calls, 1u);
    for (const char* phase : {"context", "first call", "second call"})
      EXPECT_EQ(of_first_call(trace, cold.recorded, prof::SpanKind::Phase, phase), calls) << phase;
    EXPECT_GE(of_first_call(trace, cold.recorded, prof::SpanKind::Kernel), 2 * calls)
        << "the first call and the second";
    EXPECT_GT(of_first_call(trace, cold.recorded, prof::SpanKind::Api), 0u);
    EXPECT_EQ(of_first_call(trace, warm.recorded, prof::SpanKind::Kernel), 0u);
  }
}

TEST_F(LabOnGpu, AGraphOfTheSingleOperationsSavesTheirLaunches) {
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.depth = 16;
  spec.sizes = {1 << 10};
  spec.ways = {Way::GpuOpByOp, Way::GpuGraphOps, Way::GpuGraph};
  const auto points = sweep(spec).points;
  ASSERT_EQ(points.size(), 3u);
  for (const LabPoint& p : points) ASSERT_TRUE(p.ok) << p.note;
  EXPECT_LT(points[1].median_s, points[0].median_s);
  EXPECT_EQ(points[1].note, "16 kernels in one launch");
}

// The same kernels as op by op, so the same traffic: only launches are saved.
TEST_F(LabOnGpu, AGraphOfTheSingleOperationsRunsTheSameKernels) {
  const std::string path = test::own_file("graph.wsrun");
  LabSpec spec;
  spec.operation = Operation::Sine;
  spec.sizes = {1 << 16};
  spec.ways = {Way::GpuOpByOp, Way::GpuGraphOps, Way::GpuResident};
  spec.seconds_per_point = 0.05;
  const LabResult result = recorded(spec, path);
  ASSERT_EQ(result.points.size(), 3u);
  prof::RunFileReader reader(path);
  prof::Trace trace = reader.trace();
  reader.fill(trace);
  const size_t alone = spans_of(trace, prof::SpanKind::Kernel, result.points[0].recorded);
  EXPECT_EQ(alone, 3 * 4u) << "four sines, in three calls";
  EXPECT_EQ(spans_of(trace, prof::SpanKind::Kernel, result.points[1].recorded), alone);
  const Recorded always{0, 0, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(spans_of(trace, prof::SpanKind::Kernel, always), 2 * alone + 3) << "a point was measured under tracing";
}

const std::vector<std::string> kChecking{WARPSIGHT_PROGRAM, "kernel", "check-inside"};

KernelChecks checked(const LabSpec& spec) {
  return app::check_lab_kernels(spec, [](int, const std::string&) { return true; }, kChecking);
}

std::vector<LabPoint> measured(const LabSpec& spec, const KernelChecks& checks) {
  struct Quiet : LabSink {
  } sink;
  const std::atomic<bool> cancel{false};
  return run_lab(spec, cancel, sink, {}, checks).points;
}

// Sizes on both sides of the limit up to which each value is compared.
TEST_F(LabOnGpu, FirstVersionsOfAPersonsKernelsAreRightAndTimed) {
  for (const Operation operation : {Operation::MatMul, Operation::Sine, Operation::Add, Operation::Reduce, Operation::Softmax, Operation::Copy}) {
    SCOPED_TRACE(std::string(to_string(operation)));
    LabSpec spec;
    spec.operation = operation, spec.seconds_per_point = 0.05;
    spec.sizes = operation == Operation::MatMul ? std::vector<int64_t>{3, 256, 1024} : std::vector<int64_t>{7, 4096, 1 << 21};
    spec.ways = {Way::GpuResident};
    spec.kernels = {{"first.cu", own::first_version(kernel_contract(spec, 4096))}};
    const auto points = measured(spec, checked(spec));
    ASSERT_EQ(points.size(), 6u);
    for (const LabPoint& p : points) {
      EXPECT_TRUE(p.ok) << info(p.way).name << " " << p.size << ": " << p.note;
      if (is_own(p.way)) {
        EXPECT_THAT(p.note, testing::StartsWith("your kernel: "));
      }
    }
  }
}

TEST_F(LabOnGpu, AWrongKernelIsNotTimedAndTheRestIs) {
  LabSpec spec;
  spec.operation = Operation::Add, spec.seconds_per_point = 0.05;
  spec.sizes = {1024, 1 << 21};
  spec.ways = {Way::GpuResident};
  const std::string right = own::first_version(kernel_contract(spec, 1024));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string bounds = "  if (i >= c_rows * c_cols) return;\n";
  spec.kernels = {{"minus.cu", with("float(a[i]) +", "float(a[i]) -")},
                  {"endless.cu", with(bounds, bounds + "  while (true) asm volatile(\"\");\n")},
                  {"outside.cu", with(bounds, "  if (i == 0) c[c_rows * c_cols] = 1;\n" + bounds)},
                  {"right.cu", right}};
  const auto points = measured(spec, checked(spec));
  ASSERT_EQ(points.size(), 7u) << "a curve ends with its first wrong point";
  for (const LabPoint& p : points) EXPECT_EQ(p.ok, p.way == Way::GpuResident || p.way == Way::GpuOwn4) << info(p.way).name << ": " << p.note;
  EXPECT_THAT(points[1].note, testing::HasSubstr("and the op gives"));
  EXPECT_THAT(points[2].note, testing::HasSubstr("does not end within"));
  EXPECT_THAT(points[3].note, testing::HasSubstr("writes outside of c"));
}

TEST_F(LabOnGpu, AKernelThatWasNotCheckedIsNotTimed) {
  LabSpec spec;
  spec.sizes = {64};
  spec.ways = {Way::GpuResident};
  spec.kernels = {{"my.cu", own::first_version(kernel_contract(spec, 64))}};
  const auto points = measured(spec, {});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_THAT(points[1].note, testing::HasSubstr("was not checked"));
}

}  // namespace
}  // namespace ws::lab

// The process of a first call is this program once more.
int main(int argc, char** argv) {
  if (ws::app::run_first_call_if_asked()) return 0;
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
