// Where a network is placed for one kernel of many steps, and what the reason says when it does not fit. Needs no GPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

#include "engine/cuda/persistent/kernel_source.h"
#include "engine/cuda/persistent/residency.h"
#include "engine/passes/compile.h"

namespace ws::cuda::persistent {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Network network(std::vector<int64_t> widths, int64_t batch, Precision precision, Optimizer optimizer = Optimizer::Sgd) {
  Network n;
  n.widths = std::move(widths);
  n.batch = batch;
  n.precision = precision;
  n.optimizer = optimizer;
  return n;
}

Residency residency_of(const Network& n) { return place(n, Limits{}).residency; }

TEST(PersistentRule, PlacesTheNetworksOfThePresets) {
  Network iris = network({4, 5, 3}, 120, Precision::Fp32);
  iris.all_rows = true;
  EXPECT_EQ(residency_of(iris), Residency::Rows);
  EXPECT_EQ(residency_of(network({2, 24, 24, 3}, 64, Precision::Fp32, Optimizer::Adam)), Residency::Block);
  for (const Precision p : {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16})
    EXPECT_EQ(residency_of(network({784, 128, 10}, 64, p, Optimizer::Momentum)), Residency::Cluster) << to_string(p);
  EXPECT_EQ(residency_of(network({784, 128, 10}, 128, Precision::Tf32)), Residency::Cluster);
}

TEST(PersistentRule, OneRowBlockBecomesAllWithManyRows) {
  Network line = network({1, 1}, 1000, Precision::Fp32);
  line.all_rows = true, line.loss = LossKind::MeanSquared;
  EXPECT_EQ(place(line, Limits{}).blocks, 1);
  line.batch = 50'000;
  EXPECT_EQ(place(line, Limits{}).blocks, 16);
  EXPECT_EQ(place(line, Limits{}).why_slow, "");
  line.batch = 5'000'000;
  EXPECT_EQ(place(line, Limits{}).blocks, 132) << "few sums need no cluster, so no multiprocessor is left out";
  EXPECT_EQ(place(line, Limits{}).cluster, 1);
  EXPECT_EQ(place(line, Limits{}).why_slow, "");
  line.batch = 50'000'000;
  EXPECT_EQ(place(line, Limits{}).residency, Residency::None);
  EXPECT_THAT(place(line, Limits{}).why_not, HasSubstr("a batch of 50000000 rows needs"));
}

TEST(PersistentRule, ReportsInNumbersWhyNothingFits) {
  const Placement wide = place(network({784, 4096, 4096, 10}, 64, Precision::Tf32), Limits{});
  EXPECT_EQ(wide.residency, Residency::None);
  EXPECT_THAT(wide.why_not, StartsWith("persistent: "));
  EXPECT_THAT(wide.why_not, HasSubstr("KB of shared memory and has 227 KB"));
  EXPECT_THAT(wide.why_not, Not(HasSubstr("cluster"))) << "only the limit that binds";
}

// One sentence with the number that does not fit and its limit, and nothing else.
TEST(PersistentRule, NamesTheLimitThatBinds) {
  const auto reason = [](const Network& n, int compute = 90) {
    Limits limits;
    limits.compute = compute;
    return place(n, limits).why_not;
  };
  const std::string advice = ". Choose launch graph, or a smaller network or batch.";
  EXPECT_EQ(reason(network({784, 128, 10}, 512, Precision::Fp16)),
            "persistent: a cluster holds at most 128 rows of a batch, this network has 512" + advice);
  EXPECT_EQ(reason(network({784, 128, 10}, 513, Precision::Tf32)),
            "persistent: a cluster holds at most 512 rows of a batch, this network has 513" + advice);
  EXPECT_EQ(reason(network({784, 300, 10}, 200, Precision::Tf32)),
            "persistent: a grid holds at most 128 rows of a batch, this network has 200" + advice);
  EXPECT_EQ(reason(network({784, 128, 128, 40}, 64, Precision::Tf32)),
            "persistent: a grid holds at most 32 outputs, this network has 40" + advice);
  EXPECT_EQ(reason(network({784, 9, 9, 9, 9, 9, 9, 10}, 64, Precision::Fp16)),
            "persistent: a grid holds at most 5 hidden layers, this network has 6" + advice);
  EXPECT_THAT(reason(network({784, 128, 10}, 64, Precision::Tf32), 80), HasSubstr("one block would need"));
  EXPECT_EQ(reason(network({784, 128, 10}, 64, Precision::Fp16), 80),
            "persistent: without clusters one block computes in fp32 or tf32 only" + advice);
}

TEST(PersistentRule, SeveralClustersShareALargerBatch) {
  for (const auto& [batch, precision, clusters, rows] : {std::tuple{128, Precision::Tf32, 1, 128},
                                                         {129, Precision::Tf32, 4, 64},
                                                         {256, Precision::Bf16, 4, 64},
                                                         {512, Precision::Tf32, 4, 128}}) {
    const Placement made = place(network({784, 128, 10}, batch, precision), Limits{});
    ASSERT_EQ(made.residency, Residency::Cluster) << made.why_not;
    EXPECT_EQ(made.blocks, 16 * clusters) << batch;
    EXPECT_EQ(std::ranges::find(made.constants, "batch", &Constant::name)->value, rows) << batch;
    EXPECT_EQ(made.exchange_bytes > 0, clusters > 1);
  }
}

Network whole_set(std::vector<int64_t> widths, int64_t rows, Precision precision) {
  Network n = network(std::move(widths), rows, precision);
  n.all_rows = true;
  return n;
}

TEST(PersistentRule, AWholeSetFlowsThroughAllMultiprocessors) {
  const auto constant = [](const Placement& made, const char* name) {
    return std::ranges::find(made.constants, name, &Constant::name)->value;
  };
  for (const Precision p : {Precision::Tf32, Precision::Bf16}) {
    const Placement made = place(whole_set({784, 128, 10}, 60'000, p), Limits{});
    ASSERT_EQ(made.residency, Residency::Flow) << made.why_not;
    EXPECT_EQ(made.why_slow, "");
    EXPECT_EQ(made.blocks, 132);
    EXPECT_EQ(made.cluster, 1);
    EXPECT_EQ(made.row_bytes, 1600);
    EXPECT_EQ(constant(made, "slices") * constant(made, "slice_columns"), 800) << "784 inputs, a bias, and padding";
    EXPECT_EQ(constant(made, "slices") * constant(made, "row_parts"), made.blocks);
    EXPECT_GE(constant(made, "groups") * made.row_group, 60'000);
  }
  for (const int64_t inputs : {1, 31, 60, 300, 784, 1000, 1600}) {
    const Placement made = place(whole_set({inputs, 100, 16}, 3000, Precision::Tf32), Limits{});
    if (made.residency != Residency::Flow) continue;  // few inputs fit in one block
    EXPECT_GE(constant(made, "columns"), inputs + 1);
    EXPECT_EQ(constant(made, "columns") % 32, 0);
    EXPECT_LE(constant(made, "slice_columns"), 208);
    EXPECT_LE(made.shared_bytes, Limits{}.shared_bytes);
    EXPECT_FALSE(kernel_source(made).empty());
  }
  EXPECT_EQ(place(whole_set({784, 16, 10}, 10'000, Precision::Tf32), Limits{}).why_slow, "");
  EXPECT_EQ(place(whole_set({20, 16, 10}, 1000, Precision::Tf32), Limits{}).why_slow, "");
  EXPECT_EQ(place(whole_set({784, 16, 10}, 1000, Precision::Tf32), Limits{}).why_slow,
            "persistent: with 1000 rows of 784 inputs a CUDA graph is at least as fast.");
  // A launch takes at most 20 ms.
  EXPECT_LT(place(whole_set({784, 128, 10}, 1'000'000, Precision::Tf32), Limits{}).most_steps, 25);
}

TEST(PersistentRule, ReportsWhyAWholeSetDoesNotFlow) {
  const auto reason = [](Network n) { return place(n, Limits{}).why_not; };
  EXPECT_THAT(reason(whole_set({784, 128, 10}, 60'000, Precision::Fp32)),
              HasSubstr("a batch of 60000 rows needs tf32 or bf16, this network computes in fp32"));
  Network squares = whole_set({784, 128, 10}, 60'000, Precision::Tf32);
  squares.loss = LossKind::MeanSquared;
  EXPECT_THAT(reason(squares), HasSubstr("60000 rows in tf32 needs the cross-entropy loss"));
  squares.precision = Precision::Bf16;
  EXPECT_EQ(residency_of(squares), Residency::Flow);
  Network apart = whole_set({784, 128, 10}, 60'000, Precision::Tf32);
  apart.largest_input = 1024, apart.smallest_input = 1.f / 1024;
  EXPECT_THAT(reason(apart), HasSubstr("differ by a factor of 1048576 (at most 524288)"));
  apart.smallest_input = 1.f / 512;
  EXPECT_EQ(residency_of(apart), Residency::Flow);
  EXPECT_THAT(reason(whole_set({2000, 128, 10}, 60'000, Precision::Tf32)),
              HasSubstr("holds at most 1600 inputs, this network has 2000"));
  EXPECT_THAT(reason(whole_set({784, 128, 10}, 100'000'000, Precision::Tf32)), HasSubstr("ms, and a launch may take 20 ms"));
  EXPECT_THAT(reason(network({784, 128, 10}, 30'000, Precision::Tf32)), HasSubstr("a cluster holds at most 512 rows"));
}

TEST(PersistentRule, AFlowReportsHowItComputes) {
  EXPECT_THAT(text(place(whole_set({784, 128, 10}, 60'000, Precision::Tf32), Limits{})),
              AllOf(HasSubstr("residency flow, 132 blocks of 384 threads"), HasSubstr("as many bits as tf32")));
  EXPECT_THAT(text(place(whole_set({784, 128, 10}, 60'000, Precision::Bf16), Limits{})), Not(HasSubstr("tf32")));
}

// The power of two above the largest input, which scales the rows.
TEST(PersistentRule, RowsAreScaledByTheLargestInput) {
  for (const auto& [largest, exponent] : {std::pair{1.f, 1}, {0.3f, 1}, {255.f, 8}, {256.f, 9}}) {
    Network n = whole_set({784, 128, 10}, 60'000, Precision::Tf32);
    n.largest_input = n.smallest_input = largest;
    const Placement made = place(n, Limits{});
    EXPECT_EQ(std::ranges::find(made.constants, "row_exponent", &Constant::name)->value, exponent)
        << largest << "; the bias is an input of 1";
  }
}

TEST(PersistentRule, NarrowLayersAreCopiedToEveryBlock) {
  for (const Network& n : {network({784, 128, 128, 128, 10}, 32, Precision::Fp16),
                           network({784, 16, 16, 16, 10}, 64, Precision::Bf16, Optimizer::Momentum),
                           network({300, 64, 100, 16}, 20, Precision::Fp16, Optimizer::Adam)}) {
    const Placement made = place(n, Limits{});
    EXPECT_EQ(made.residency, Residency::Copies) << made.why_not;
    EXPECT_EQ(made.blocks, 16);
    EXPECT_LE(made.shared_bytes, Limits{}.shared_bytes);
    EXPECT_EQ(made.budget.size(), 2u);
  }
  EXPECT_EQ(residency_of(network({784, 128, 128, 128, 10}, 32, Precision::Tf32)), Residency::Grid);
  EXPECT_EQ(residency_of(network({784, 128, 128, 128, 10}, 32, Precision::Fp16, Optimizer::Adam)), Residency::Grid)
      << "three times the registers";
  EXPECT_EQ(residency_of(network({784, 129, 128, 10}, 32, Precision::Fp16)), Residency::Grid);
}

TEST(PersistentRule, LeavesToGraphsWhatTheyDoFaster) {
  Limits older;
  older.compute = 80;
  const Placement spirals = place(network({2, 64, 64, 3}, 64, Precision::Fp32, Optimizer::Adam), older);
  EXPECT_EQ(spirals.residency, Residency::None);
  EXPECT_THAT(spirals.why_not, HasSubstr("µs per step, which is longer than a CUDA graph takes"));
}

// Every cluster of eight blocks has units to own: fifteen at most, and each owns a multiple of four.
TEST(PersistentRule, WideAndDeepNetworksUseManyMultiprocessors) {
  const std::pair<Network, int> cases[] = {
      {network({784, 784, 784, 784, 784, 10}, 64, Precision::Tf32), 14},
      {network({784, 1024, 1024, 1024, 10}, 32, Precision::Fp16), 15},
      {network({784, 200, 10}, 128, Precision::Bf16, Optimizer::Adam), 13},
      {network({2, 64, 64, 3}, 64, Precision::Fp32), 8},
      {network({784, 64, 1024, 10}, 64, Precision::Fp32), 15}};
  for (const auto& [n, clusters] : cases) {
    const Placement made = place(n, Limits{});
    EXPECT_EQ(made.residency, Residency::Grid) << made.why_not;
    EXPECT_EQ(made.blocks, 8 * clusters);
    EXPECT_LE(made.shared_bytes, Limits{}.shared_bytes);
  }
  EXPECT_THAT(place(network({784, 784, 784, 784, 784, 10}, 128, Precision::Tf32), Limits{}).why_not,
              HasSubstr("a block of the grid would need"));
}

TEST(PersistentRule, AThreadMovesOneOutputWeight) {
  EXPECT_EQ(residency_of(network({30, 1500, 32}, 64, Precision::Fp32)), Residency::Grid);
  EXPECT_THAT(place(network({30, 3000, 32}, 64, Precision::Fp32), Limits{}).why_not,
              HasSubstr("at most 512 output weights, this network has 832 for each"));
}

// Moments that do not fit beside the weights stay in device memory.
TEST(PersistentRule, MomentsGoToDeviceMemoryWhereTheyDoNotFit) {
  const auto moments_shared = [](const Network& n) {
    const Placement made = place(n, Limits{});
    return std::ranges::find(made.constants, "state_shared", &Constant::name)->value;
  };
  EXPECT_EQ(moments_shared(network({784, 200, 200, 10}, 64, Precision::Tf32, Optimizer::Adam)), 1);
  EXPECT_EQ(moments_shared(network({784, 784, 784, 784, 784, 10}, 64, Precision::Tf32, Optimizer::Momentum)), 0);
}

TEST(PersistentRule, GpusWithoutClustersKeepTheBlock) {
  Limits older;
  older.compute = 80, older.shared_bytes = 163 << 10;
  EXPECT_EQ(place(network({784, 128, 10}, 64, Precision::Tf32), older).residency, Residency::None);
  EXPECT_THAT(place(network({784, 128, 10}, 64, Precision::Tf32), older).why_not, HasSubstr("compute capability 9.0"));
  EXPECT_EQ(place(network({2, 24, 24, 3}, 64, Precision::Tf32), older).residency, Residency::Block);
}

TEST(PersistentRule, BudgetFitsTheLimits) {
  for (const int64_t inputs : {10, 100, 300, 784, 2000})
    for (const int64_t hidden : {20, 64, 100, 128})
      for (const int64_t batch : {1, 64, 100, 128})
        for (const Precision p : {Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16})
          for (const Optimizer o : {Optimizer::Sgd, Optimizer::Adam}) {
            const Placement made = place(network({inputs, hidden, 10}, batch, p, o), Limits{});
            if (made.residency == Residency::None) {
              EXPECT_THAT(made.why_not, StartsWith("persistent: "));
              continue;
            }
            EXPECT_LE(made.shared_bytes, Limits{}.shared_bytes);
            EXPECT_GT(made.threads, 0);
            EXPECT_FALSE(made.budget.empty());
            EXPECT_FALSE(kernel_source(made).empty());
          }
}

TEST(PersistentRule, TextNamesResidencyAndBudget) {
  const std::string placement = text(place(network({784, 128, 10}, 64, Precision::Tf32), Limits{}));
  EXPECT_THAT(placement, HasSubstr("residency cluster, 16 blocks of 384 threads"));
  EXPECT_THAT(placement, HasSubstr("registers per thread"));
  EXPECT_THAT(placement, HasSubstr("KB of 227 KB"));
}

TEST(PersistentRule, ReadsTheNetworkFromThePlan) {
  RunSpec spec;
  spec.model.hidden = {20, 30};
  spec.train.weight_decay = 0.1;
  const Model model = make_model(spec.model, 7, 3);
  const Network n = network_of(spec, compile(spec, model, 16).plan, 100);
  EXPECT_EQ(n.widths, (std::vector<int64_t>{7, 20, 30, 3}));
  EXPECT_EQ(n.batch, 16);
  EXPECT_TRUE(n.decays);
  EXPECT_FALSE(n.all_rows);
  EXPECT_TRUE(network_of(spec, compile(spec, model, 100).plan, 100).all_rows);
}

TEST(PersistentSource, HoldsTheShapesOfItsProducts) {
  const std::string source = kernel_source(place(network({784, 128, 10}, 64, Precision::Tf32), Limits{}));
  EXPECT_THAT(source, HasSubstr("wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32"));
  EXPECT_THAT(source, HasSubstr("wgmma.mma_async.sync.aligned.m64n56k8.f32.tf32.tf32"));
  EXPECT_THAT(source, HasSubstr("constexpr int inputs = 784;"));
  const std::string halves = kernel_source(place(network({784, 128, 10}, 64, Precision::Bf16), Limits{}));
  EXPECT_THAT(halves, HasSubstr("m64n56k16.f32.bf16.bf16"));
  const std::string block = kernel_source(place(network({2, 24, 24, 3}, 64, Precision::Fp32), Limits{}));
  EXPECT_THAT(block, Not(HasSubstr("wgmma.mma_async")));
}

}  // namespace
}  // namespace ws::cuda::persistent
