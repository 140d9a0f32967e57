// Which results are right and which are not, and what a point carries of its measurement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/lab/correctness.h"
#include "engine/lab/measure.h"

namespace ws::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers with what it is given, in place of a kernel.
class FakeWorkload final : public Workload {
 public:
  explicit FakeWorkload(std::vector<float> outputs) : outputs_(std::move(outputs)) {}
  double call() override { return 1e-6; }
  CallSplit split() override {
    const double seconds = 1e-6 * ++splits_;
    return {seconds, 0, seconds};
  }
  void cool() override {}
  double output_at(int64_t index) override { return static_cast<double>(outputs_[static_cast<size_t>(index)]); }

 private:
  std::vector<float> outputs_;
  int splits_ = 0;
};

LabSpec spec_of(Operation operation) {
  LabSpec spec;
  spec.operation = operation;
  return spec;
}

LabPoint checked(const LabSpec& spec, Way way, int64_t size, std::vector<float> outputs) {
  const Inputs inputs = make_inputs(spec, size);
  FakeWorkload work(std::move(outputs));
  LabPoint point;
  point.way = way, point.size = size, point.median_s = 1e-6;
  check_point(spec, work, expected_samples(spec, size, inputs), point);
  return point;
}

// C = A·B with the inputs cut by `cut`, leaving out the products after `inner` of n.
template <class Cut>
std::vector<float> product(const Inputs& in, int64_t n, int64_t inner, const Cut& cut) {
  std::vector<float> c(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < inner; ++k)
        c[static_cast<size_t>(i * n + j)] +=
            cut(in.a[static_cast<size_t>(i * n + k)]) * cut(in.b[static_cast<size_t>(k * n + j)]);
  return c;
}
float whole(float v) { return v; }
float eleven_bits(float v) { return std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xffffe000u); }

TEST(LabCheck, AProductThatLeavesOneTermOutIsWrong) {
  const LabSpec spec = spec_of(Operation::MatMul);
  const Inputs in = make_inputs(spec, 128);
  const LabPoint right = checked(spec, Way::GpuTiled, 128, product(in, 128, 128, whole));
  EXPECT_TRUE(right.ok) << right.note;
  EXPECT_GT(right.error, 0);
  EXPECT_LT(right.error, 1e-6);
  const LabPoint wrong = checked(spec, Way::GpuTiled, 128, product(in, 128, 127, whole));
  EXPECT_FALSE(wrong.ok);
  EXPECT_THAT(wrong.note, StartsWith(std::string(kWrong)));
  EXPECT_THAT(wrong.note, HasSubstr("where float64 gives"));
  EXPECT_GT(wrong.error, 0.01);
}

// Eleven bits are what tf32 has; in a way that promises float32 they are a wrong result.
TEST(LabCheck, EachPrecisionHasItsOwnTolerance) {
  const LabSpec spec = spec_of(Operation::MatMul);
  for (const int64_t n : {1, 2, 3, 17, 130}) {
    const auto cut = product(make_inputs(spec, n), n, n, eleven_bits);
    EXPECT_TRUE(checked(spec, Way::GpuTf32, n, cut).ok) << n;
    EXPECT_TRUE(checked(spec, Way::GpuFp16, n, cut).ok) << n;
    EXPECT_FALSE(checked(spec, Way::GpuResident, n, cut).ok) << n;
    EXPECT_FALSE(checked(spec, Way::GpuTf32, n, std::vector<float>(static_cast<size_t>(n * n))).ok) << n;
  }
}

TEST(LabCheck, HalfPrecisionMayRoundToItsSmallestNumber) {
  const Sample tiny{0, 1e-6, 1e-6, 1e-13};
  const LabSpec spec = spec_of(Operation::MatMul);
  EXPECT_GT(tolerance(spec, Way::GpuFp16, tiny), 0x1p-25);
  EXPECT_LT(tolerance(spec, Way::GpuTf32, tiny), 5e-9);
  EXPECT_EQ(tolerance(spec, Way::GpuResident, tiny), 1e-13);
  EXPECT_EQ(tolerance(spec_of(Operation::Add), Way::GpuFp16, tiny), 1e-13) << "only products have a precision";
}

