// RunSpec + Model → the plan that runs: build, then the passes that the choices ask for.
#pragma once
#include "engine/plan/model.h"

namespace ws {

// One line of a before/after view.
struct CompiledPlan {
  Plan before;  // as built
  Plan plan;    // as run
};
CompiledPlan compile(const RunSpec& spec, const Model& model, int64_t batch);
CompiledPlan compile_evaluation(const RunSpec& spec, const Model& model, int64_t batch);

// Passes: Plan → Plan, each switchable.
Plan fuse(Plan plan, Fusion level);
Plan place_memory(Plan plan, Allocator allocator);
Plan insert_sync(Plan plan, SyncPolicy policy);

// First and last op (index into plan.ops) at which a Temp or Batch buffer is in use.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const Plan& plan);
int64_t live_lower_bound(const Plan& plan);  // the largest sum of bytes alive at one op

}  // namespace ws
