// Starts another program, reads its output, signals it and waits for it. Also returns which processes are alive.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ws {

// Where a process works, beside its streams.
struct ProcessPlace {
  std::string folder;  // it starts there; empty: in ours
  std::string output;  // file to which it adds what it prints; empty: as Output says
  bool detached = false;  // in a session of its own: it goes on when our terminal closes
  bool group = false;     // in a process group of its own, without our input: signal() reaches all that it started, Ctrl+C none of it
};

class Process {
 public:
  // Where it writes to. output() returns what is captured. Talks: also its input and its errors are pipes, which never make us
  // wait; Ctrl+C does not reach it.
  enum class Output { Ours, Captured, CapturedWithErrors, Talks };
  using Environment = std::map<std::string, std::string>;

  // Looks for command[0] in PATH. `more` adds to our environment or overrides it. Throws Failure.
  explicit Process(const std::vector<std::string>& command, Output output = Output::Ours, const Environment& more = {},
                   const ProcessPlace& place = {});
  ~Process();  // neither ends the program nor waits for it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Returns what it wrote since the last call, after at most `most_ms`, or nullopt once its output is closed.
  std::optional<std::string> output(int most_ms);
  // Returns the exit status, or 128 + signal if a signal ended it, or nullopt if it still runs after `most_ms`.
  std::optional<int> wait(int most_ms);
  int wait();
  int ended_by() const { return ended_by_; }  // the signal that ended it; 0: none
  pid_t id() const { return child_; }
  void signal(int number);                    // does nothing once it has ended
  // Our ends of the pipes of a process that talks.
  int input_end() const { return in_; }
  int output_end() const { return out_; }
  int errors_end() const { return errors_; }
  void close_input();

 private:
  pid_t child_ = 0;
  bool group_ = false;
  int in_ = -1, out_ = -1, errors_ = -1;
  std::optional<int> status_;
  int ended_by_ = 0;
};

struct CommandOutput {
  std::string text;
  int status = 0;
};
// Runs a command to its end and returns all that it printed. Kills it if it prints nothing for `silent_ms`; 0: never. Throws Failure if
// it cannot be started.
CommandOutput output_of(const std::vector<std::string>& command, int silent_ms = 0, Process::Output output = Process::Output::CapturedWithErrors,
                        const Process::Environment& more = {});

// A process that somebody else started.
class OtherProcess {
 public:
  explicit OtherProcess(std::string mark);
  bool ended(int most_ms) const;  // waits for its end, at most so long
  void signal(int number) const;  // does nothing once it has ended

 private:
  std::string mark_;
  pid_t number_ = 0;
};

bool is_alive(int64_t process);          // on this machine, and not a zombie
bool descends_from(int64_t process, int64_t ancestor);  // or is in its process group, or is it
std::string this_process();              // "1234 python3"
std::string process_mark();              // identifies this process uniquely: boot, number, start time
std::string process_mark(int64_t process);  // empty if there is none
bool is_alive(const std::string& mark);  // false for an empty mark and for a mark from another machine

}  // namespace ws
