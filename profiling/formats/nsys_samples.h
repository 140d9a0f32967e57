// Stack samples in Nsight Systems' tables: an event a sample, and a row for each frame of its stack.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "profiling/formats/trace_builder.h"
#include "profiling/run_file/sqlite.h"

namespace ws::prof {

inline constexpr const char *kSampleEvents = "COMPOSITE_EVENTS", *kSampleFrames = "SAMPLING_CALLCHAINS";

struct NsysSample {
  int64_t start = 0, end = 0, thread = 0;
  NameId name{};
};
// Nsight Systems stores moments: such a sample lasts until the next one of its thread, and at most one period.
std::vector<NsysSample> read_samples(Database& db, TraceBuilder& builder,
                                     const std::function<const std::string&(int64_t)>& string);

}  // namespace ws::prof
