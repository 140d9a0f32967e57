// What the workers of this process's data loader say: a file a worker (loader-PROCESS-WORKER), a line a batch ("worker, begin, end, line of the
// program", with tabs between), which only grows. They become spans on a row of each worker.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ws::prof {

class HostNotes;

class LoaderNotes {
 public:
  // `folder`: where the files are; empty: nowhere.
  explicit LoaderNotes(std::string folder) : folder_(std::move(folder)) {}
  void take(HostNotes& notes);  // what is new; what cannot be read is left out

 private:
  void take_lines(std::string& rest, HostNotes& notes) const;
  struct File {
    int64_t read = 0;
    std::string rest;  // of a line that has not come whole
  };
  std::string folder_;
  std::map<std::string, File> files_;
};

inline constexpr const char* kLoaderTrack = "loader worker ";

}  // namespace ws::prof
