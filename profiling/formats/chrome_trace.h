// Exports and imports Chrome/Perfetto trace JSON, with the keys that PyTorch's profiler writes.
#pragma once
#include <string>
#include <string_view>

#include "profiling/trace/run_data.h"

namespace ws::prof {

void export_chrome(const RunData& run, const std::string& path);  // compressed if the path ends in .gz
RunData import_chrome(const std::string& path);                   // plain or compressed
RunData parse_chrome(std::string_view text);                      // throws Failure

}  // namespace ws::prof
