// Every operation in every way on the GPU is right, and the pitfall is as wrong as it is said to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/executor.h"
#include "engine/lab/lab.h"

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
  return run_lab(spec, cancel, sink);
}

double tolerance(Way way) { return way == Way::GpuTf32 ? 2e-3 : way == Way::GpuFp16 ? 2e-3 : 2e-5; }

TEST_F(LabOnGpu, EveryOperationInEveryWayIsRight) {
  for (Operation operation : {Operation::MatMul, Operation::Sine, Operation::Add, Operation::Reduce, Operation::Softmax,
                              Operation::Copy, Operation::Expression}) {
    LabSpec spec;
    spec.operation = operation;
    spec.sizes = {1, 3, 127, 1000};
    if (operation != Operation::MatMul) spec.sizes.push_back(1000003);
    for (Way way : ways_of(operation))
      if (way != Way::GpuCold) spec.ways.push_back(way);
    for (const LabPoint& p : sweep(spec).points) {
      EXPECT_TRUE(p.ok) << info(p.way).name << " " << p.size << ": " << p.note;
      EXPECT_LT(p.error, tolerance(p.way)) << to_string(operation) << " " << info(p.way).name << " " << p.size;
    }
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
  for (const LabPoint& p : sweep(spec).points) {
    EXPECT_NEAR(p.copy_s + p.compute_s, p.device_s, 0.05 * p.device_s);
    EXPECT_GT(p.copy_s, p.compute_s);
  }
}

}  // namespace
}  // namespace ws::lab
