// Reads what the data loader workers of a recorded process report and converts it to spans, one row per worker. Each worker
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
  // `folder`: the folder of the files; empty: none. `process`: the number of the recorded process.
  LoaderNotes(std::string folder, int64_t process) : folder_(std::move(folder)), process_(process) {}
  using IsLeftOut = std::function<bool(int64_t time)>;  // steady clock
  // Takes new lines of batches that began before `until`. Skips unreadable lines, and batches by the time they began.
  void take(HostNotes& notes, int64_t until, const IsLeftOut& left_out);

 private:
  void take_lines(std::string& rest, HostNotes& notes, int64_t until, const IsLeftOut& left_out) const;
  struct File {
    int64_t read = 0;
    std::string rest;  // an incomplete last line
  };
  std::string folder_;
  int64_t process_ = 0;
  std::map<std::string, File> files_;
};

}  // namespace ws::prof
