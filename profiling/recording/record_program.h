// Records a CUDA or Python program into a run file: the driver or Python loads our collector into the program's process.
#pragma once
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiling/recording/live_link.h"
#include "profiling/recording/record_environment.h"

namespace ws::prof {

// While the program runs, it handles an interrupt or a closed terminal. It ends, and we report.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt() : before_(signal(SIGINT, SIG_IGN)), hangup_before_(signal(SIGHUP, SIG_IGN)) {}
  ~IgnoreInterrupt() { signal(SIGINT, before_); signal(SIGHUP, hangup_before_); }
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;

 private:
  void (*before_)(int);
  void (*hangup_before_)(int);
};

// A program that is being recorded. take() returns live data for a Trace; the run file contains everything.
class RecordedProgram {
 public:
  // Starts the program. Throws Failure if it cannot be started.
  RecordedProgram(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options = {});
  // Follows a process that somebody else started and that records itself. `mark`: its process_mark(). Its exit status is
  // not known: 0 if it completed its file, else 1.
  RecordedProgram(const std::string& mark, const std::string& out_path);
  ~RecordedProgram();  // interrupts a program that it started, and kills it if it does not end within seconds

  TraceBatch take();  // new data since the last call; empty if there is none
  LiveCurves take_curves();
  FollowStatus status() const;
  // Waits at most `most_ms` for the end. Returns the exit status, or nullopt if it still runs. Then call take() until
  // it is empty.
  std::optional<int> wait(int most_ms);
  void interrupt();       // like Ctrl+C
  void terminate();       // as a scheduler or kill does
  bool began() const;     // true if the program started CUDA or ran Python: it made the file, maybe without content
  bool recorded() const;  // true if there is a run file of it with content
  const std::string& follower() const;  // its processes connect here
  // Files of all its processes that were recorded, the first one first. Each process writes its own file.
  std::vector<std::string> paths() const;
  // Other files that somebody moved to such names meanwhile. They are neither read nor changed.
  std::vector<std::string> foreign() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline constexpr const char* kNothingToRecord = "did not start CUDA, and no Python ran in it for long enough";

}  // namespace ws::prof
