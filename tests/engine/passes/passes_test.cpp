#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "engine/passes/lifetimes.h"
#include "engine/passes/passes.h"
#include "engine/plan/model.h"
#include "engine/plan/op_tags.h"
#include "tests/support/op_kinds.h"

namespace ws {
namespace {

using ::testing::Contains;
using ::testing::Not;

Plan built(RunSpec spec, int64_t batch = 64) { return build_plan(spec, make_model(spec.model, 784, 10), batch); }

TEST(Fuse, OffChangesNothing) { EXPECT_EQ(print(fuse(built({}), Fusion::Off)), print(built({}))); }

TEST(Fuse, Pointwise) {
  const Plan plan = fuse(built({}), Fusion::Pointwise);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "matmul", "bias activate", "matmul", "bias activate",
                                                   "softmax cross entropy", "matmul", "column sum", "matmul",
                                                   "activate grad", "matmul", "column sum", "update all"}));
  EXPECT_NO_THROW(validate(plan));
  EXPECT_EQ(plan.find("c1"), BufferId::None) << "the materialised bias is gone";
}

TEST(Fuse, Epilogue) {
  const Plan plan = fuse(built({}), Fusion::Epilogue);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "matmul", "output layer", "gradient update"}));
  EXPECT_EQ(plan.ops[1].epilogue, Epilogue::BiasActivate);
  EXPECT_EQ(plan.find("dW1"), BufferId::None) << "no weight gradient is stored";
  EXPECT_EQ(gradient_items(plan, plan.ops[3]).size(), 2u);
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, AnOpOfTwoKindsHasTheKindOfMostOfItsWork) {
  const Plan apart = fuse(built({}), Fusion::Pointwise), fused = fuse(built({}), Fusion::Epilogue);
  const Op &both = fused.ops[3], &update = apart.ops.back();
  EXPECT_GT(flops(fused, both) - flops(apart, update), flops(apart, update)) << "the products of the gradients";
  EXPECT_EQ(meaning_of(both), prof::Meaning::Matrix);
  EXPECT_EQ(meaning_of(update), prof::Meaning::Optimizer);
}

TEST(Fuse, TransformerBlocksKeepNoAdditionAndOneOpOfWeightGradients) {
  RunSpec spec;
  spec.model.layers = "embed 128 | 4 x block(heads 4) | layernorm | linear";
  const Model model = make_model(spec.model, LayerShape::symbols(128), 96);
  const Plan plan = fuse(build_plan(spec, model, 32), Fusion::Epilogue);
  const std::vector<std::string> all = kinds(plan);
  EXPECT_THAT(all, Not(Contains("add")));
  EXPECT_EQ(std::ranges::count(all, "matmul"), 2 * 17) << "the forward products and the gradients of their inputs";
  ASSERT_EQ(std::ranges::count(all, "weight gradients"), 1);
  const auto op = std::ranges::find(plan.ops, OpKind::WeightGradients, &Op::kind);
  EXPECT_EQ(weight_gradient_items(*op).size(), 17u);
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, WeightGradientsOfManyRowsStayAlone) {
  RunSpec spec;
  spec.model.layers = "embed 128 | 4 x block(heads 4) | layernorm | linear";
  const Model model = make_model(spec.model, LayerShape::symbols(128), 96);
  EXPECT_THAT(kinds(fuse(build_plan(spec, model, 128), Fusion::Epilogue)), Not(Contains("weight gradients")));
}

