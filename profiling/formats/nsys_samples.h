// Stack samples in Nsight Systems' tables: an event a sample, and a row for each frame of its stack. The tables are the
// standard ones, with two more columns in our files: the end of a sample, and the line of a frame.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiling/formats/trace_builder.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

inline constexpr const char *kSampleEvents = "COMPOSITE_EVENTS", *kSampleFrames = "SAMPLING_CALLCHAINS";

class NsysSampleWriter {
 public:
  using StringId = std::function<int64_t(const std::string&)>;
  NsysSampleWriter(Database& db, StringId string) : db_(db), string_(std::move(string)) {}
  void write(const Trace& trace, const Span& sample, int64_t thread);

 private:
  Database& db_;
  StringId string_;
  std::optional<Statement> event_, frame_;
  int64_t id_ = 0;
};

struct NsysSample {
  int64_t start = 0, end = 0, thread = 0;
  NameId name{};
};
// Nsight Systems stores moments: such a sample lasts until the next one of its thread, and at most one period.
std::vector<NsysSample> read_samples(Database& db, TraceBuilder& builder,
                                     const std::function<const std::string&(int64_t)>& string);

}  // namespace ws::prof
