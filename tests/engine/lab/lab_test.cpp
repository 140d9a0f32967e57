#include "engine/lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/lab/ceilings.h"
#include "engine/workloads/expression_source.h"

namespace ws::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal(std::string_view text) {
  try {
    Expression::parse(text);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

// A folder for the user's cache that is gone afterwards.
class CeilingsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(folder_);
  }
  const std::string folder_ = testing::TempDir() + "/warpsight-cache-" + std::to_string(getpid());
};

TEST_F(CeilingsFile, RemembersEachCardUntilItsDriverChanges) {
  EXPECT_EQ(remembered_ceilings("A card").read_write_bytes_s, 0);
  Ceilings c;
  c.read_write_bytes_s = 4e12, c.tf32_flops_s = 3.5e14;
  c.bus_rates = {{2, 4096, 0.5}, {2, 1e8, 300}};
  remember_ceilings("A card", "580.1", c);
  remember_ceilings("Another", "580.1", Ceilings{.read_write_bytes_s = 1e12});
  EXPECT_EQ(remembered_ceilings("A card").tf32_flops_s, 3.5e14);
  EXPECT_EQ(bus_rate(remembered_ceilings("A card").bus_rates, 2, 1e8), 300);
  EXPECT_TRUE(remembered_ceilings("Another").bus_rates.empty());
  EXPECT_EQ(remembered_ceilings("A card", "580.1").read_write_bytes_s, 4e12);
  EXPECT_EQ(remembered_ceilings("A card", "590.2").read_write_bytes_s, 0);
  EXPECT_EQ(remembered_ceilings("Another").read_write_bytes_s, 1e12);
  c.read_write_bytes_s = 5e12;
  remember_ceilings("A card", "590.2", c);
  EXPECT_EQ(remembered_ceilings("A card", "590.2").read_write_bytes_s, 5e12);
  EXPECT_EQ(remembered_ceilings("Another").read_write_bytes_s, 1e12);
}

TEST_F(CeilingsFile, TakesADamagedFileForNone) {
  remember_ceilings("A card", "1", Ceilings{.read_write_bytes_s = 4e12});
  for (const char* text : {"", "{\"A card\": ", "[1, 2]", "{\"A card\": 7}",
                           "{\"A card\": {\"memory_bytes_s\": \"much\"}}", "{\"A card\": {\"driver\": 1}}"}) {
    std::ofstream(ceilings_file()) << text;
    EXPECT_EQ(remembered_ceilings("A card").read_write_bytes_s, 0) << text;
    EXPECT_EQ(remembered_ceilings("A card", "1").read_write_bytes_s, 0) << text;
  }
  remember_ceilings("A card", "1", Ceilings{.read_write_bytes_s = 4e12});
  EXPECT_EQ(remembered_ceilings("A card", "1").read_write_bytes_s, 4e12);
}

TEST_F(CeilingsFile, MayBeImpossibleToWrite) {
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  remember_ceilings("A card", "1", Ceilings{.read_write_bytes_s = 4e12});
  EXPECT_EQ(remembered_ceilings("A card").read_write_bytes_s, 0);
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
  EXPECT_THAT(refusal("1e31*x"), HasSubstr("not a number that a float can hold"));
  EXPECT_THAT(refusal(std::string(5000, 'x')), HasSubstr("4 096"));
  EXPECT_THAT(refusal(std::string("x\0y", 3)), HasSubstr("unexpected"));
  EXPECT_THAT(refusal("sin x"), HasSubstr("“(” expected after sin"));
  EXPECT_THAT(refusal("x**2"), HasSubstr("unexpected “*”"));
}

// A constant whose square a float cannot hold is no reason to stop: the result is infinite, as on the GPU.
TEST(Expression, HugeConstantsGiveInfinities) {
  const Expression e = Expression::parse("1e30*1e30*abs(x)");
  std::vector<float> x{1, 2}, out(2);
  e.evaluate(x, {}, out);
  EXPECT_TRUE(std::isinf(out[0]));
  EXPECT_EQ(ranges(e).back().high, INFINITY);
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
  const std::string source = cuda_source(Expression::nested_sine(3), "ws_fused");
  EXPECT_THAT(source, HasSubstr("v0 = sinf(x)"));
  EXPECT_THAT(source, HasSubstr("v2 = short_sine(v1)"));
  EXPECT_THAT(source, HasSubstr("__global__ void ws_fused("));
}

std::string source_of(std::string_view text) { return cuda_source(Expression::parse(text), "k"); }