// A sum near zero is no more exact for it: the error counts against what was added up.
TEST(LabCheck, ASumMayEndNearZeroButMissNothing) {
  const LabSpec spec = spec_of(Operation::Reduce);
  for (const int64_t n : {3, 1000, 100'003}) {
    const Inputs in = make_inputs(spec, n);
    float sum = 0, without = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += in.a[static_cast<size_t>(i)];
      if (i % 1024 != 1) without += in.a[static_cast<size_t>(i)];
    }
    EXPECT_TRUE(checked(spec, Way::GpuResident, n, {sum}).ok) << n;
    EXPECT_FALSE(checked(spec, Way::GpuResident, n, {without}).ok) << n;
  }
}

TEST(LabCheck, ACopyIsExact) {
  const LabSpec spec = spec_of(Operation::Copy);
  std::vector<float> out = make_inputs(spec, 1000).a;
  EXPECT_TRUE(checked(spec, Way::GpuResident, 1000, out).ok);
  out[0] = std::nextafter(out[0], 2.0F);
  EXPECT_FALSE(checked(spec, Way::GpuResident, 1000, out).ok);
}

TEST(LabCheck, WhatIsNoNumberIsWrongWhereANumberBelongs) {
  const LabSpec spec = spec_of(Operation::Add);
  const Inputs in = make_inputs(spec, 10);
  std::vector<float> out(10);
  for (size_t i = 0; i < 10; ++i) out[i] = in.a[i] + in.b[i];
  EXPECT_TRUE(checked(spec, Way::CpuLoops, 10, out).ok);
  out[9] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(checked(spec, Way::CpuLoops, 10, out).ok);
}

std::vector<float> sines(const Inputs& in, int depth) {
  std::vector<float> out = in.a;
  for (float& value : out)
    for (int level = 0; level < depth; ++level) value = std::sin(value);
  return out;
}

TEST(LabCheck, ALevelLessIsNotTakenForTheNestedSine) {
  LabSpec spec = spec_of(Operation::Sine);
  for (const int depth : {1, 4, 64}) {
    spec.depth = depth;
    const Inputs in = make_inputs(spec, 5000);
    const LabPoint point = checked(spec, Way::CpuLoops, 5000, sines(in, depth));
    EXPECT_TRUE(point.ok) << point.note;
    EXPECT_FALSE(checked(spec, Way::CpuLoops, 5000, sines(in, depth - 1)).ok) << depth;
  }
}

// A fast intrinsic passes, as it does in the check of a kernel; a wrong result does not.
TEST(LabCheck, AKernelOfAPersonMayRoundMore) {
  LabSpec spec = spec_of(Operation::Sine);
  std::vector<float> out = sines(make_inputs(spec, 500), 4);
  for (float& value : out) value += 4e-7F;
  EXPECT_FALSE(checked(spec, Way::GpuResident, 500, out).ok);
  EXPECT_TRUE(checked(spec, Way::GpuOwn2, 500, out).ok);
  out[0] += 1e-3F;
  EXPECT_FALSE(checked(spec, Way::GpuOwn2, 500, out).ok);
}

TEST(LabCheck, CrossoversLieBetweenTheSizes) {
  LabResult result;
  const auto add = [&](Way way, int64_t size, double seconds) {
    LabPoint p;
    p.way = way, p.size = size, p.median_s = seconds;
    result.points.push_back(p);
  };
  for (int64_t n : {1, 10, 100, 1000}) {
    add(Way::CpuLibrary, n, static_cast<double>(n));
    add(Way::GpuPinned, n, 31.6);
    add(Way::GpuUnsynced, n, 0.001);
  }
  const auto found = crossovers(result);
  ASSERT_EQ(found.size(), 1u) << "the pitfall takes no part";
  EXPECT_EQ(found[0].slower_below, Way::CpuLibrary);
  EXPECT_NEAR(found[0].size, 31.6, 0.1);
  EXPECT_NEAR(found[0].seconds, 31.6, 0.1);
}