TEST(Fuse, BiasGradientsOfManyRowsAreSummedWhereTheirTermsAreMade) {
  RunSpec spec;
  spec.model.layers = "embed 128 | 4 x block(heads 4) | layernorm | linear";
  const Model model = make_model(spec.model, LayerShape::symbols(128), 96);
  const auto sums_of = [&](int64_t batch) {  // ops that sum the columns of dx or dz
    const Plan plan = fuse(build_plan(spec, model, batch), Fusion::Epilogue);
    EXPECT_NO_THROW(validate(plan));
    EXPECT_THAT(kinds(plan), Not(Contains("column sum")));
    const auto with_sums = [&](OpKind kind, size_t outputs) {
      return std::ranges::count_if(plan.ops, [&](const Op& op) { return op.kind == kind && op.out.size() == outputs; });
    };
    return std::tuple(with_sums(OpKind::LayerNormGrad, 4), with_sums(OpKind::AttentionGrad, 2),
                      std::ranges::count(plan.ops, Epilogue::BiasGrad, &Op::epilogue));
  };
  EXPECT_EQ(sums_of(128), std::tuple(2l * 4, 4l, 1l + 4)) << "only products with a gelu's gradient and the logits' are left";
  EXPECT_EQ(sums_of(64), std::tuple(0l, 0l, 1l)) << "the op of all weight gradients sums the columns too";
}

TEST(Fuse, EpilogueOfALargeBatchMakesTwoProducts) {
  const Plan plan = fuse(built({}, 4096), Fusion::Epilogue);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "matmul", "output layer", "matmul", "update all"}));
  EXPECT_EQ(plan.ops[3].epilogue, Epilogue::None) << "the output layer sums what the biases need";
  EXPECT_EQ(output_parts(plan.ops[2]).db_before, plan.find("db1"));
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, EpilogueOfALargeBatchAndAWideLayerKeepsSeparateProducts) {
  RunSpec spec;
  spec.model.hidden = {512};
  const Plan plan = fuse(built(spec, 4096), Fusion::Epilogue);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "matmul", "matmul", "softmax cross entropy", "matmul",
                                                   "matmul", "matmul", "update all"}));
  EXPECT_EQ(plan.ops[1].epilogue, Epilogue::BiasActivate);
  EXPECT_EQ(plan.ops[2].epilogue, Epilogue::Bias);
  EXPECT_EQ(plan.ops[4].epilogue, Epilogue::BiasGrad);
  EXPECT_EQ(plan.ops[5].epilogue, Epilogue::ActivateGrad);
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, KeepsThePreActivationThatGeluNeeds) {
  RunSpec spec;
  spec.model.activation = Activation::Gelu;
  const Plan plan = fuse(built(spec), Fusion::Epilogue);
  EXPECT_EQ(plan.ops[1].out.size(), 2u);
  EXPECT_EQ(plan.buffer(plan.ops[1].out[1]).name, "s1");
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, LineBecomesOnePass) {
  RunSpec spec;
  spec.model.kind = ModelKind::Linear;
  spec.model.loss = LossKind::MeanSquared;
  spec.train.optimizer = Optimizer::Sgd;
  const Plan plan = fuse(build_plan(spec, make_model(spec.model, 1, 1), 1000), Fusion::Pointwise);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "linear step", "update all"}));
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, LineMovesItsOwnParameters) {
  RunSpec spec;
  spec.model.kind = ModelKind::Linear;
  spec.model.loss = LossKind::MeanSquared;
  const Plan plan = fuse(build_plan(spec, make_model(spec.model, 1, 1), 1000), Fusion::Epilogue);
  EXPECT_EQ(kinds(plan), (std::vector<std::string>{"load batch", "linear update"}));
  EXPECT_EQ(update_items(plan, plan.ops[1]).size(), 2u);
  EXPECT_NO_THROW(validate(plan));
}

TEST(Fuse, LayersWithoutBias) {
  RunSpec spec;
  spec.model.bias = false;
  spec.model.hidden = {32, 32};
  const Plan plan = fuse(built(spec), Fusion::Epilogue);
  EXPECT_EQ(kinds(plan),
            (std::vector<std::string>{"load batch", "matmul", "matmul", "output layer", "matmul", "gradient update"}));
  EXPECT_EQ(plan.ops[1].epilogue, Epilogue::BiasActivate);
  EXPECT_NO_THROW(validate(plan));
}

