// What must hold of every trace that an importer accepts; and bytes as a file, for formats that are read from one.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "profiling/analysis/step_breakdown.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/trace.h"
#include "tests/fuzz/fuzz.h"

namespace ws::fuzz {

inline void check_trace(const prof::Trace& trace) {
  for (const prof::Track& track : trace.tracks()) {
    size_t count = 0;
    for (const prof::SpanBlock& block : track.blocks) {
      count += block.count;
      prof::TimeNs last = block.first;
      for (const prof::Span& span : block.spans) {
        require(span.start >= last, "spans are in order");
        last = span.start;
        require(static_cast<size_t>(span.name) < trace.name_count(), "names are known");
        require(static_cast<size_t>(span.detail) < trace.detail_count(), "details are known");
        require(span.op < trace.ops.size(), "ops are known");
        require(span.meaning < prof::kMeanings, "meanings are known");
        require(span.kind <= static_cast<uint64_t>(prof::SpanKind::Other), "kinds are known");
      }
    }
    require(count == track.spans, "blocks hold all spans");
    require(prof::lod(track, trace.first_time(), trace.last_time() + 1, 100).size() <= 100, "one rectangle a column");
  }
  const prof::Breakdown parts = prof::breakdown(trace);
  int64_t sum = 0;
  for (const int64_t time : parts.times) sum += time;
  require(sum == parts.wall(), "parts sum to the wall time");
}

class BytesAsFile {
 public:
  explicit BytesAsFile(const char* ending, std::string_view bytes = {})
      : path_((std::filesystem::temp_directory_path() / ("fuzz_" + std::to_string(getpid()) + ending)).string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~BytesAsFile() {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path_ + suffix, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ws::fuzz
