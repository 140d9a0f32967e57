// A child process that we talk to over its standard streams. Only wait() and the destructor wait.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ws::app {

class PipeProcess {
 public:
  explicit PipeProcess(const std::vector<std::string>& command);  // throws Failure
  ~PipeProcess();                                                 // ends the process
  PipeProcess(const PipeProcess&) = delete;
  PipeProcess& operator=(const PipeProcess&) = delete;

  pid_t id() const { return child_; }
  int input() const { return in_; }  // for poll()
  int output() const { return out_; }
  int errors() const { return err_; }
  // Returns new output, at most 64 KiB; empty if there is none now; nullopt if the stream is closed.
  std::optional<std::string> read_output() { return read_some(out_); }
  std::optional<std::string> read_errors() { return read_some(err_); }
  size_t write(std::string_view bytes);  // returns how many bytes were written; throws Failure once nobody reads them
  // Returns the exit status, or 128 + signal; nullopt if it still runs after most_ms.
  std::optional<int> wait(int most_ms);

 private:
  static std::optional<std::string> read_some(int from);
  pid_t child_ = 0;
  int in_ = -1, out_ = -1, err_ = -1;
  std::optional<int> status_;
};

}  // namespace ws::app
