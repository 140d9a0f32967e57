// Source files of the lines that take time, for a page whose maker agrees to show them.
#pragma once
#include <nlohmann/json.hpp>

#include "profiling/trace/run_data.h"

namespace ws::app {

// A list of {"path", "lines", "times" by line in µs, "changed", "problem"}; the file with most time first.
nlohmann::ordered_json page_sources(const prof::RunData& run);

}  // namespace ws::app
