// A child process that we talk to over its standard streams. Only wait() and the destructor wait.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/base/process.h"

namespace ws::app {

class PipeProcess {
 public:
  // The child shares the terminal: ssh may ask there. Throws Failure.
  explicit PipeProcess(const std::vector<std::string>& command) : process_(command, Process::Output::Talks) {}
  ~PipeProcess();  // ends the process
  PipeProcess(const PipeProcess&) = delete;
  PipeProcess& operator=(const PipeProcess&) = delete;

  pid_t id() const { return process_.id(); }
  int input() const { return process_.input_end(); }  // for poll()
  int output() const { return process_.output_end(); }
  int errors() const { return process_.errors_end(); }
  // Returns new output, at most 64 KiB; empty if there is none now; nullopt if the stream is closed.
  std::optional<std::string> read_output() { return read_some(output()); }
  std::optional<std::string> read_errors() { return read_some(errors()); }
  size_t write(std::string_view bytes);  // returns how many bytes were written; throws Failure once nobody reads them
  // Returns the exit status, or 128 + signal; nullopt if it still runs after most_ms.
  std::optional<int> wait(int most_ms) { return process_.wait(most_ms); }

 private:
  static std::optional<std::string> read_some(int from);
  Process process_;
};

}  // namespace ws::app
