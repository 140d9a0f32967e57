// Reads what the data loader workers of this process report and converts it to spans, one row per worker. Each worker
// appends to its own file (loader-PROCESS-WORKER), one line per batch: worker, begin, end and line of the program,
// separated by tabs.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace ws::prof {

class HostNotes;

class LoaderNotes {
 public:
  // `folder`: the folder of the files; empty: none.
  explicit LoaderNotes(std::string folder) : folder_(std::move(folder)) {}
  // Takes new lines; skips unreadable ones, and batches that began when `unheard` says so (steady clock).
  void take(HostNotes& notes, const std::function<bool(int64_t)>& unheard);

 private:
  void take_lines(std::string& rest, HostNotes& notes, const std::function<bool(int64_t)>& unheard) const;
  struct File {
    int64_t read = 0;
    std::string rest;  // an incomplete last line
  };
  std::string folder_;
  std::map<std::string, File> files_;
};

inline constexpr const char* kLoaderTrack = "loader worker ";

}  // namespace ws::prof