TEST(Expression, ShortPolynomialsStandOnlyWhereTheArgumentIsKnownToBeSmall) {
  for (const char* text : {"sin(sin(x))", "sin(tanh(x*1e9))", "sin(sigmoid(y))", "sin(max(-1, min(x, 1)))",
                           "sin(sin(x)/2 + cos(y)/2)", "sin(exp(-abs(sin(x))))", "sin(sqrt(relu(sin(x))))"})
    EXPECT_THAT(source_of(text), HasSubstr("short_sine(v")) << text;
  EXPECT_THAT(source_of("cos(sin(x))"), HasSubstr("short_cosine(v0)"));
  for (const char* text : {"sin(x)", "sin(sin(x)*2)", "sin(sin(x)+cos(y))", "sin(1/sin(x))", "sin(pow(sin(x), 2))",
                           "sin(exp(x))", "sin(log(sin(x)))", "sin(sin(x)/sin(y))", "sin(2)", "sin(min(x, 1))"})
    EXPECT_THAT(source_of(text), Not(HasSubstr("short_sine(v"))) << text;
}

// Every result of an expression lies within the interval that was worked out for it.
TEST(Expression, RangesHoldWhatComesOut) {
  for (const char* text :
       {"sin(x)*cos(y)", "exp(-abs(x))/2 - sigmoid(y)", "relu(tanh(x)) - 0.25", "min(sin(x), 0.3)*-2",
        "sqrt(abs(sin(x)))", "sin(x)/(2+cos(y))", "max(sin(x), cos(y)) + 1"}) {
    const Expression e = Expression::parse(text);
    const Interval range = ranges(e).back();
    EXPECT_TRUE(std::isfinite(range.low) && std::isfinite(range.high)) << text;
    for (double x = -7; x < 7; x += 0.37)
      for (double y = -7; y < 7; y += 0.41) {
        EXPECT_GE(e.at(x, y), range.low) << text;
        EXPECT_LE(e.at(x, y), range.high) << text;
      }
  }
}

// Units in the last place, against float64, over a million arguments and the smallest ones.
double worst_ulp(float (*own)(float), double (*exact)(double)) {
  double worst = 0;
  const auto look = [&](float x) {
    const double right = exact(static_cast<double>(x));
    const float rounded = std::abs(static_cast<float>(right));
    const double unit = static_cast<double>(std::nextafter(rounded, 2.0F) - rounded);
    worst = std::max(worst, std::abs(static_cast<double>(own(x)) - right) / unit);
  };
  for (int i = -500'000; i <= 500'000; ++i) look(static_cast<float>(i) * 2e-6F);
  for (float x = 1; x > 1e-30F; x *= 0.83F) look(x), look(-x);
  return worst;
}

TEST(Expression, ShortSineIsWithinTwoUnitsInTheLastPlace) {
  EXPECT_LT(worst_ulp(short_sine, [](double x) { return std::sin(x); }), 1.5);
  EXPECT_LT(worst_ulp(short_cosine, [](double x) { return std::cos(x); }), 1.5);
  EXPECT_EQ(short_sine(0.0F), 0.0F);
  EXPECT_TRUE(std::isnan(short_sine(NAN)));
}

