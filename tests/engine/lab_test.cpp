#include "engine/lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ws::lab {
namespace {

using ::testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    Expression::parse(text);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Expression, KnowsPrecedence) {
  const auto value = [](std::string_view text) { return Expression::parse(text).at(0.5, 3.0); };
  EXPECT_DOUBLE_EQ(value("1+2*3"), 7);
  EXPECT_DOUBLE_EQ(value("(1+2)*3"), 9);
  EXPECT_DOUBLE_EQ(value("2-3-4"), -5);
  EXPECT_DOUBLE_EQ(value("8/4/2"), 1);
  EXPECT_DOUBLE_EQ(value("-x*2"), -1);
  EXPECT_DOUBLE_EQ(value("--y"), 3);
  EXPECT_DOUBLE_EQ(value("max(x, pow(y, 2))"), 9);
  EXPECT_DOUBLE_EQ(value("sin(sin(x))*2+y"), std::sin(std::sin(0.5)) * 2 + 3);
}

TEST(Expression, RefusesWhatIsWrongOrHostile) {
  EXPECT_THAT(refusal(""), HasSubstr("something is missing"));
  EXPECT_THAT(refusal("sin("), HasSubstr("missing"));
  EXPECT_THAT(refusal("sin(x"), HasSubstr("closing parenthesis"));
  EXPECT_THAT(refusal("x y"), HasSubstr("unexpected “y” at character 3"));
  EXPECT_THAT(refusal("system(x)"), HasSubstr("“system” is neither"));
  EXPECT_THAT(refusal("1e999"), HasSubstr("not a number"));
  EXPECT_THAT(refusal("x; asm(x)"), HasSubstr("unexpected “;”"));
  EXPECT_THAT(refusal("x\n#include"), HasSubstr("unexpected"));
  EXPECT_THAT(refusal(std::string(2000, '(') + "x"), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal(std::string(2000, '-') + "x"), HasSubstr("nested more than 64 deep"));
  std::string wide = "x";
  for (int i = 0; i < 200; ++i) wide += "+x";
  EXPECT_THAT(refusal(wide), HasSubstr("more than 256"));
  EXPECT_THAT(refusal("pow(x)"), HasSubstr("takes two values"));
}

TEST(Expression, StripsAgreeWithTheScalarForm) {
  const Expression e = Expression::parse("sin(x)*cos(y) - max(x, y)/2 + sigmoid(x)");
  std::vector<float> x(1300), y(1300), out(1300);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i) * 0.01f - 6, y[i] = 3 - static_cast<float>(i) * 0.005f;
  e.evaluate(x, y, out);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(out[i], e.at(x[i], y[i]), 1e-5);
  EXPECT_TRUE(e.uses_y());
  EXPECT_EQ(e.operations(), 8);
}

TEST(Expression, SourceHoldsOneValueAnOperation) {
  const std::string source = Expression::nested_sine(3).cuda_source("ws_fused");
  EXPECT_THAT(source, HasSubstr("v0 = sinf(x)"));
  EXPECT_THAT(source, HasSubstr("v2 = sinf(v1)"));
  EXPECT_THAT(source, HasSubstr("__global__ void ws_fused("));
}

struct Collect : LabSink {
  void point(const LabPoint& p) override {
    points.push_back(p);
    if (stop_after && static_cast<int>(points.size()) == stop_after) *cancel = true;
  }
  std::vector<LabPoint> points;
  int stop_after = 0;
  std::atomic<bool>* cancel = nullptr;
};

LabSpec quick(Operation operation, std::vector<int64_t> sizes) {
  LabSpec spec;
  spec.operation = operation;
  spec.sizes = std::move(sizes);
  spec.ways = {Way::CpuLoops, Way::CpuLibrary};
  spec.seconds_per_point = 0.02;
  return spec;
}

TEST(Lab, EveryOperationIsRightOnTheCpu) {
  for (Operation operation : {Operation::MatMul, Operation::Sine, Operation::Add, Operation::Reduce, Operation::Softmax,
                              Operation::Copy, Operation::Expression}) {
    std::atomic<bool> cancel{false};
    Collect sink;
    const LabResult result = run_lab(quick(operation, {1, 3, 64, 130}), cancel, sink);
    ASSERT_EQ(result.points.size(), 8u) << to_string(operation);
    for (const LabPoint& p : result.points) {
      EXPECT_TRUE(p.ok) << p.note;
      EXPECT_LT(p.error, 1e-5) << to_string(operation) << " " << p.size;
      EXPECT_GT(p.median_s, 0);
      EXPECT_LE(p.low_s, p.median_s);
      EXPECT_GE(p.high_s, p.median_s);
    }
  }
}

TEST(Lab, RectangularProducts) {
  LabSpec spec = quick(Operation::MatMul, {5});
  spec.m = 7;
  spec.k = 3;
  std::atomic<bool> cancel{false};
  Collect sink;
  for (const LabPoint& p : run_lab(spec, cancel, sink).points) EXPECT_LT(p.error, 1e-6);
  EXPECT_EQ(flops_of(spec, 5), 2 * 7 * 3 * 5);
}

TEST(Lab, AsksBeforeItAllocates) {
  std::atomic<bool> cancel{false};
  Collect sink;
  const LabResult result = run_lab(quick(Operation::Add, {int64_t{1} << 38}), cancel, sink);
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_FALSE(result.points[0].ok);
  EXPECT_THAT(result.points[0].note, HasSubstr("the largest that fits is"));
}

TEST(Lab, LargestSizeFitsAndTheNextDoesNot) {
  const LabSpec spec = quick(Operation::MatMul, {});
  const int64_t room = 1 << 30, n = largest_size(spec, room);
  EXPECT_LE(memory_of(spec, n), room);
  EXPECT_GT(memory_of(spec, n + 1), room);
}

TEST(Lab, ACancelledSweepKeepsItsPoints) {
  std::atomic<bool> cancel{false};
  Collect sink;
  sink.stop_after = 3;
  sink.cancel = &cancel;
  const LabResult result = run_lab(quick(Operation::Add, {10, 100, 1000}), cancel, sink);
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.points.size(), 3u);
}

TEST(Lab, CrossoversLieBetweenTheSizes) {
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

TEST(LabSpec, JsonGoesRoundAndRefuses) {
  LabSpec spec = quick(Operation::Expression, {1, 2});
  spec.expression = "x*y";
  EXPECT_EQ(to_json(lab_spec_from_json(to_json(spec))), to_json(spec));
  EXPECT_THROW(lab_spec_from_json({{"sizes", {0}}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"ways", {"tpu"}}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"expression", "q"}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"speed", 1}}), Failure);
}

}  // namespace
}  // namespace ws::lab
