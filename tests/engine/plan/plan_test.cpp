#include "engine/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/passes/compile.h"
#include "engine/executor/executor.h"
#include "engine/passes/passes.h"
#include "tests/support/op_kinds.h"

namespace ws {
namespace {

using ::testing::HasSubstr;

Plan mnist_plan(RunSpec spec = {}) { return build_plan(spec, make_model(spec.model, 784, 10), 64); }

TEST(Plan, OneRowMoreIsAnotherPlan) {
  const RunSpec spec;
  const Model model = make_model(spec.model, 784, 10);
  EXPECT_NE(plan_hash(build_plan(spec, model, 66667)), plan_hash(build_plan(spec, model, 66668)));
  EXPECT_EQ(plan_hash(mnist_plan()), plan_hash(mnist_plan()));
}

TEST(Plan, NaiveStepIsOneOpForOneThing) {
  const Plan plan = mnist_plan();
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{
                             "load batch",     "matmul", "broadcast bias", "add",           "activate",     "matmul",
                             "broadcast bias", "add",    "softmax",        "cross entropy", "softmax grad", "matmul",
                             "column sum",     "matmul", "activate grad",  "matmul",        "column sum",   "update",
                             "update",         "update", "update"}));
  EXPECT_NO_THROW(validate(plan));
}

TEST(Plan, CountsArithmetic) {
  const Plan plan = mnist_plan();
  const Op& first = plan.ops[1];
  EXPECT_EQ(flops(plan, first), 2 * 64 * 784 * 128);
  EXPECT_EQ(bytes(plan, first), 4 * (64 * 784 + 784 * 128 + 64 * 128));
  EXPECT_EQ(flops(plan, plan.ops[2]), 0);
}

TEST(Plan, PrintsEveryOpWithItsFormula) {
  const std::string text = print(mnist_plan());
  EXPECT_THAT(text, HasSubstr("z1 = x·W1"));
  EXPECT_THAT(text, HasSubstr("dW2 = h1ᵀ·dz2"));
  EXPECT_THAT(text, HasSubstr("dh1 = dz2·W2ᵀ"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 22);
}

TEST(Plan, IdFollowsWhatRuns) {
  const Model model = make_model({}, 784, 10);
  RunSpec spec;
  const std::string id = compile(spec, model, 64).plan.id;
  EXPECT_EQ(compile(spec, model, 64).plan.id, id);
  EXPECT_NE(compile(spec, model, 32).plan.id, id);
  spec.train.lr = 0.5;  // lives outside the plan: a change must not instantiate anything anew
  EXPECT_EQ(compile(spec, model, 64).plan.id, id);
  spec.exec.fusion = Fusion::Off;
  EXPECT_NE(compile(spec, model, 64).plan.id, id);
}

TEST(Plan, ValidationNamesTheOp) {
  Plan early = mnist_plan();
  std::swap(early.ops[1], early.ops[4]);
  EXPECT_THAT([&] { validate(early); }, testing::ThrowsMessage<Failure>(HasSubstr("before anything wrote it")));

  Plan shape = mnist_plan();
  shape.ops[1].transpose_b = true;
  EXPECT_THAT([&] { validate(shape); }, testing::ThrowsMessage<Failure>(HasSubstr("shapes do not fit")));

  Plan leak = place_memory(mnist_plan(), Allocator::Direct);
  std::erase_if(leak.ops, [](const Op& op) { return op.kind == OpKind::Free && op.name == "free h1"; });
  EXPECT_THAT([&] { validate(leak); }, testing::ThrowsMessage<Failure>(HasSubstr("h1 is never freed")));
}

TEST(Plan, SixteenBitKeepsMasterWeights) {
  RunSpec spec;
  spec.exec.precision = Precision::Fp16;
  const Plan plan = mnist_plan(spec);
  EXPECT_EQ(plan.buffer(plan.find("W1")).type, DType::F32);
  EXPECT_EQ(plan.buffer(plan.find("W1'")).type, DType::F16);
  EXPECT_EQ(plan.buffer(plan.find("h1")).type, DType::F16);
  EXPECT_EQ(plan.buffer(plan.find("dW1")).type, DType::F32);
  EXPECT_EQ(plan.find("b2'"), BufferId::None);  // added to an fp32 result
  EXPECT_THAT(kinds(plan), testing::Contains("check finite"));
  EXPECT_NO_THROW(validate(plan));
}

// What a machine's libraries chose stands beside what the passes said, once.
TEST(Plan, TakesNotesOfAnExecutor) {
  Plan plan = mnist_plan();
  plan.ops[1].note = "from rule bias+activation";
  std::vector<std::string> notes(plan.ops.size());
  notes[1] = "cuBLASLt", notes[5] = "own kernel";
  EXPECT_TRUE(add_notes(plan, notes));
  EXPECT_EQ(plan.ops[1].note, "from rule bias+activation; cuBLASLt");
  EXPECT_EQ(plan.ops[5].note, "own kernel");
  EXPECT_FALSE(add_notes(plan, notes)) << "nothing new";
  EXPECT_FALSE(add_notes(plan, {})) << "an executor that has nothing to say";
  EXPECT_EQ(plan.ops[1].note, "from rule bias+activation; cuBLASLt");
}

TEST(PlanEstimate, CountsParametersAndStep) {
  const PlanEstimate e = estimate({}, 784, 10, 60000);
  EXPECT_EQ(e.parameters, 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_GT(e.flops_per_step, 3 * 2 * 64 * 784 * 128 / 2);
}

}  // namespace
}  // namespace ws
