#include "engine/lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/devices/devices.h"
#include "engine/devices/own_kernels.h"
#include "engine/lab/ceilings.h"
#include "engine/workloads/workload.h"
#include "tests/support/failure_text.h"

namespace ws::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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
                              Operation::Copy}) {
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
  LabSpec spec = quick(Operation::Sine, {1, 2});
  spec.kernels = {{"my.cu", "text"}, {"another.cu", ""}};
  EXPECT_EQ(to_json(lab_spec_from_json(to_json(spec))), to_json(spec));
  EXPECT_THROW(lab_spec_from_json({{"sizes", {0}}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"ways", {"tpu"}}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"kernels", {"my.cu"}}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"kernels", std::vector<nlohmann::json>(5, {{"file", "my.cu"}})}}), Failure);
  EXPECT_THROW(lab_spec_from_json({{"speed", 1}}), Failure);
}

// Files of older versions may hold an expression, used or not.
TEST(LabSpec, AnOldExpressionIsANestedSineOrASentence) {
  const auto old = [](const char* operation, const char* text) { return lab_spec_from_json({{"operation", operation}, {"expression", text}, {"depth", 7}}); };
  EXPECT_EQ(old("add", "sin(sin(x))*2+y").operation, Operation::Add);
  const LabSpec sines = old("expression", "sin( sin(x) )");
  EXPECT_EQ(sines.operation, Operation::Sine);
  EXPECT_EQ(sines.depth, 2);
  for (const char* text : {"sin(sin(x))*2+y", "x", "sin(x", "", "sin(y)"}) try {
      old("expression", text);
      ADD_FAILURE() << text;
    } catch (const Failure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("write it as a kernel of your own"));
    }
  EXPECT_THROW(lab_result_from_json({{"spec", {{"operation", "expression"}, {"expression", "x+y"}}}, {"points", nlohmann::json::array()}}), Failure);
}

constexpr Operation kAll[] = {Operation::MatMul, Operation::Sine, Operation::Add, Operation::Reduce, Operation::Softmax, Operation::Copy};

TEST(LabKernels, GetWhatTheOperationHas) {
  LabSpec spec;
  spec.m = 7, spec.k = 3, spec.depth = 5;
  const own::KernelContract product = kernel_contract(spec, 9);
  EXPECT_EQ(product.signature(), "matmul(a, b) -> c") << "as in a step";
  EXPECT_EQ(product.operands[1].rows, 3);
  EXPECT_EQ(product.operands[2].elements(), 63);
  spec.operation = Operation::Sine;
  EXPECT_EQ(kernel_contract(spec, 9).signature(), "sine(z) -> h");
  EXPECT_THAT(own::prelude(kernel_contract(spec, 9), "my.cu"), HasSubstr("constexpr int depth = 5;"));
  spec.operation = Operation::Softmax;
  EXPECT_EQ(kernel_contract(spec, 1000).operands[0].rows, 1);
  EXPECT_EQ(kernel_contract(spec, 4096).operands[0].rows, 4);
  EXPECT_THROW(kernel_contract(spec, 1500), Failure);
  spec.operation = Operation::Copy;
  EXPECT_THROW(kernel_contract(spec, int64_t{1} << 31), Failure);
  for (const Operation operation : kAll) {
    spec.operation = operation;
    const auto contract = kernel_contract(spec, 1024);
    int64_t bytes = 0;
    for (const own::Operand& o : contract.operands) bytes += 4 * o.elements();
    EXPECT_EQ(bytes, bytes_of(spec, 1024)) << to_string(operation);
    EXPECT_EQ(contract.operands.back().elements(), output_elements(spec, 1024)) << to_string(operation);
  }
}

TEST(LabKernels, AreNamedByTheirFile) {
  LabSpec spec;
  spec.kernels = {{"folder/first.cu", "text"}, {"second.cu", "text"}};
  EXPECT_EQ(label_of(spec, Way::GpuOwn2), "GPU, second.cu");
  EXPECT_EQ(label_of(spec, Way::GpuOwn), "GPU, first.cu");
  EXPECT_EQ(label_of(spec, Way::GpuOwn3), "GPU, your third kernel") << "of a result that lost its settings";
  EXPECT_EQ(label_of(spec, Way::GpuResident), info(Way::GpuResident).label);
}

#ifdef WARPSIGHT_HAVE_CUDA
TEST(LabKernels, EachFirstVersionCompiles) {
  for (const Operation operation : kAll)
    for (const int compute : {80, 90}) {
      LabSpec spec;
      spec.operation = operation;
      const own::KernelContract contract = kernel_contract(spec, 4096);
      EXPECT_EQ(build_own_kernel(contract, {"first.cu", own::first_version(contract)}, compute).errors(), "") << to_string(operation);
    }
}

std::string failure_of(const LabSpec& spec) {
  std::atomic<bool> cancel{false};
  Collect sink;
  return test::failure_text([&] { run_lab(spec, cancel, sink); });
}

TEST(LabKernels, WithoutAGpuTheyCompileAndSaySo) {
  if (device_info().cuda) GTEST_SKIP() << "this machine has a GPU";
  LabSpec spec = quick(Operation::Sine, {64});
  spec.kernels = {{"my.cu", own::first_version(kernel_contract(spec, 64))}};
  std::atomic<bool> cancel{false};
  Collect sink;
  const LabResult result = run_lab(spec, cancel, sink);
  EXPECT_EQ(result.points.size(), 2u) << "the CPU's variants";
  EXPECT_THAT(result.message, HasSubstr("my.cu compiles for sm_90: "));
  EXPECT_THAT(result.message, HasSubstr("it is not measured."));
  spec.ways = {Way::GpuResident};
  EXPECT_THAT(failure_of(spec), AllOf(HasSubstr("None of these variants can run here"), HasSubstr("my.cu compiles")));
  spec.ways = {Way::CpuLoops};
  spec.kernels = {{"my.cu", spec.kernels[0].text + "int wrong = undeclared;\n"}};
  EXPECT_THAT(failure_of(spec), HasSubstr("my.cu does not compile: line "));
  spec.kernels = {{"my.cu", "// For add(a, b) -> c\n"}};
  EXPECT_THAT(failure_of(spec), HasSubstr("my.cu was written for add(a, b) -> c"));
}
#endif

}  // namespace
}  // namespace ws::lab
