// Names of the threads in an Nsight Systems export.
#pragma once
#include <string>
#include <unordered_map>

#include "profiling/formats/nsys_rows.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

class NsysThreads {
 public:
  template <class String>
  void read(Database& db, const String& string) {
    constexpr size_t kMost = 1 << 16, kLongest = 64;
    NsysRows rows(db, "ThreadNames", {"nameId", "globalTid"});
    while (rows.next() && names_.size() < kMost) names_[rows.integer(1)] = string(rows.integer(0)).substr(0, kLongest);
  }

  // "pt_autograd_0 4322", or "thread 4322" if the thread has no name.
  std::string text(int64_t global) const {
    const int64_t number = global & 0xffffff;
    const auto named = names_.find(global);
    if (named == names_.end() || named->second.empty() || named->second.starts_with("thread "))
      return "thread " + std::to_string(number);
    // A row that is not a thread.
    return number < kThreads ? named->second + " " + std::to_string(number) : named->second;
  }

 private:
  std::unordered_map<int64_t, std::string> names_;  // by globalTid
};

}  // namespace ws::prof
