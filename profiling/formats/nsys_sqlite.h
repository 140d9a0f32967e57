// The SQLite tables that Nsight Systems exports.
#pragma once
#include <string>

#include "profiling/formats/run_data.h"

namespace ws::prof {

void export_nsys(const RunData& run, const std::string& path);
RunData import_nsys(const std::string& path);

constexpr int64_t kNoStream = 0xffffffff;  // of a wait for none in particular

}  // namespace ws::prof
