// Records any CUDA program into a run file, by having the driver load our collector into its process.
#pragma once
#include <string>
#include <vector>

#include "profiling/collectors/collector.h"

namespace ws::prof {

struct RecordOptions {
  TraceLevel level = TraceLevel::Full;
  std::string library;  // the collector to load; empty: the one beside this program
};

// Runs `command` and returns its exit status (128 + signal when a signal ended it). Throws Failure when it cannot be
// started or when nothing was recorded.
int record(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options = {});

// What record() tells the library through the environment.
inline constexpr const char* kRecordFile = "WARPSCOPE_RECORD_FILE";
inline constexpr const char* kRecordLevel = "WARPSCOPE_RECORD_LEVEL";
inline constexpr const char* kRecordName = "WARPSCOPE_RECORD_NAME";

}  // namespace ws::prof
