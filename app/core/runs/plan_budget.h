// The plan of choices before their data is loaded, and where a persistent kernel would keep the network.
#pragma once
#include <optional>
#include <string>

#include "engine/passes/compile.h"

namespace ws::app {

// Returns nullopt if the shape of the data is not known before loading, or if the choices make no plan.
std::optional<CompiledPlan> plan_before_loading(const RunSpec& spec);

// Returns lines, or nothing if the launch mode runs no persistent kernel, or if the data are not known before loading.
std::string plan_budget(const RunSpec& spec);

}  // namespace ws::app
