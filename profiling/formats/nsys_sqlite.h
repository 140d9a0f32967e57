// The SQLite tables that Nsight Systems exports.
#pragma once
#include <string>

#include "profiling/formats/run_data.h"

namespace ws::prof {

void export_nsys(const RunData& run, const std::string& path);
RunData import_nsys(const std::string& path);

inline const std::string kOurMeta = "WARPSCOPE_";  // META_DATA_EXPORT: what our own run files say of a run

constexpr int64_t kNoStream = 0xffffffff;  // of a wait for none in particular

}  // namespace ws::prof
