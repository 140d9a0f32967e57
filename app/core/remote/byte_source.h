// The bytes of a file there that may still grow, for whoever follows it.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/core/remote/job_folder.h"

namespace ws::app {

// What comes next of it: bytes, or less in their place, where they come faster than the line carries them.
struct NextBytes {
  std::string bytes;
  uint64_t until = 0;    // they stand for what lies before this offset
  bool instead = false;
  bool nothing() const { return bytes.empty() && !instead; }
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual NextBytes next(uint64_t offset, size_t most) = 0;
  virtual bool may_grow() = 0;
  virtual nlohmann::json at_end();                    // what the other side compares
  virtual std::string version() const { return {}; }  // a resumed copy must be of the same
};

// A file of a job that only grows: its news, its log.
std::unique_ptr<ByteSource> growing_file(const JobFolder& job, const char* name);
// Losses and tests. What is late comes thinned, so that the newest are never long behind.
std::unique_ptr<ByteSource> curves_of(const JobFolder& job);
// Spans. What is too late is left out: the run file has it.
std::unique_ptr<ByteSource> newest_trace_of(const JobFolder& job);
// A small file that says how things stand: its newest state only.
std::unique_ptr<ByteSource> state_of(const JobFolder& job, const char* name);
// A whole file that nobody writes. Throws Failure.
std::unique_ptr<ByteSource> finished_file(const std::string& path);

}  // namespace ws::app
