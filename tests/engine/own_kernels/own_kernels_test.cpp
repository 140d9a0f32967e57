// Kernels of a person: what the plan takes, what it refuses, and that each first version compiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_build.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/own_kernels/ptx_source.h"
#include "engine/own_kernels/triton_kernel.h"
#include "engine/passes/compile.h"
#include "tests/support/failure_text.h"
#include "tests/support/made_cubin.h"

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

std::string why(const RunSpec& spec) { return test::failure_text([&] { plan_of(spec); }); }

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

TEST(KernelBuild, MessagesOfTheAssemblerHaveTheirLines) {
  const auto notes = own::ptx_notes_of(
      "ptxas application ptx input, line 53; error   : Arguments mismatch for instruction 'fma'\n"
      "ptxas application ptx input, line 9; warning : unused\nptxas fatal   : Ptx assembly aborted due to errors\n");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0].line, 53);
  EXPECT_TRUE(notes[0].error);
  EXPECT_EQ(notes[0].text, "Arguments mismatch for instruction 'fma'");
  EXPECT_FALSE(notes[1].error);
  const auto fatal = own::ptx_notes_of("ptxas fatal   : Unresolved extern function 'f'\n");
  ASSERT_EQ(fatal.size(), 1u);
  EXPECT_TRUE(fatal[0].error);
  EXPECT_THAT(fatal[0].text, HasSubstr("Unresolved extern"));
}

// One line more at the end, and no other line moves.
TEST(PtxSource, EachInstructionGetsItsLine) {
  const std::string ptx = ".version 9.0\n.visible .entry own_kernel(\n  .param .u64 z\n)\n{\n  .reg .b32 %r<2>;\n  // ret;\n"
                          "again:\n  mov.u32 %r1,\n    %tid.x;\n  @%p1 bra again;\n{ call\n  f; }\n  ret;  // {\n}\n";
  const std::string lines = own::with_ptx_lines(ptx, "my.ptx");
  EXPECT_THAT(lines, HasSubstr(".loc 1 9 0   mov.u32 %r1,\n    %tid.x;\n.loc 1 11 0   @%p1 bra again;\n{ call\n  f; }\n.loc 1 14 0   ret;"));
  EXPECT_THAT(lines, HasSubstr("\nagain:\n"));
  EXPECT_THAT(lines, ::testing::EndsWith("}\n.file 1 \"my.ptx\"\n"));
  EXPECT_EQ(own::with_ptx_lines(lines, "my.ptx"), lines) << "lines of a compiler stay";
  EXPECT_THAT(own::with_ptx_lines("// x·W\n" + ptx, "my.ptx"), HasSubstr("// x??W\n")) << "the assembler takes no other letters";
}

TEST(TritonSource, AFirstVersionNamesItsOpOrItsLimit) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, "bias relu1"));
  const std::string text = own::first_triton(contract);
  EXPECT_EQ(own::op_of_source(text), contract.signature());
  EXPECT_THAT(text, HasSubstr("def own_kernel(z, bias, h, h_rows: tl.constexpr, h_cols: tl.constexpr, bias_cols: tl.constexpr, BLOCK: tl.constexpr):"));
  EXPECT_THROW(own::first_triton(own::contract_of(plan, own::find_op(plan, "fc1"))), Failure);
}

