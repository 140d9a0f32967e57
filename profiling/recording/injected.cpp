// The library that the CUDA driver loads into a recorded program, named by CUDA_INJECTION64_PATH.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "profiling/collectors/gpu_tracer.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_program.h"
#include "profiling/recording/program_writer.h"

namespace {

ws::prof::ProgramWriter* g_recorder = nullptr;  // never destroyed: the program may end in any way
pid_t g_owner = 0;

// Only the process that made the recorder ends it: a forked child has none of its threads.
void finish_at_exit() {
  if (!g_recorder || getpid() != g_owner) return;
  try {
    g_recorder->finish();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "warpscope: the recording ends early: %s\n", failure.what());
  }
}

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

void begin() {
  const std::string wanted = environment(ws::prof::kRecordFile, "");
  if (wanted.empty() || g_recorder) return;
  ws::prof::CollectorOptions options;
  options.level = ws::prof::trace_level(environment(ws::prof::kRecordLevel, "full"));
  options.hardware_counters = environment(ws::prof::kRecordCounters, "0") == "1";
  if (const std::string window = environment(ws::prof::kRecordWindow, ""); !window.empty())
    options.clock = ws::prof::clock_window(window);
  options.inside_driver_start = true;
  options.program_ranges = true;
  options.libraries_loaded = [] { std::atexit(finish_at_exit); };
  options.gpu = ws::prof::cupti_gpu_source();
  const std::string path = ws::prof::claim_file(wanted);
  if (path.empty()) return;
  g_owner = getpid();
  std::string name = environment(ws::prof::kRecordName, "recorded program");
  if (const std::string rank = ws::prof::rank_text(); !rank.empty())
    name += " · " + rank;
  else if (path != wanted)
    name += " · process " + std::to_string(g_owner);
  g_recorder = new ws::prof::ProgramWriter(path, name, options, environment(ws::prof::kRecordFollower, ""));
  std::atexit(finish_at_exit);
}

}  // namespace

// Called by the driver while it starts. Whatever goes wrong here, the program runs on.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    begin();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "warpscope: nothing is recorded: %s\n", failure.what());
  }
  return 1;
}
