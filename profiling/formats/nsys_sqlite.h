// The SQLite tables that Nsight Systems exports.
#pragma once
#include <string>

#include "profiling/trace/run_data.h"

namespace ws::prof {

void export_nsys(const RunData& run, const std::string& path);
RunData import_nsys(const std::string& path);

inline const std::string kOurMeta = "WARPSCOPE_";  // META_DATA_EXPORT: what our own run files say of a run

// What the tables have no column for, so that a run of ours comes back as it was: the step of whatever began at a time
// on a stream or thread, and as categories of ranges what they are.
inline constexpr const char* kOurSteps = "WARPSCOPE_STEPS";
constexpr int64_t kStepCategory = 1, kUntracedCategory = 2, kOpCategory = 100;  // and more: an op of that meaning

constexpr int64_t kNoStream = 0xffffffff;  // of a wait for none in particular

}  // namespace ws::prof
