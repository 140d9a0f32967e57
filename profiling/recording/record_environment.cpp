#include "profiling/recording/record_environment.h"

#include <array>
#include <cstdlib>
#include <filesystem>

#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/recording/layouts/known_layouts.h"

namespace ws::prof {

namespace {

constexpr std::array<const char*, 5> kPythonLevels{"off", "steps", "modules", "ops", "lines"};
constexpr std::array<const char*, 2> kInjections{"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};

std::string find_library(const RecordOptions& options) {
  if (!options.library.empty()) return options.library;
  const std::filesystem::path library = collector_library(program_file());
  if (library.empty())
    throw Failure("Cannot record: libwarpsight_inject.so is not beside this program. Build or install it again.");
  return library;
}

// Beside the library, or beside this program. A test may name one.
std::string find_writer(const std::string& library) {
  if (const char* named = std::getenv(kRecordWriter); named && *named) return named;
  const std::filesystem::path writer = run_writer(library);
  return writer.empty() ? run_writer(program_file()) : writer;
}

// Python runs the first sitecustomize on its path. Ours then runs the one that it hides.
void hook_python(Process::Environment& all, PythonLevel level) {
  all[kRecordPython] = to_string(level);
  if (level == PythonLevel::Off) return;
  const std::string hook = (python_folder() / "hook").string();
  std::error_code none;
  if (level > PythonLevel::Modules && !std::filesystem::exists(hook, none))
    throw Failure(std::string("Cannot record ") + to_string(level) + ": " + hook + " is not there. Install Warpsight again.");
  const char* before = std::getenv("PYTHONPATH");
  all["PYTHONPATH"] = hook + (before && *before ? ":" + std::string(before) : "");
}

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

const char* to_string(PythonLevel level) { return kPythonLevels[static_cast<size_t>(level)]; }

PythonLevel python_level(std::string_view name) {
  for (size_t i = 0; i < kPythonLevels.size(); ++i)
    if (name == kPythonLevels[i]) return static_cast<PythonLevel>(i);
  throw Failure("There is no level \"" + std::string(name) + "\": choose off, steps, modules, ops or lines.");
}

PythonLevel usual_python_level(TraceLevel level) {
  return level == TraceLevel::Collectives ? PythonLevel::Steps : PythonLevel::Modules;
}

void check_options(const RecordOptions& options) {
  check_without(variable(kWithout, ""));
  if (options.counters && options.level == TraceLevel::Collectives)
    throw Failure("Level collectives has no hardware counters, because it does not attach CUPTI. Choose another level for them.");
  if (!options.xray.empty()) xray_time(options.xray);
  if (!options.xray.empty() && options.level < TraceLevel::Graph)
    throw Failure(std::string("An X-ray goes with the levels graph, kernels and full; ") + to_string(options.level) + " records no kernels.");
  if (!options.xray.empty() && options.captures) throw Failure("Choose either capture ranges, which the program begins and ends, or an X-ray, which the clock does.");
  if (options.window.empty()) return;
  if (options.captures)
    throw Failure("Choose either capture ranges, which the program begins and ends, or trace windows, which the clock does.");
  if (options.level <= TraceLevel::Collectives)
    throw Failure(std::string("A trace window goes with the levels graph, kernels and full; ") + to_string(options.level) +
                  " records no kernels.");
  clock_window(options.window);
}

Process::Environment record_environment(const RecordOptions& options, const std::string& out) {
  check_options(options);
  const std::string library = find_library(options);
  Process::Environment all{{kRecordLibrary, library},
                           {kRecordWriter, find_writer(library)},
                           {kRecordFile, out},
                           {kRecordLevel, to_string(options.level)},
                           {kRecordWindow, options.window},
                           {kRecordXray, options.xray},
                           {kRecordCounters, options.counters ? "1" : "0"},
                           {kRecordCaptures, options.captures ? "1" : "0"}};
  for (const char* injection : kInjections) all[injection] = library;
  hook_python(all, options.python);
  return all;
}

// The first process of a program replaces the empty values: then its environment grows under no other thread.
Process::Environment serving_environment(const RecordOptions& options, const std::string& server) {
  Process::Environment all = record_environment(options, "");
  for (const char* later : {kRecordFollower, kRecordName}) all[later] = "";
  all[kRecordCommand] = options.keep_command ? "" : kNoCommand;
  all[kRecordServer] = server;
  return all;
}

RecordOptions options_of_environment() {
  return {.level = record_level(variable(kRecordLevel, "full")),
          .library = variable(kRecordLibrary, ""),
          .counters = variable(kRecordCounters, "0") == "1",
          .python = python_level(variable(kRecordPython, "off")),
          .window = variable(kRecordWindow, ""),
          .captures = variable(kRecordCaptures, "0") == "1",
          .keep_command = variable(kRecordCommand, "") != kNoCommand,
          .xray = variable(kRecordXray, "")};
}

void leave_serving_environment() {
  if (variable(kRecordServer, "").empty()) return;
  unsetenv(kRecordServer);
  for (const char* injection : kInjections) unsetenv(injection);
}

}  // namespace ws::prof
