// A source of bytes that the server streams to a client, such as a file that still grows.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/core/remote/job_folder.h"

namespace ws::app {

// The next bytes. If data arrives faster than the line carries it, they can be a shorter replacement.
struct NextBytes {
  std::string bytes;
  uint64_t until = 0;    // the bytes replace everything before this offset
  bool instead = false;
  bool nothing() const { return bytes.empty() && !instead; }
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual NextBytes next(uint64_t offset, size_t most) = 0;
  virtual bool may_grow() = 0;
  virtual nlohmann::json at_end();                    // figures for the other side to compare
  virtual std::string version() const { return {}; }  // a resumed copy needs the same version
};

// A file of a job that only grows: its news or its log.
std::unique_ptr<ByteSource> growing_file(const JobFolder& job, const char* name);
// Losses and tests. Late data is thinned so that the newest values are never much delayed.
std::unique_ptr<ByteSource> curves_of(const JobFolder& job);
// Spans. Data that is too late is left out: the run file has it.
std::unique_ptr<ByteSource> newest_trace_of(const JobFolder& job);
// A small file with the current state: only the newest state is sent.
std::unique_ptr<ByteSource> state_of(const JobFolder& job, const char* name);
// A complete file that nobody writes. Throws Failure.
std::unique_ptr<ByteSource> finished_file(const std::string& path);

}  // namespace ws::app
