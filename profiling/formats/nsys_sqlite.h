// Exports and imports the SQLite tables of Nsight Systems.
#pragma once
#include <string>

#include "profiling/trace/run_data.h"

namespace ws::prof {

void export_nsys(const RunData& run, const std::string& path);
RunData import_nsys(const std::string& path);

inline const std::string kOurMeta = "WARPSIGHT_";  // prefix in META_DATA_EXPORT of the run summary's keys

// Stores what the standard tables have no column for, so that our run can be imported unchanged: the step and the op of
// everything that ran at a time on a stream or thread, and the ops. Categories of ranges store the kind of span.
inline constexpr const char *kOurSteps = "WARPSIGHT_STEPS", *kOurOps = "WARPSIGHT_OPS";
constexpr int64_t kStepCategory = 1, kUntracedCategory = 2, kOpCategory = 100;  // kOpCategory + Meaning: an op

constexpr int64_t kNoStream = 0xffffffff;  // for a wait for no particular stream

}  // namespace ws::prof
