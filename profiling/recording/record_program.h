// Records any CUDA program into a run file, by having the driver load our collector into its process.
#pragma once
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/collectors/collector.h"
#include "profiling/recording/live_link.h"

namespace ws::prof {

// How much of a Python program is told, each with all before it: modules of PyTorch, its ops, lines.
enum class PythonLevel : uint8_t { Off, Modules, Ops, Lines };
const char* to_string(PythonLevel level);
PythonLevel python_level(std::string_view name);  // throws Failure

struct RecordOptions {
  TraceLevel level = TraceLevel::Full;
  std::string library;    // the collector to load; empty: the one beside this program
  bool counters = false;  // sample hardware counters as well
  PythonLevel python = PythonLevel::Modules;
  std::string window;     // "200ms/5s", as clock_window() reads it: trace that much; empty: all the time
};

// Throws Failure when the window cannot be read or nothing is recorded at this level that it could open and close for.
void check_window(const RecordOptions& options);

// While the program runs, an interrupt or a closed terminal is its affair: it ends, and we report.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt() : before_(signal(SIGINT, SIG_IGN)), hangup_before_(signal(SIGHUP, SIG_IGN)) {}
  ~IgnoreInterrupt() { signal(SIGINT, before_), signal(SIGHUP, hangup_before_); }
  IgnoreInterrupt(const IgnoreInterrupt&) = delete;
  IgnoreInterrupt& operator=(const IgnoreInterrupt&) = delete;

 private:
  void (*before_)(int);
  void (*hangup_before_)(int);
};

// What a recording is called: the program, or what Python runs. {"python3", "-u", "train.py"} is "train.py".
std::string name_of_command(const std::vector<std::string>& command);

// A program that is recorded, watched while it runs: what take() gives belongs into a Trace, and the run file has all
// of it.
class RecordedProgram {
 public:
  // Starts the program. Throws Failure when that cannot be.
  RecordedProgram(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options = {});
  ~RecordedProgram();  // a program that still runs is interrupted, and killed when it does not end within seconds

  TraceBatch take();  // what came since; empty when nothing is new
  LiveCurves take_curves();
  FollowStatus status() const;
  // Waits so long for the end; then the exit status. Call take() until it is empty afterwards.
  std::optional<int> wait(int most_ms);
  void interrupt();       // as Ctrl+C would
  bool recorded() const;  // whether a run file is there: the program started CUDA
  const std::string& path() const;
  // Of all its processes that started CUDA, path() first: each writes a file of its own.
  std::vector<std::string> paths() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes an empty file for this process and returns its name: `wanted` for the first that asks, name.PROCESS.wsrun for
// the others; empty when all of those are taken. Throws Failure when the system makes none.
std::string claim_file(const std::string& wanted);
// The process that wrote a recording, as this_process() names it; empty: not known.
inline constexpr const char* kRecordProcess = "process";  // a key of RunSummary::extra
bool is_still_written(const std::string& path);  // a process writes it

// Keys of RunSummary::extra: what was run, as a JSON list, and how closely it was recorded.
inline constexpr const char* kCommandKey = "record_command";
inline constexpr const char* kTraceLevelKey = "record_trace";
inline constexpr const char* kPythonLevelKey = "record_level";

// What is told to the library through the environment.
inline constexpr const char* kRecordFile = "WARPSCOPE_RECORD_FILE";
inline constexpr const char* kRecordLevel = "WARPSCOPE_RECORD_LEVEL";
inline constexpr const char* kRecordCounters = "WARPSCOPE_RECORD_COUNTERS";
inline constexpr const char* kRecordWindow = "WARPSCOPE_RECORD_WINDOW";
inline constexpr const char* kRecordName = "WARPSCOPE_RECORD_NAME";
inline constexpr const char* kRecordLibrary = "WARPSCOPE_RECORD_LIBRARY";
inline constexpr const char* kRecordPython = "WARPSCOPE_RECORD_PYTHON";  // the level
inline constexpr const char* kRecordCommand = "WARPSCOPE_RECORD_COMMAND";  // a JSON list
inline constexpr const char* kRecordFollower = "WARPSCOPE_RECORD_FOLLOWER";  // its local socket

}  // namespace ws::prof