TEST(Lab, BoundsAreTheLargerOfBytesAndArithmetic) {
  Ceilings c;
  c.read_write_bytes_s = 4e12, c.sine_per_s = 1e12, c.short_sine_per_s = 4e12, c.fp32_flops_s = 5e13;
  c.fp16_flops_s = 5e14;
  LabSpec spec;
  spec.operation = Operation::Sine;
  const int64_t n = 1 << 20;
  const Bound four = bound_of(spec, Way::GpuResident, n, c);
  EXPECT_DOUBLE_EQ(four.bytes_s, 8.0 * n / 4e12);
  EXPECT_DOUBLE_EQ(four.arithmetic_s, n / 1e12 + 3.0 * n / 4e12);
  EXPECT_DOUBLE_EQ(four.seconds(), four.bytes_s);
  spec.depth = 32;
  const Bound many = bound_of(spec, Way::GpuResident, n, c);
  EXPECT_DOUBLE_EQ(many.seconds(), many.arithmetic_s);
  spec.operation = Operation::MatMul;
  EXPECT_DOUBLE_EQ(bound_of(spec, Way::GpuResident, 4096, c).seconds(), 2.0 * 4096 * 4096 * 4096 / 5e13);
  EXPECT_DOUBLE_EQ(bound_of(spec, Way::GpuFp16, 4096, c).seconds(), 2.0 * 4096 * 4096 * 4096 / 5e14);
  EXPECT_EQ(bound_of(spec, Way::CpuLibrary, 4096, c).seconds(), 0);
  EXPECT_EQ(bound_of(spec, Way::GpuUnsynced, 4096, c).seconds(), 0);
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

int64_t number_after(const std::string& text, const std::string& words) {
  const size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
}

TEST(Lab, TheNamedSizeFitsAndAnotherHalfMoreDoesNot) {
  for (Operation operation : {Operation::Add, Operation::MatMul}) {
    std::atomic<bool> cancel{false};
    Collect sink;
    const int64_t wanted = operation == Operation::MatMul ? 1 << 20 : int64_t{1} << 40;
    LabSpec spec = quick(operation, {wanted});
    const LabResult result = run_lab(spec, cancel, sink);
    const int64_t largest = number_after(result.points.at(0).note, "the largest that fits is ");
    ASSERT_GT(largest, 1000) << result.points[0].note;
    EXPECT_NE(result.points[0].note.find("size " + std::to_string(wanted)), std::string::npos);
    spec.sizes = {largest + largest / 2};
    EXPECT_FALSE(run_lab(spec, cancel, sink).points.at(0).ok);
  }
}

TEST(Lab, SizesBeyondAnyNumberAreRefusedAndNothingOverflows) {
  LabSpec spec = quick(Operation::MatMul, {1'000'000'000'000});
  spec.m = spec.k = 1 << 20;
  EXPECT_GT(flops_of(spec, spec.sizes[0]), 0);
  EXPECT_GT(bytes_of(spec, spec.sizes[0]), 0);
  EXPECT_GT(memory_of(spec, spec.sizes[0]), 0);
  std::atomic<bool> cancel{false};
  Collect sink;
  EXPECT_FALSE(run_lab(spec, cancel, sink).points.at(0).ok);
}

TEST(Lab, ACallThatWouldTakeTooLongIsLeftOut) {
  LabSpec spec = quick(Operation::MatMul, {64, 8192});
  spec.ways = {Way::CpuLoops};
  spec.longest_call_s = 0.5;
  std::atomic<bool> cancel{false};
  Collect sink;
  const LabResult result = run_lab(spec, cancel, sink);
  ASSERT_EQ(result.points.size(), 2u);
  EXPECT_TRUE(result.points[0].ok);
  EXPECT_THAT(result.points[1].note, HasSubstr("left out: one call would take about"));
}

TEST(Lab, AJumpInSizeIsNoReasonToStop) {
  LabSpec spec = quick(Operation::MatMul, {2, 1024});
  spec.ways = {Way::CpuLibrary};
  std::atomic<bool> cancel{false};
  Collect sink;
  for (const LabPoint& p : run_lab(spec, cancel, sink).points) EXPECT_TRUE(p.ok) << p.note;
}

TEST(Lab, CancellingStopsInTheMiddleOfACall) {
  LabSpec spec = quick(Operation::MatMul, {3072});
  spec.ways = {Way::CpuLoops};
  spec.longest_call_s = 1000;
  std::atomic<bool> cancel{false};
  std::chrono::steady_clock::time_point asked;
  Collect sink;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    asked = std::chrono::steady_clock::now();
    cancel = true;
  });
  const LabResult result = run_lab(spec, cancel, sink);
  EXPECT_TRUE(result.cancelled);
  later.join();
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count(), 5);
}

struct Recording : Collect {
  bool records() const override { return true; }
  void record(bool on) override { on ? ++begun : ++ended; }
  int64_t trace_time() const override { return ++clock; }
  int begun = 0, ended = 0;
  mutable int64_t clock = 0;
};

TEST(Lab, EveryPointIsRecordedAfterItWasMeasured) {
  std::atomic<bool> cancel{false};
  Recording sink;
  const LabResult result = run_lab(quick(Operation::Add, {10, 100}), cancel, sink);
  ASSERT_EQ(result.points.size(), 4u);
  EXPECT_EQ(sink.begun, 4);
  EXPECT_EQ(sink.ended, 4);
  int64_t step = 0;
  for (const LabPoint& p : result.points) {
    EXPECT_EQ(p.recorded.first_step, step);
    EXPECT_EQ(p.recorded.steps, 3);
    EXPECT_GT(p.recorded.end_ns, p.recorded.begin_ns);
    step += p.recorded.steps;
  }
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

TEST(Lab, ResultsGoThroughJson) {
  std::atomic<bool> cancel{false};
  Recording sink;
  LabResult result = run_lab(quick(Operation::Add, {10, 100}), cancel, sink);
  result.ceilings.read_write_bytes_s = 4e12;
  const nlohmann::json json = to_json(result);
  EXPECT_EQ(to_json(lab_result_from_json(json)), json);
}

TEST(Lab, ReadsWhatThePyTorchScriptWrites) {
  const auto result = lab_result_from_json(nlohmann::json::parse(R"({"framework": "PyTorch 2.11", "operation": "sine",
      "depth": 2, "points": [{"way": "gpu", "size": 8, "median_s": 0.5}, {"way": "tpu", "size": 8, "median_s": 1}]})"));
  EXPECT_EQ(result.source, "PyTorch 2.11");
  EXPECT_EQ(result.spec.operation, Operation::Sine);
  ASSERT_EQ(result.points.size(), 1u) << "a way that is not known is left out, not taken for another";
  EXPECT_EQ(result.points[0].way, Way::GpuResident);
  EXPECT_THROW(lab_result_from_json({{"losses", {1, 2}}}), Failure);
  EXPECT_THROW(lab_result_from_json({{"points", {{{"way", 3}}}}}), Failure);
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
