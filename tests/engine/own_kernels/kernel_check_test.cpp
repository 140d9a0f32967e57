// The check of a person's kernel, on the CPU: a stand-in takes the place of the GPU, and plays each kind of mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "engine/devices/own_kernels.h"
#include "engine/own_kernels/kernel_check.h"
#include "engine/passes/compile.h"

namespace ws {
namespace {

using ::testing::HasSubstr;

// What a kernel on the host gets: z, bias and h in memory with guards, and shared memory that holds `scratch`.
struct HostLaunch {
  const float *z, *bias;
  float* h;
  int64_t rows, cols;
  float scratch;
  int number;  // of this launch, from 0
  int64_t count() const { return rows * cols; }
};
using HostKernel = std::function<void(const HostLaunch&)>;

class HostBench final : public own::KernelBench {
 public:
  HostBench(const own::KernelContract& contract, HostKernel kernel) : contract_(contract), kernel_(std::move(kernel)) {}

  own::LaunchResult launch(const std::vector<own::Bytes>& operands, const own::LaunchState& state) override {
    std::vector<own::Bytes> blocks;
    for (const own::Bytes& bytes : operands) {
      own::Bytes& block = blocks.emplace_back(bytes.size() + 2 * kGuard, static_cast<char>(state.guard));
      std::ranges::copy(bytes, block.begin() + kGuard);
    }
    const own::Operand& h = contract_.operands[2];
    float scratch;
    std::memset(&scratch, state.scratch, sizeof scratch);
    const auto at = [&](size_t i) { return reinterpret_cast<float*>(blocks[i].data() + kGuard); };
    kernel_({at(0), at(1), at(2), h.rows, h.cols, scratch, launches_++});
    own::LaunchResult result;
    for (const own::Bytes& block : blocks) {
      result.operands.emplace_back(block.begin() + kGuard, block.end() - kGuard);
      const auto whole = [&](auto from, auto to) { return std::all_of(from, to, [&](char c) { return c == static_cast<char>(state.guard); }); };
      result.guards_hold.push_back(whole(block.begin(), block.begin() + kGuard) && whole(block.end() - kGuard, block.end()));
    }
    return result;
  }
  int launches() const { return launches_; }

 private:
  static constexpr int kGuard = 4096;
  const own::KernelContract& contract_;
  HostKernel kernel_;
  int launches_ = 0;
};

float value(const HostLaunch& l, int64_t i) { return std::max(0.f, l.z[i] + l.bias[i % l.cols]); }

class KernelCheck : public testing::Test {
 protected:
  static RunSpec spec() {
    RunSpec spec;
    spec.model.hidden = {32};
    spec.exec.fusion = Fusion::Pointwise;
    return spec;
  }
  const Plan plan_ = compile(spec(), make_model(spec().model, 20, 5), 16).plan;
  const size_t op_ = own::find_op(plan_, "bias+relu fc1");
  const own::KernelContract contract_ = own::contract_of(plan_, op_);