TEST(LabCheck, AWrongPointTakesNoPartInCrossovers) {
  LabResult result;
  for (const int64_t n : {1, 10, 100, 1000})
    for (const Way way : {Way::CpuLibrary, Way::GpuPinned}) {
      LabPoint p;
      p.way = way, p.size = n, p.median_s = way == Way::CpuLibrary ? static_cast<double>(n) : 31.6;
      result.points.push_back(p);
    }
  ASSERT_EQ(crossovers(result).size(), 1u);
  for (LabPoint& p : result.points)
    if (p.way == Way::GpuPinned && p.size >= 100) p.ok = false;
  EXPECT_TRUE(crossovers(result).empty());
}

TEST(LabMeasure, EventsHaveASpreadOfTheirOwn) {
  LabSpec spec = spec_of(Operation::Add);
  spec.repeats = 5, spec.warm_up = 0;
  FakeWorkload work({});
  LabPoint point;
  point.way = Way::GpuResident;
  const std::atomic<bool> cancel{false};
  time_point(spec, work, point, cancel);
  EXPECT_EQ(point.repeats, 5);
  EXPECT_NEAR(point.device_low_s, 1.45e-6, 1e-12);
  EXPECT_GT(point.device_s, point.device_low_s);
  EXPECT_NEAR(point.device_high_s, 9.55e-6, 1e-12);
  LabResult result;
  result.points = {point};
  const LabPoint back = lab_result_from_json(to_json(result)).points.at(0);
  EXPECT_EQ(back.device_low_s, point.device_low_s);
  EXPECT_EQ(back.device_high_s, point.device_high_s);
  EXPECT_THAT(to_csv(result), HasSubstr("device_s,device_p5_s,device_p95_s,"));
  nlohmann::json old = to_json(result);
  old["points"][0].erase("device_p5_s"), old["points"][0].erase("device_p95_s");
  EXPECT_EQ(lab_result_from_json(old).points.at(0).device_low_s, 0);
}

TEST(LabSizes, AreReadInThreeWays) {
  EXPECT_EQ(size_of_text("4096"), 4096);
  EXPECT_EQ(size_of_text(" 2^12 "), 4096);
  EXPECT_EQ(size_of_text("2^0"), 1);
  EXPECT_EQ(size_of_text("64k"), 65536);
  EXPECT_EQ(size_of_text("64M"), int64_t{64} << 20);
  for (const char* wrong : {"", "0", "-4", "2^", "2^-1", "2^40", "2^x", "3^4", "many", "1.5", "4 096",
                            "99999999999999999999", "9999999999M", "M", "+3", "0x10"})
    EXPECT_THROW(size_of_text(wrong), Failure) << wrong;
}

// Files of before name the ways so.
TEST(LabWays, KeepTheirNames) {
  for (const char* name : {"cpu-loops", "cpu", "gpu-pageable", "gpu-pinned", "gpu", "gpu-unsynced", "gpu-op-by-op",
                           "gpu-overlap", "gpu-graph", "gpu-cold", "gpu-naive", "gpu-tiled", "gpu-tf32", "gpu-fp16", "gpu-own", "gpu-own-2", "gpu-own-3",
                           "gpu-own-4"})
    EXPECT_EQ(lab_spec_from_json({{"ways", {name}}}).ways.size(), 1u) << name;
  for (const WayInfo& way : ways()) EXPECT_EQ(&info(way.way), &way) << way.name;
}

TEST(LabWays, AGraphOfSingleOperationsBelongsToWhatHasSeveral) {
  const auto has = [](Operation operation) {
    const auto all = ways_of(operation);
    return std::find(all.begin(), all.end(), Way::GpuGraphOps) != all.end();
  };
  EXPECT_TRUE(has(Operation::Sine));
  EXPECT_FALSE(has(Operation::MatMul));
  EXPECT_FALSE(has(Operation::Add));
  EXPECT_EQ(info(Way::GpuGraphOps).name, "gpu-graph-op-by-op");
}

}  // namespace
}  // namespace ws::lab
