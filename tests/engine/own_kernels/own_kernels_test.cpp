// Kernels of a person: what the plan takes, what it refuses, and that each first version compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/passes/compile.h"

namespace ws {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

RunSpec spec_of(Fusion fusion, Precision precision = Precision::Fp32, Activation activation = Activation::Relu) {
  RunSpec spec;
  spec.model.hidden = {32};
  spec.model.activation = activation;
  spec.exec.fusion = fusion, spec.exec.precision = precision;
  return spec;
}

Plan plan_of(const RunSpec& spec) { return compile(spec, make_model(spec.model, 20, 5), 16).plan; }

class OwnKernels : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(file_) << text;
    return file_;
  }
  ~OwnKernels() override { std::remove(file_.c_str()); }
  const std::string file_ = testing::TempDir() + "own-" + std::to_string(getpid()) + ".cu";
};

std::string why(const RunSpec& spec) {
  try {
    plan_of(spec);
  } catch (const Failure& problem) {
    return problem.what();
  }
  return "";
}

TEST_F(OwnKernels, APlanRunsTheFileThatAChoiceNames) {
  RunSpec spec = spec_of(Fusion::Pointwise);
  const Plan before = plan_of(spec);
  const std::string name = own::op_names(before).front();
  spec.exec.kernels = " " + name + " = " + write("first text") + " ; ";
  const Plan plan = plan_of(spec);
  const Op& op = plan.ops[own::find_op(plan, name)];
  EXPECT_EQ(op.own.text, "first text");
  EXPECT_THAT(op.note, HasSubstr(file_));
  write("another text");
  EXPECT_NE(plan_of(spec).id, plan.id) << "a saved change is another plan";
  EXPECT_FALSE(compile_evaluation(spec, make_model(spec.model, 20, 5), 16).plan.ops[1].own) << "tests run the built-in kernels";
}

TEST_F(OwnKernels, RefusalsNameTheirReason) {
  RunSpec spec = spec_of(Fusion::Pointwise);
  spec.exec.kernels = "fc9=" + write("text");
  EXPECT_THAT(why(spec), HasSubstr("no op “fc9”. Choose one of: "));
  spec.exec.kernels = "fc1";
  EXPECT_THAT(why(spec), HasSubstr("names no file"));
  spec.exec.kernels = "fc1=/nowhere/k.cu";
  EXPECT_THAT(why(spec), HasSubstr("/nowhere/k.cu: this kernel cannot be read"));
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  spec.exec.kernels = plan.ops.back().name + "=" + file_;
  EXPECT_THAT(why(spec), HasSubstr("takes no kernel of your own"));
  EXPECT_THAT(*why_invalid(spec, false), HasSubstr("needs a GPU"));
  spec.exec.launch = Launch::Persistent, spec.exec.fusion = Fusion::Epilogue;
  EXPECT_THAT(*why_invalid(spec, true), HasSubstr("persistent kernel runs no other kernel"));
}

TEST_F(OwnKernels, TheContractHasTheOperandsOfTheOp) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const auto fused = std::ranges::find(plan.ops, OpKind::BiasActivate, &Op::kind);
  const own::KernelContract contract = own::contract_of(plan, static_cast<size_t>(fused - plan.ops.begin()));
  ASSERT_EQ(contract.operands.size(), 3u);
  EXPECT_EQ(contract.operands[0].rows, 16);
  EXPECT_TRUE(contract.operands[2].written);
  EXPECT_THAT(own::prelude(contract, "my.cu"), HasSubstr("constexpr int h_cols = 32;"));
  EXPECT_THAT(own::prelude(contract, "a\"b.cu"), HasSubstr("#line 1 \"a_b.cu\""));
}

#ifdef WARPSIGHT_HAVE_CUDA
TEST_F(OwnKernels, EachFirstVersionCompilesForEachGpu) {
  std::vector<std::string> seen;
  for (Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue})
    for (Precision precision : {Precision::Fp32, Precision::Bf16, Precision::Fp16})
      for (Activation activation : {Activation::Relu, Activation::Gelu}) {
        const Plan plan = plan_of(spec_of(fusion, precision, activation));
        for (const std::string& name : own::op_names(plan)) {
          const size_t at = own::find_op(plan, name);
          const std::string text = own::first_version(own::contract_of(plan, at));
          const std::string key = own::prelude(own::contract_of(plan, at), "") + text;
          if (std::ranges::find(seen, key) != seen.end()) continue;
          seen.push_back(key);
          for (int compute : {80, 90})
            EXPECT_GT(compile_own_kernel(plan, name, {"first.cu", text}, compute), 0u) << name;
        }
      }
  EXPECT_GT(seen.size(), 30u);
}

TEST_F(OwnKernels, AMistakeIsNamedAtItsLine) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const std::string name = own::op_names(plan).front();
  std::string text = own::first_version(own::contract_of(plan, own::find_op(plan, name)));
  text += "\nint wrong = undeclared;\n";
  const auto line = 1 + std::ranges::count(text.substr(0, text.find("undeclared")), '\n');
  try {
    compile_own_kernel(plan, name, {"my.cu", text}, 90);
    FAIL() << "it compiled";
  } catch (const Failure& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("my.cu(" + std::to_string(line) + ")"));
  }
}
#endif

}  // namespace
}  // namespace ws