  OwnKernelVerdict judged(const HostKernel& kernel) {
    HostBench bench(contract_, kernel);
    const auto inputs = own::input_values(contract_, 7);
    return own::judge(contract_, Precision::Fp32, bench, inputs, expected_results(plan_, op_, inputs));
  }
  OwnKernelFault fault(const HostKernel& kernel) { return judged(kernel).fault; }
};

TEST_F(KernelCheck, ARightKernelPasses) {
  const OwnKernelVerdict verdict = judged([](const HostLaunch& l) {
    for (int64_t i = 0; i < l.count(); ++i) l.h[i] = value(l, i);
  });
  EXPECT_TRUE(verdict.good()) << verdict.sentence();
  EXPECT_EQ(verdict.error, 0);
}

// For arrays that are too large to compare: one launch, and only memory counts.
TEST_F(KernelCheck, MemoryAloneIsJudgedByOneLaunch) {
  const auto judged_memory = [&](const HostKernel& kernel) {
    HostBench bench(contract_, kernel);
    const OwnKernelFault fault = own::judge_memory(contract_, bench, own::input_values(contract_, 7)).fault;
    EXPECT_EQ(bench.launches(), 1);
    return fault;
  };
  EXPECT_EQ(judged_memory([](const HostLaunch&) {}), OwnKernelFault::None);
  EXPECT_EQ(judged_memory([](const HostLaunch& l) { l.h[l.count()] = 1; }), OwnKernelFault::WritesOutside);
  EXPECT_EQ(judged_memory([](const HostLaunch& l) { const_cast<float*>(l.z)[0] += 1; }), OwnKernelFault::WritesInput);
}

// Zeros find what random values hide: here a result that is right for all but the value 0.
TEST_F(KernelCheck, ZerosAreJudgedToo) {
  HostBench bench(contract_, [](const HostLaunch& l) {
    for (int64_t i = 0; i < l.count(); ++i) l.h[i] = l.z[i] == 0 && l.bias[i % l.cols] == 0 ? 1 : value(l, i);
  });
  const auto expected = [&](const std::vector<own::Bytes>& inputs) { return expected_results(plan_, op_, inputs); };
  EXPECT_EQ(own::judge_inputs(contract_, Precision::Fp32, bench, expected).fault, OwnKernelFault::WrongValue);
}

TEST_F(KernelCheck, WrongValuesAreShownAtTheWorstPlaceWithBothValues) {
  const OwnKernelVerdict verdict = judged([](const HostLaunch& l) {
    for (int64_t i = 0; i < l.count(); ++i) l.h[i] = value(l, i) + (i == 3 * l.cols + 5 ? 2.f : 0.f) + (i == 7 ? 0.5f : 0.f);
  });
  EXPECT_EQ(verdict.fault, OwnKernelFault::WrongValue);
  EXPECT_EQ(verdict.operand, "h");
  EXPECT_EQ(verdict.row, 3);
  EXPECT_EQ(verdict.col, 5);
  EXPECT_DOUBLE_EQ(verdict.own - verdict.expected, 2);
  EXPECT_THAT(verdict.sentence(), HasSubstr("h[3][5] is "));
}

TEST_F(KernelCheck, EachMistakeIsNamedAsWhatItIs) {
  using enum OwnKernelFault;
  const auto right = [](const HostLaunch& l) {
    for (int64_t i = 0; i < l.count(); ++i) l.h[i] = value(l, i);
  };
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count() - 1; ++i) l.h[i] = value(l, i);
            }),
            NotWritten);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i)
                if (value(l, i) > 0) l.h[i] = value(l, i);
            }),
            NotWritten);
  EXPECT_EQ(fault([&](const HostLaunch& l) { right(l); l.h[l.count()] = 1; }), WritesOutside);
  EXPECT_EQ(fault([&](const HostLaunch& l) { right(l); l.h[-1] = 1; }), WritesOutside);
  EXPECT_EQ(fault([&](const HostLaunch& l) { right(l); const_cast<float*>(l.z)[4] = 7; }), WritesInput);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i) l.h[i] = std::max(0.f, l.z[i] + l.bias[i % (l.cols + 1)]);
            }),
            ReadsOutside);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i) l.h[i] = std::max(0.f, l.z[i == 0 ? -1 : i] - 2);
            }),
            ReadsOutside);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i) l.h[i] += value(l, i);
            }),
            ReadsResult);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i) l.h[i] = i % 33 == 0 ? l.scratch : value(l, i);
            }),
            Uninitialised);
  EXPECT_EQ(fault([](const HostLaunch& l) {
              for (int64_t i = 0; i < l.count(); ++i) l.h[i] = value(l, i) + (i == 9 && l.number == 1 ? 1.f : 0.f);
            }),
            Varies);
}

TEST_F(KernelCheck, AWrongKernelIsLaunchedNoMoreThanNeeded) {
  HostBench bench(contract_, [](const HostLaunch& l) { l.h[l.count()] = 1; });
  const auto inputs = own::input_values(contract_, 7);
  EXPECT_FALSE(own::judge(contract_, Precision::Fp32, bench, inputs, expected_results(plan_, op_, inputs)).good());
  EXPECT_EQ(bench.launches(), 1);
}

TEST_F(KernelCheck, ErrorCodesOfCudaAreFaults) {
  EXPECT_EQ(fault_of_call("cudaErrorIllegalAddress"), OwnKernelFault::IllegalAddress);
  EXPECT_EQ(fault_of_call("cudaErrorMisalignedAddress"), OwnKernelFault::Misaligned);
  EXPECT_EQ(fault_of_call("cudaErrorMemoryAllocation"), OwnKernelFault::None);
  EXPECT_THAT(sentence_of(OwnKernelFault::Endless), HasSubstr("does not end within 1 s"));
}

// The CPU op of each op that takes a kernel, from operands of the plan's types.
TEST(ExpectedResults, EachOpHasThem) {
  int ops = 0;
  for (const Fusion fusion : {Fusion::Off, Fusion::Pointwise, Fusion::Epilogue})
    for (const Precision precision : {Precision::Fp32, Precision::Tf32, Precision::Bf16})
      for (const Optimizer optimizer : {Optimizer::Sgd, Optimizer::Momentum, Optimizer::AdamW}) {
        RunSpec spec;
        spec.model.hidden = {24, 16};
        spec.exec.fusion = fusion, spec.exec.precision = precision, spec.train.optimizer = optimizer;
        const Plan plan = compile(spec, make_model(spec.model, 20, 5), 16).plan;
        for (const std::string& name : own::op_names(plan)) {
          const size_t op = own::find_op(plan, name);
          const own::KernelContract contract = own::contract_of(plan, op);
          const auto results = expected_results(plan, op, own::input_values(contract, 7));
          ASSERT_EQ(results.size(), contract.operands.size());
          for (size_t i = 0; i < results.size(); ++i) {
            ASSERT_EQ(static_cast<int64_t>(results[i].size()), contract.operands[i].elements()) << name;
            EXPECT_TRUE(std::ranges::all_of(results[i], [](float v) { return std::isfinite(v); })) << name << " " << contract.operands[i].name;
          }
          ++ops;
        }
      }
  EXPECT_GT(ops, 150);
}

}  // namespace
}  // namespace ws
