// Another program that runs beside this one: started, heard, signalled, waited for. And which processes are alive.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ws {

class Process {
 public:
  enum class Output { Ours, Heard, HeardWithErrors };  // where it writes to; heard: output() gives it
  using Environment = std::map<std::string, std::string>;

  // Looks for command[0] in PATH; `more` adds to our environment or replaces in it. Throws Failure.
  explicit Process(const std::vector<std::string>& command, Output output = Output::Ours, const Environment& more = {});
  ~Process();  // neither ends the program nor waits for it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What it wrote since, waiting at most so long; nullopt once its output is closed.
  std::optional<std::string> output(int most_ms);
  // Its exit status, or 128 + signal when a signal ended it; nullopt if it runs on after so long.
  std::optional<int> wait(int most_ms);
  int wait();
  int ended_by() const { return ended_by_; }  // the signal; 0: none
  void signal(int number);                    // does nothing once it has ended

 private:
  pid_t child_ = 0;
  int out_ = -1;
  std::optional<int> status_;
  int ended_by_ = 0;
};

bool is_alive(int64_t process);          // on this machine, and no zombie
std::string this_process();              // "1234 python3"
std::string process_mark();              // of this process: boot, number, start; no other process has the same
bool is_alive(const std::string& mark);  // false for an empty mark and for one of another machine

}  // namespace ws
