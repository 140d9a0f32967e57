// Turns a RunSpec and a Model into the plan that runs: builds it, then applies the passes that the spec asks for.
#pragma once
#include "engine/plan/model.h"

namespace ws {

// The plan before and after the passes, for a comparison.
struct CompiledPlan {
  Plan before;  // as built
  Plan plan;    // as run
};
// Compiles the plan of one rank of spec.exec.gpus; `rows` counts the rows of the step over all ranks.
CompiledPlan compile(const RunSpec& spec, const Model& model, int64_t rows, int rank = 0);
CompiledPlan compile_evaluation(const RunSpec& spec, const Model& model, int64_t batch);

// The cost of a spec before anything runs.
struct PlanEstimate {
  int64_t parameters = 0, flops_per_step = 0;
};
PlanEstimate estimate(const RunSpec& spec, LayerShape input, int64_t outputs, int64_t train_rows);

}  // namespace ws
