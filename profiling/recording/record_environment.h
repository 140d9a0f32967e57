// The environment of a recorded program: it loads the collector library and passes on what to record.
#pragma once
#include <string>
#include <string_view>

#include "profiling/base/process.h"
#include "profiling/collectors/collector.h"

namespace ws::prof {

// How much of a Python program is recorded; each level includes the previous ones: optimizer steps and logged values,
// modules of PyTorch, its ops, lines.
enum class PythonLevel : uint8_t { Off, Steps, Modules, Ops, Lines };
const char* to_string(PythonLevel level);
PythonLevel python_level(std::string_view name);  // throws Failure
PythonLevel usual_python_level(TraceLevel level);

struct RecordOptions {
  TraceLevel level = TraceLevel::Full;
  std::string library;    // the collector library; empty: the one beside this program
  bool counters = false;  // also sample hardware counters
  PythonLevel python = PythonLevel::Modules;
  std::string window;     // "200ms/5s", see clock_window(): traces that part of the time; empty: always
  bool captures = false;  // records only between cudaProfilerStart and cudaProfilerStop
  std::string folder;     // where the program starts; empty: here
  std::string output;     // absolute path of a file to which the program adds what it prints; empty: it prints where we do
  bool prompt_output = false;  // Python prints at once, also into a file
  bool keep_command = true;    // the command, without what looks like a secret, and the folder are kept with the run
  static constexpr const char* kUsualXray = "200ms/30s";
  std::string xray;            // "200ms/10s", see xray_time(): when instructions are sampled; empty: never
};

// Throws Failure if the window cannot be read, or if the level records nothing that the window or the counters could use.
void check_options(const RecordOptions& options);

// The variables.
inline constexpr const char* kRecordFile = "WARPSIGHT_RECORD_FILE";
inline constexpr const char* kRecordLevel = "WARPSIGHT_RECORD_LEVEL";
inline constexpr const char* kRecordCounters = "WARPSIGHT_RECORD_COUNTERS";
inline constexpr const char* kRecordWindow = "WARPSIGHT_RECORD_WINDOW";
inline constexpr const char* kRecordXray = "WARPSIGHT_RECORD_XRAY";
inline constexpr const char* kRecordCaptures = "WARPSIGHT_RECORD_CAPTURES";
inline constexpr const char* kRecordName = "WARPSIGHT_RECORD_NAME";
inline constexpr const char* kRecordLibrary = "WARPSIGHT_RECORD_LIBRARY";
inline constexpr const char* kRecordWriter = "WARPSIGHT_RECORD_WRITER";      // the program that writes the run file
inline constexpr const char* kRecordPython = "WARPSIGHT_RECORD_PYTHON";      // the level
inline constexpr const char* kRecordCommand = "WARPSIGHT_RECORD_COMMAND";    // a JSON list; kNoCommand: none is kept, and no folder
inline constexpr const char* kNoCommand = "[]";
inline constexpr const char* kRecordFollower = "WARPSIGHT_RECORD_FOLLOWER";  // local socket of the follower
inline constexpr const char* kRecordHooked = "WARPSIGHT_RECORD_HOOKED";      // the process that our Python hook runs in
// The program that makes each recorded program a job of its own, if no file is named: warpsight.
inline constexpr const char* kRecordServer = "WARPSIGHT_RECORD_SERVER";

// For a program that writes `out`. Throws Failure if there is no library.
Process::Environment record_environment(const RecordOptions& options, const std::string& out);
// For programs that somebody starts later. Each becomes a job of `server`, and its children belong to it.
Process::Environment serving_environment(const RecordOptions& options, const std::string& server);
RecordOptions options_of_environment();  // throws Failure
// Removes the variables of serving_environment(): our own programs record themselves.
void leave_serving_environment();

}  // namespace ws::prof
