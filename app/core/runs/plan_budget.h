// Where a persistent kernel would keep a network, from the choices alone. The plan page shows it before a training.
#pragma once
#include <string>

#include "engine/plan/run_spec.h"

namespace ws::app {

// Returns lines, or nothing if the launch mode runs no persistent kernel, or if the data are not known before loading.
std::string plan_budget(const RunSpec& spec);

}  // namespace ws::app
