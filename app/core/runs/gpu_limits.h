// Limits of a GPU by its name, for occupancy.
#pragma once
#include <optional>
#include <string>

#include "profiling/analysis/occupancy.h"

namespace ws::app {

// `machine`: JSON of the recording machine; may be empty. For a GPU that neither knows, uses what this machine reports
// about its own.
std::optional<prof::DeviceLimits> card_limits(const std::string& device, const std::string& machine = {});

}  // namespace ws::app
