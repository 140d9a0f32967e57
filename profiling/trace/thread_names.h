// Names the threads of a recorded program by what they do, and the rows that show their work.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>

#include "profiling/trace/trace.h"

namespace ws::prof {

class ThreadNames {
 public:
  explicit ThreadNames(const Trace& trace);
  // "main", "backward", the name that samples know, or "thread 3". Empty: the row does not say which thread it belongs to.
  std::string of(const Track& track) const;
  // Name of a row of ranges: "main thread", "inside main thread", "inside main thread, level 2".
  std::string ranges(const Track& track) const;
  // The name of a row for a reader: of rows of ranges and of calls as above, otherwise the name of the track.
  std::string title(const Track& track) const;

 private:
  struct Threads {
    std::set<int64_t> numbers, backward;
    std::map<int64_t, std::string> sampled;
  };
  std::map<int, Threads> ranks_;
};

// Both parts of "samples of python3 4322"; the number is -1 for a thread that has a name only.
std::pair<std::string, int64_t> sampled_name(const Track& track);
std::string row_title(const Trace& trace, const Track& track);  // of one row

}  // namespace ws::prof