// The readers of a buffer are counted once, not for each op again.
TEST(Fuse, TakesNotMuchLongerThanBuildingAPlanOfManyLayers) {
  RunSpec spec;
  spec.model.hidden = std::vector<int64_t>(1000, 8);
  const auto least_of = [](const auto& work) {
    std::clock_t least = std::numeric_limits<std::clock_t>::max();
    for (int i = 0; i < 3; ++i) {
      const std::clock_t begin = std::clock();
      work();
      least = std::min(least, std::clock() - begin);
    }
    return least;
  };
  const Plan plan = built(spec);
  const std::clock_t building = least_of([&] { built(spec); }), fusing = least_of([&] { fuse(plan, Fusion::Pointwise); });
  EXPECT_LT(fusing, 40 * building);
}

TEST(Fuse, NeverMergesWhatIsReadTwice) {
  Plan plan = built({});
  Op reader = plan.ops[4];  // a second reader of the spread bias
  reader.in = {plan.find("c1")};
  reader.out = {plan.find("h1")};
  plan.ops.insert(plan.ops.begin() + 5, reader);
  EXPECT_THAT(kinds(fuse(plan, Fusion::Pointwise)), Contains("broadcast bias"));
}

TEST(PlaceMemory, DirectIsOnePairForEachIntermediate) {
  const Plan before = built({});
  const Plan plan = place_memory(before, Allocator::Direct);
  const auto temps = std::ranges::count_if(before.buffers, lives_in_step);
  EXPECT_EQ(std::ranges::count(kinds(plan), "alloc"), temps);
  EXPECT_EQ(std::ranges::count(kinds(plan), "free"), temps);
  EXPECT_NO_THROW(validate(plan));
  EXPECT_EQ(plan.arena_bytes, 0);
}

void expect_disjoint(const Plan& plan) {
  const auto lives = lifetimes(plan);
  for (size_t a = 0; a < lives.size(); ++a)
    for (size_t b = a + 1; b < lives.size(); ++b) {
      if (lives[a].first < 0 || lives[b].first < 0 || lives[a].first > lives[b].last || lives[b].first > lives[a].last)
        continue;
      const Buffer &x = plan.buffers[a], &y = plan.buffers[b];
      EXPECT_TRUE(x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset)
          << x.name << " and " << y.name << " overlap";
    }
}

TEST(PlaceMemory, ArenaIsDisjointAndNearTheLowerBound) {
  std::mt19937 rng(3);
  for (int round = 0; round < 40; ++round) {
    RunSpec spec;
    spec.model.hidden.resize(rng() % 6);
    for (auto& width : spec.model.hidden) width = 16 + static_cast<int64_t>(rng() % 900);
    const Fusion level = static_cast<Fusion>(rng() % 3);
    const Plan plan = place_memory(fuse(built(spec, 1 + static_cast<int64_t>(rng() % 600)), level), Allocator::Arena);
    expect_disjoint(plan);
    const double bound = static_cast<double>(live_lower_bound(plan)) + 256.0 * static_cast<double>(plan.buffers.size());
    EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * bound) << print(plan);
    EXPECT_THAT(kinds(plan), Not(Contains("alloc")));
  }
}

TEST(InsertSync, Policies) {
  const Plan before = built({});
  EXPECT_EQ(std::ranges::count(kinds(insert_sync(before, SyncPolicy::EveryOp)), "sync"),
            static_cast<long>(before.ops.size()));
  const Plan each_step = insert_sync(before, SyncPolicy::EveryStep);
  EXPECT_EQ(std::ranges::count(kinds(each_step), "sync"), 1);
  EXPECT_EQ(each_step.ops.back().kind, OpKind::Sync);
  EXPECT_THAT(kinds(insert_sync(before, SyncPolicy::OnRead)), Not(Contains("sync")));
}

}  // namespace
}  // namespace ws
