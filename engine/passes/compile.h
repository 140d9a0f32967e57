// RunSpec + Model → the plan that runs: build, then the passes that the choices ask for.
#pragma once
#include "engine/plan/model.h"

namespace ws {

// One line of a before/after view.
struct CompiledPlan {
  Plan before;  // as built
  Plan plan;    // as run
};
// The plan of one rank of spec.exec.gpus; `rows` are those of the step over all ranks.
CompiledPlan compile(const RunSpec& spec, const Model& model, int64_t rows, int rank = 0);
CompiledPlan compile_evaluation(const RunSpec& spec, const Model& model, int64_t batch);

}  // namespace ws