// A stand-in for Triton: it answers as Triton does, with machine code from a file. What the helper asks of it is in its answers.
class TritonStandIn : public testing::Test {
 protected:
  TritonStandIn() {
    std::filesystem::create_directories(folder_ + "/triton/compiler"), std::filesystem::create_directories(folder_ + "/triton/backends");
    std::ofstream(folder_ + "/triton/__init__.py") <<
        "import os\nfrom types import SimpleNamespace as N\nimport inspect\n__version__ = os.environ['STAND_IN_VERSION']\n"
        "def cdiv(a, b): return -(-a // b)\ndef next_power_of_2(n): return 1 << (n - 1).bit_length()\n"
        "class jit:\n  def __init__(self, fn):\n    self.fn, self.arg_names = fn, list(inspect.signature(fn).parameters)\n"
        "    self.raw_src, self.starting_line_number = inspect.getsourcelines(fn)\n"
        "    self.src = ''.join(self.raw_src)[''.join(self.raw_src).index('def '):]\n"
        "    self.params = [N(is_constexpr=p.annotation is not inspect.Parameter.empty) for p in inspect.signature(fn).parameters.values()]\n"
        "def compile(source, target, options):\n"
        "  if 'wrong' in source.fn.src:\n    problem = Exception('at 2:4')\n    problem.node, problem.src, problem.error_message = N(lineno=2), source.fn.src, 'wrong is not defined'\n    raise problem\n"
        "  print('seen', 1, target.arch, sorted(source.signature.items()), sorted(source.constexprs.items()), options)\n"
        "  pointers = [n for n, t in source.signature.items() if t != 'constexpr']\n"
        "  ptx = '.entry own_kernel(' + ','.join(['.param .u64 p'] * (len(pointers) + 2)) + ') .reqntid 128'\n"
        "  return N(metadata=N(name='own_kernel', shared=64, num_warps=4, num_ctas=1, global_scratch_size=int(os.environ.get('STAND_IN_SCRATCH', 0))), asm={'ptx': ptx, 'cubin': open(os.environ['STAND_IN_CODE'], 'rb').read()})\n";
    std::ofstream(folder_ + "/triton/language.py") << "class constexpr: pass\n";
    std::ofstream(folder_ + "/triton/compiler/__init__.py") << "class ASTSource:\n  def __init__(self, fn, signature, constexprs):\n    self.fn, self.signature, self.constexprs = fn, signature, constexprs\n";
    std::ofstream(folder_ + "/triton/backends/__init__.py") << "";
    std::ofstream(folder_ + "/triton/backends/compiler.py") << "class GPUTarget:\n  def __init__(self, kind, arch, warp): self.arch = arch\n";
    std::ofstream(folder_ + "/code") << test::made_cubin();
    setenv("PYTHONPATH", folder_.c_str(), 1), setenv("STAND_IN_CODE", (folder_ + "/code").c_str(), 1), setenv("STAND_IN_VERSION", "3.6.0", 1);
  }
  ~TritonStandIn() override {
    for (const char* name : {"PYTHONPATH", "STAND_IN_CODE", "STAND_IN_VERSION", "STAND_IN_SCRATCH"}) unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  own::KernelBuild build(const std::string& text) const { return own::build_triton(contract_, {"my.py", text}, 90); }
  const std::string folder_ = testing::TempDir() + "triton-" + std::to_string(getpid());
  const Plan plan_ = plan_of(spec_of(Fusion::Pointwise));
  const own::KernelContract contract_ = own::contract_of(plan_, own::find_op(plan_, "bias relu1"));
};

TEST_F(TritonStandIn, ItsAnswerIsTheLaunch) {
  const own::KernelBuild made = build(own::first_triton(contract_));
  ASSERT_TRUE(made.good() && made.facts) << made.errors();
  EXPECT_EQ(made.facts->threads, 128);
  EXPECT_EQ(made.facts->blocks, 1) << "16 rows of 32 in blocks of 1024";
  EXPECT_EQ(made.facts->dynamic_bytes, 64);
  EXPECT_EQ(made.hidden_pointers, 2);
  EXPECT_EQ(std::string(made.code.begin(), made.code.end()), test::made_cubin());
}

TEST_F(TritonStandIn, MistakesAreNamedAtTheirLines) {
  const std::string good = own::first_triton(contract_);
  const auto line_in = [](const std::string& text, const char* mark) { return 1 + std::ranges::count(text.substr(0, text.find(mark)), '\n'); };
  std::string wrong = good;
  wrong.replace(wrong.find("    i = "), 0, "    wrong = z\n");
  own::KernelBuild made = build(wrong);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0].line, line_in(wrong, "    wrong"));
  EXPECT_THAT(made.notes[0].text, HasSubstr("wrong is not defined"));
  const std::string syntax = good + "def (:\n";
  made = build(syntax);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0].line, line_in(syntax, "def (:"));
  std::string other = good;
  other.replace(other.find("z, bias, h,"), 11, "z, h,");
  EXPECT_THAT(build(other).errors(), HasSubstr("The parameters are z, bias, h, in this order"));
  std::string unknown = good;
  unknown.replace(unknown.find("BLOCK = 1024\n"), 13, "");
  EXPECT_THAT(build(unknown).errors(), ::testing::AnyOf(HasSubstr("define BLOCK in the file"), HasSubstr("BLOCK")));
}

