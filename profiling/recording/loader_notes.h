// Reads what the data loader workers of this process report and converts it to spans, one row per worker. Each worker
// appends to its own file (loader-PROCESS-WORKER), one line per batch: worker, begin, end and line of the program,
// separated by tabs.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ws::prof {

class HostNotes;

class LoaderNotes {
 public:
  // `folder`: the folder of the files; empty: none.
  explicit LoaderNotes(std::string folder) : folder_(std::move(folder)) {}
  void take(HostNotes& notes);  // takes new lines; skips unreadable ones

 private:
  void take_lines(std::string& rest, HostNotes& notes) const;
  struct File {
    int64_t read = 0;
    std::string rest;  // an incomplete last line
  };
  std::string folder_;
  std::map<std::string, File> files_;
};

inline constexpr const char* kLoaderTrack = "loader worker ";

}  // namespace ws::prof
