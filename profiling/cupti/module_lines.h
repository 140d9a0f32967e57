// The code of the modules that a program loaded, to find an instruction and its source line.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/line_table.h"

namespace ws::prof {

class ModuleLines {
 public:
  static constexpr size_t kMostBytes = size_t{512} << 20;  // a copy of each module is kept

  // From now on modules are kept. Modules that were loaded before stay without lines.
  void begin() { on_.store(true, std::memory_order_relaxed); }
  bool on() const { return on_.load(std::memory_order_relaxed); }
  void loaded(std::string_view cubin);  // on the program's thread, while the driver loads it

  struct Place {
    std::string file;
    int32_t line = 0;  // 0: not known
  };
  // Can take a millisecond. Not from two threads at once.
  Place line_of(uint64_t module, const std::string& function, uint64_t offset);
  struct Code {
    std::string_view bytes;  // as long as this object
    int compute = 0;
    std::vector<PlacedInstructions> lines;  // empty: it has no line info
  };
  std::optional<Code> code_of(uint64_t module, const std::string& function);  // not from two threads at once

 private:
  const std::string* find(uint64_t module);

  std::atomic<bool> on_{false};
  std::mutex mutex_;                // guards what follows
  std::vector<std::string> fresh_;  // their checksums are not known yet
  size_t bytes_ = 0;
  std::map<uint64_t, std::string> modules_;  // by checksum; used by one thread
};

}  // namespace ws::prof
