// The machine of a run, for the run file, and the limits of its GPU.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "profiling/analysis/occupancy.h"

namespace ws::app {

nlohmann::json machine_json();  // {cpu, cpu_threads, gpu, driver, runtime, compute, system, warpsight}

// Limits of a GPU by its name, for occupancy.
// `machine`: JSON of the recording machine; may be empty. For a GPU that neither knows, uses what this machine reports
// about its own.
std::optional<prof::DeviceLimits> card_limits(const std::string& device, const std::string& machine = {});

}  // namespace ws::app
