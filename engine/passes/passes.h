// The passes that rewrite a plan. Each takes a plan and returns a plan, and can be switched off.
#pragma once
#include "engine/plan/plan.h"

namespace ws {

Plan insert_all_reduce(Plan plan);  // no change for one rank
// Gradients whose transfers overlap other work but come after the backward phase of all layers but the first. Their
// parameters are updated last.
std::vector<BufferId> late_gradients(const Plan& plan);
Plan fuse(Plan plan, Fusion level);
Plan use_own_kernels(Plan plan);  // reads the files that exec.kernels names; throws Failure
Plan place_memory(Plan plan, Allocator allocator);
Plan insert_sync(Plan plan, SyncPolicy policy);

}  // namespace ws
