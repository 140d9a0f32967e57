// Chrome/Perfetto trace JSON with the keys that PyTorch's profiler writes.
#pragma once
#include <string>

#include "profiling/trace/run_data.h"

namespace ws::prof {

void export_chrome(const RunData& run, const std::string& path);  // packed when the path ends in .gz
RunData import_chrome(const std::string& path);                   // plain or packed
RunData parse_chrome(const char* begin, const char* end);         // throws ws::Failure

}  // namespace ws::prof
