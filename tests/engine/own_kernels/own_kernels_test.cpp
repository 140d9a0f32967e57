// Kernels of a person: what the plan takes, what it refuses, and that each first version compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
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
  OwnKernels() { setenv("WARPSIGHT_KERNELS", folder_.c_str(), 1); }
  ~OwnKernels() override {
    std::remove(file_.c_str());
    std::filesystem::remove_all(folder_);
  }
  const std::string folder_ = testing::TempDir() + "kernels-" + std::to_string(getpid());
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
  EXPECT_EQ(own::find_op(plan, "bias+relu fc1"), own::find_op(plan, "bias relu1")) << "an op is also named by its meaning and layer";
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
  spec.exec.kernels = std::ranges::find(plan.ops, OpKind::SoftmaxCrossEntropy, &Op::kind)->name + "=" + file_;
  EXPECT_THAT(why(spec), HasSubstr("takes no kernel of your own"));
  EXPECT_THAT(why_invalid(spec, false)->text, HasSubstr("needs a GPU"));
  spec.exec.launch = Launch::Persistent, spec.exec.fusion = Fusion::Epilogue;
  EXPECT_THAT(why_invalid(spec, true)->text, HasSubstr("persistent kernel runs no other kernel"));
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

TEST_F(OwnKernels, ARunNamesTheVersionsThatItUses) {
  RunSpec spec = spec_of(Fusion::Pointwise);
  spec.exec.kernels = "bias relu1=" + write("first text");
  own::fix_versions(spec);
  const std::string first = spec.exec.kernels;
  EXPECT_EQ(first, "bias relu1=" + file_ + "@" + own::version_of("first text"));
  write("second text");
  EXPECT_EQ(plan_of(spec).ops[own::find_op(plan_of(spec), "bias relu1")].own.text, "first text") << "the version of the run, not the file as it is now";
  spec.exec.kernels = "bias relu1=" + file_;
  own::fix_versions(spec);
  EXPECT_NE(spec.exec.kernels, first);
  std::remove(file_.c_str());
  EXPECT_EQ(plan_of(spec).ops[own::find_op(plan_of(spec), "bias relu1")].own.text, "second text") << "the file may vanish";
  spec.exec.kernels = "bias relu1=" + file_ + "@0123456789";
  EXPECT_THAT(why(spec), HasSubstr("this version is not on this machine"));
}

TEST_F(OwnKernels, AKernelOfAnotherOpIsRefusedWithTheDifference) {
  RunSpec spec = spec_of(Fusion::Off);
  const Plan off = plan_of(spec);
  const std::string text = own::first_version(own::contract_of(off, own::find_op(off, "fc1")));
  spec.exec.fusion = Fusion::Epilogue, spec.exec.kernels = "fc1=" + write(text);
  EXPECT_THAT(why(spec), HasSubstr("was written for matmul(a, b) -> c, and fc1 is now matmul(a, b, bias) -> h"));
}

TEST(KernelBuild, MessagesOfTheCompilerHaveTheirLines) {
  const auto notes = own::notes_of(
      "my.cu(12): warning #177-D: variable \"lane\" was declared but never referenced\n  int lane;\n      ^\n\n"
      "my.cu(14): error: expected a \";\"\nother.h(3): error: no\n1 error detected in the compilation of \"own_kernel.cu\".\n",
      "my.cu");
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0].line, 12);
  EXPECT_FALSE(notes[0].error);
  EXPECT_EQ(notes[0].number, "177-D");
  EXPECT_EQ(notes[1].line, 14);
  EXPECT_TRUE(notes[1].error);
  EXPECT_EQ(notes[1].text, "expected a \";\"");
  EXPECT_EQ(notes[2].line, 0) << "a header has lines of its own";
}

