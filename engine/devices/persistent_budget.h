// What one kernel for a whole training would keep where on this machine's GPU. Needs no GPU.
#pragma once
#include <string>

#include "engine/plan/plan.h"

namespace ws {

// Returns lines: where the network lives and how much of each memory it takes, or why it does not fit. Empty if the
// launch mode is neither persistent nor auto. Without a GPU the numbers describe an H200.
std::string persistent_budget(const RunSpec& spec, const Plan& plan, int64_t train_rows);

}  // namespace ws
