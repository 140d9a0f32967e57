// Records any CUDA program into a run file: the driver loads our collector into the program's process.
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

// How much of a Python program is recorded; each level includes the previous ones: modules of PyTorch, its ops, lines.
enum class PythonLevel : uint8_t { Off, Modules, Ops, Lines };
const char* to_string(PythonLevel level);
PythonLevel python_level(std::string_view name);  // throws Failure

struct RecordOptions {
  TraceLevel level = TraceLevel::Full;
  std::string library;    // the collector library; empty: the one beside this program
  bool counters = false;  // also sample hardware counters
  PythonLevel python = PythonLevel::Modules;
  std::string window;     // "200ms/5s", see clock_window(): traces that part of the time; empty: always
};

// Throws Failure if the window cannot be read, or if this level records nothing that a window could switch.
void check_window(const RecordOptions& options);

// While the program runs, it handles an interrupt or a closed terminal. It ends, and we report.
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

// Name of a recording: the program, or the script that Python runs. {"python3", "-u", "train.py"} is "train.py".
std::string name_of_command(const std::vector<std::string>& command);

// A program that is being recorded. take() returns live data for a Trace; the run file contains everything.
class RecordedProgram {
 public:
  // Starts the program. Throws Failure if it cannot be started.
  RecordedProgram(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options = {});
  ~RecordedProgram();  // interrupts a running program, and kills it if it does not end within seconds

  TraceBatch take();  // new data since the last call; empty if there is none
  LiveCurves take_curves();
  FollowStatus status() const;
  // Waits at most `most_ms` for the end. Returns the exit status, or nullopt if it still runs. Then call take() until
  // it is empty.
  std::optional<int> wait(int most_ms);
  void interrupt();       // like Ctrl+C
  bool recorded() const;  // true if a run file exists: the program started CUDA
  const std::string& path() const;
  // Files of all its processes that started CUDA, path() first. Each process writes its own file.
  std::vector<std::string> paths() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Creates an empty file for this process and returns its name: `wanted` for the first process, name.PROCESS.wsrun for
// the others. Returns "" if all these names are taken. Throws Failure if the file cannot be created.
std::string claim_file(const std::string& wanted);
// The process that wrote a recording, as this_process() names it; empty: unknown.
inline constexpr const char* kRecordProcess = "process";  // a key of RunSummary::extra
bool is_still_written(const std::string& path);  // true while a process writes it

// Keys of RunSummary::extra: the command as a JSON list, and the recording levels.
inline constexpr const char* kCommandKey = "record_command";
inline constexpr const char* kTraceLevelKey = "record_trace";
inline constexpr const char* kPythonLevelKey = "record_level";

// Environment variables that configure the collector library.
inline constexpr const char* kRecordFile = "WARPSCOPE_RECORD_FILE";
inline constexpr const char* kRecordLevel = "WARPSCOPE_RECORD_LEVEL";
inline constexpr const char* kRecordCounters = "WARPSCOPE_RECORD_COUNTERS";
inline constexpr const char* kRecordWindow = "WARPSCOPE_RECORD_WINDOW";
inline constexpr const char* kRecordName = "WARPSCOPE_RECORD_NAME";
inline constexpr const char* kRecordLibrary = "WARPSCOPE_RECORD_LIBRARY";
inline constexpr const char* kRecordPython = "WARPSCOPE_RECORD_PYTHON";  // the level
inline constexpr const char* kRecordCommand = "WARPSCOPE_RECORD_COMMAND";  // a JSON list
inline constexpr const char* kRecordFollower = "WARPSCOPE_RECORD_FOLLOWER";  // local socket of the follower

}  // namespace ws::prof
