// Where a persistent kernel would keep a network, as the plan page shows it before a training. Needs no GPU.

#include <gmock/gmock.h>

#include "app/core/runs/data_shape.h"

namespace ws::app {
namespace {

using testing::HasSubstr;

RunSpec spec_of(Launch launch, std::vector<int64_t> hidden) {
  RunSpec spec;
  spec.data.name = "mnist";
  spec.exec.launch = launch;
  spec.exec.precision = Precision::Fp16;
  spec.model.hidden = std::move(hidden);
  spec.train.batch = 32;
  spec.train.optimizer = Optimizer::Sgd;
  return spec;
}

TEST(PlanBudget, ReportsWhatLivesWhere) {
  for (const Launch launch : {Launch::Persistent, Launch::Auto}) {
    const std::string lines = plan_budget(spec_of(launch, {128, 128, 128}));
    for (const char* part : {"residency copies", "registers per thread (weights, state, sums): ", " of 255",
                             "shared memory per block (rounded weights, units, messages): ", " KB of "})
      EXPECT_THAT(lines, HasSubstr(part));
  }
  EXPECT_THAT(plan_budget(spec_of(Launch::Persistent, {1024, 1024})), HasSubstr("L2 cache"));
}

TEST(PlanBudget, ReportsWhyNothingFits) {
  EXPECT_THAT(plan_budget(spec_of(Launch::Persistent, {4096, 4096})), HasSubstr("KB of shared memory and has"));
}

TEST(PlanBudget, IsEmptyWhereNothingIsPersistentOrKnown) {
  EXPECT_EQ(plan_budget(spec_of(Launch::Graph, {128})), "");
  RunSpec unknown = spec_of(Launch::Persistent, {128});
  unknown.data.name = "csv";
  EXPECT_EQ(plan_budget(unknown), "");
}

}  // namespace
}  // namespace ws::app