TEST_F(TritonStandIn, AnUnknownVersionAndScratchMemoryAreRefused) {
  const std::string good = own::first_triton(contract_);
  setenv("STAND_IN_SCRATCH", "128", 1);
  EXPECT_THAT(build(good).errors(), HasSubstr("scratch memory of Triton"));
  setenv("STAND_IN_VERSION", "9.1.0", 1);
  EXPECT_THAT(build(good).errors(), HasSubstr("Triton 9.1.0 launches its kernels in a way that is not known here. Install Triton 3.3 to 3.6."));
  setenv("WARPSIGHT_PYTHON", "/nowhere/python3", 1);
  EXPECT_THROW(build(good), Failure);
  unsetenv("WARPSIGHT_PYTHON");
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

// The first version in PTX is launched as the one in CUDA.
TEST_F(OwnKernels, EachFirstVersionInPtxIsAssembledForEachGpu) {
  int made = 0;
  for (Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue})
    for (Precision precision : {Precision::Fp32, Precision::Bf16}) {
      const Plan plan = plan_of(spec_of(fusion, precision));
      for (const std::string& name : own::op_names(plan)) {
        const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, name));
        const std::string ptx = first_kernel(contract, own::KernelLanguage::Ptx);
        EXPECT_EQ(own::op_of_source(ptx), contract.signature());
        const own::KernelBuild cuda = build_own_kernel(contract, {"first.cu", own::first_version(contract)}, 90);
        for (int compute : {80, 90}) {
          const own::KernelBuild build = build_own_kernel(contract, {"first.ptx", ptx}, compute);
          ASSERT_TRUE(build.good() && build.facts) << name << ": " << build.errors() << "\n" << ptx;
          EXPECT_EQ(std::tuple(build.facts->blocks, build.facts->threads, build.facts->parameter_bytes), std::tuple(cuda.facts->blocks, cuda.facts->threads, cuda.facts->parameter_bytes));
          ++made;
        }
      }
    }
  EXPECT_GT(made, 60);
}

TEST_F(OwnKernels, AMistakeInPtxIsNamedAtItsLine) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, "bias relu1"));
  const std::string good = first_kernel(contract, own::KernelLanguage::Ptx);
  std::string text = good;
  text.replace(text.find("\tret;"), 5, "\tbogus.f32 %f1;");
  const own::KernelBuild build = build_own_kernel(contract, {"my.ptx", text}, 90);
  EXPECT_FALSE(build.good());
  ASSERT_FALSE(build.notes.empty());
  EXPECT_EQ(build.notes[0].line, 1 + std::ranges::count(text.substr(0, text.find("bogus")), '\n'));
  std::string quiet = good;
  quiet.replace(quiet.find(own::kLaunch), std::string(own::kLaunch).size(), "another_name");
  EXPECT_THAT(build_own_kernel(contract, {"my.ptx", quiet}, 90).errors(), HasSubstr("does not say how it is launched"));
}

TEST_F(OwnKernels, OtherParametersThanTheOpsAreRefused) {
  const Plan plan = plan_of(spec_of(Fusion::Pointwise));
  const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, "bias relu1"));
  for (const char* parameters : {"const z_t* z, h_t* h", "const z_t* z, const bias_t* bias, h_t* h, int more"}) {
    const std::string text = std::string("constexpr int kThreads = 32, kBlocks = 1, kSharedBytes = 0;\nextern \"C\" __global__ void own_kernel(") + parameters + ") {}\n";
    EXPECT_THAT(build_own_kernel(contract, {"my.cu", text}, 90).errors(), HasSubstr("this op passes 24: the addresses of z, bias, h")) << parameters;
  }
}

// With a real Triton, where there is one.
TEST_F(OwnKernels, FirstVersionsInTritonCompile) {
  if (std::system("${WARPSIGHT_PYTHON:-python3} -c 'import triton' 2>/dev/null") != 0) GTEST_SKIP() << "python3 has no Triton";
  int made = 0;
  for (Precision precision : {Precision::Fp32, Precision::Bf16})
    for (Activation activation : {Activation::Relu, Activation::Gelu}) {
      const Plan plan = plan_of(spec_of(Fusion::Off, precision, activation));
      for (const std::string& name : own::op_names(plan)) {
        const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, name));
        std::string text;
        try {
          text = first_kernel(contract, own::KernelLanguage::Triton);
        } catch (const Failure&) {
          continue;
        }
        const own::KernelBuild build = build_own_kernel(contract, {"first.py", text}, 90);
        EXPECT_TRUE(build.good()) << name << ": " << build.errors() << "\n" << text;
        ++made;
      }
    }
  EXPECT_GT(made, 12);
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
