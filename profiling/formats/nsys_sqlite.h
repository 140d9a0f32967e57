// Imports the SQLite tables of Nsight Systems.
#pragma once
#include <string>

#include "profiling/trace/run_data.h"

namespace ws::prof {

RunData import_nsys(const std::string& path);

constexpr int64_t kNoStream = 0xffffffff;  // for a wait for no particular stream

}  // namespace ws::prof
