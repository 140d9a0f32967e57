// The bytes of a file there that may still grow, for whoever follows it.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/core/remote/job_folder.h"

namespace ws::app {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::string read(uint64_t offset, size_t most) = 0;  // empty: nothing there now
  virtual bool may_grow() = 0;
  // Where to go on when so many bytes behind is too late, or when what was asked for is gone.
  virtual std::optional<uint64_t> jump(uint64_t /*offset*/, uint64_t /*behind*/) { return std::nullopt; }
  virtual nlohmann::json at_end();      // what the other side compares
  virtual std::string version() const { return {}; }  // a resumed copy must be of the same
};

// A file of a job that only grows: its news, its log.
std::unique_ptr<ByteSource> growing_file(const JobFolder& job, const char* name);
std::unique_ptr<ByteSource> newest_trace_of(const JobFolder& job);
// A whole file that nobody writes. Throws Failure.
std::unique_ptr<ByteSource> finished_file(const std::string& path);

}  // namespace ws::app