TEST(KernelBuild, OccupancyFollowsTheTightestLimit) {
  own::KernelFacts facts;
  facts.threads = 256, facts.registers = 32;
  EXPECT_EQ(own::occupancy_of(facts, 90)->warps, 64);
  EXPECT_EQ(own::occupancy_of(facts, 90)->limit(), "threads");
  facts.registers = 128;
  EXPECT_EQ(own::occupancy_of(facts, 90)->blocks, 2);
  EXPECT_EQ(own::occupancy_of(facts, 90)->limit(), "registers");
  facts.dynamic_bytes = 150 << 10;
  EXPECT_EQ(own::occupancy_of(facts, 90)->blocks, 1);
  EXPECT_EQ(own::occupancy_of(facts, 90)->limit(), "shared memory");
  EXPECT_FALSE(own::occupancy_of(facts, 42)) << "an unknown GPU";
  EXPECT_FALSE(own::facts_of(std::vector<char>(100, 'x'), 90)) << "no machine code";
}

#ifdef WARPSIGHT_HAVE_CUDA
TEST_F(OwnKernels, MachineCodeShowsRegistersMemoryAndTheLaunch) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const std::string text =
      "constexpr int kThreads = 96, kBlocks = 7, kSharedBytes = 512;\n"
      "extern \"C\" __global__ void own_kernel(const z_t* z, const bias_t* bias, h_t* h) {\n"
      "  __shared__ float tile[300];\n  tile[threadIdx.x] = z[threadIdx.x];\n  __syncthreads();\n  h[threadIdx.x] = tile[95 - threadIdx.x];\n}\n";
  for (const int compute : {80, 90}) {
    const own::KernelBuild build = build_own_kernel(plan, "bias relu1", {"my.cu", text}, compute);
    ASSERT_TRUE(build.good() && build.facts) << build.errors();
    EXPECT_TRUE(build.facts->has_kernel);
    EXPECT_EQ(build.facts->threads, 96);
    EXPECT_EQ(build.facts->blocks, 7);
    EXPECT_EQ(build.facts->dynamic_bytes, 512);
    EXPECT_EQ(build.facts->shared_bytes, 1200) << compute;
    EXPECT_GT(build.facts->registers, 4);
    EXPECT_GT(build.facts->instructions, 10);
  }
}

TEST_F(OwnKernels, AKernelMayIncludeItsOwnHeadersAndTheRanges) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const std::string header = testing::TempDir() + "own-header.h";
  std::ofstream(header) << "__device__ float twice(float x) { return 2 * x; }\n";
  std::string text = own::first_version(own::contract_of(plan, own::find_op(plan, "bias relu1")));
  text = "#include \"own-header.h\"\n#include <kernel_ranges.cuh>\n" + text.substr(text.find("constexpr"));
  const own::KernelBuild build = build_own_kernel(plan, "bias relu1", {testing::TempDir() + "my.cu", text}, 90);
  EXPECT_TRUE(build.good()) << build.errors();
  std::remove(header.c_str());
}

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
            EXPECT_TRUE(build_own_kernel(plan, name, {"first.cu", text}, compute).good()) << name;
        }
      }
  EXPECT_GT(seen.size(), 30u);
  for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Adam, Optimizer::AdamW}) {
    RunSpec spec = spec_of(Fusion::Pointwise, Precision::Bf16);
    spec.train.optimizer = optimizer;
    const Plan plan = plan_of(spec);
    const std::string text = own::first_version(own::contract_of(plan, own::find_op(plan, plan.ops.back().name)));
    EXPECT_THAT(build_own_kernel(plan, plan.ops.back().name, {"first.cu", text}, 90).errors(), "");
  }
}

TEST_F(OwnKernels, AMistakeIsNamedAtItsLine) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const std::string name = own::op_names(plan).front();
  std::string text = own::first_version(own::contract_of(plan, own::find_op(plan, name)));
  text += "\nint wrong = undeclared;\n";
  const auto line = 1 + std::ranges::count(text.substr(0, text.find("undeclared")), '\n');
  const own::KernelBuild build = build_own_kernel(plan, name, {"my.cu", text}, 90);
  EXPECT_FALSE(build.good());
  ASSERT_FALSE(build.notes.empty());
  for (const own::BuildNote& note : build.notes) {
    EXPECT_TRUE(note.error) << note.text;
    EXPECT_EQ(note.line, line) << note.text;
  }
  EXPECT_THAT(build.errors(), HasSubstr("undeclared"));
}
#endif

}  // namespace
}  // namespace ws
