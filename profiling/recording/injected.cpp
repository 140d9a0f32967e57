// The library that the CUDA driver loads into a recorded program because CUDA_INJECTION64_PATH names it. In Python
// programs our hook loads it earlier (injected_python.cpp).
#include "profiling/recording/injected.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <new>
#include <sstream>
#include <string>

#include "profiling/base/file_identity.h"
#include "profiling/base/process.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/recording/claim_file.h"
#include "profiling/recording/launch_frames.h"
#include "profiling/recording/native_stacks.h"
#include "profiling/recording/own_files.h"
#include "profiling/recording/nccl_hooks.h"
#include "profiling/recording/profiler_calls.h"
#include "profiling/recording/record_environment.h"
#include "profiling/recording/record_keys.h"
#include "profiling/recording/writer_process.h"

namespace ws::prof {
namespace {

ProgramSender* g_recorder = nullptr;            // never destroyed, because the program may end in any way
std::atomic<ProgramSender*> g_usable{nullptr};  // nullptr in a forked child
std::atomic<bool> g_forked{false};
std::timed_mutex g_begin;
std::atomic<pid_t> g_beginning{0};  // the process that holds it

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

// Python that is frozen into a program, or isolated, does not look where our hook is. In one without ctypes the hook fails.
void note_python_without_hook(ProgramSender& sender) {
  const bool wanted = !environment(kRecordPython, "").empty() && environment(kRecordPython, "") != to_string(PythonLevel::Off);
  const std::string hooked = environment(kRecordHooked, ""), own = std::to_string(getpid());
  if (!wanted || !dlsym(RTLD_DEFAULT, "PyCode_Type") || hooked == own) return;
  sender.notes().fact("program_lines",
                      hooked.starts_with(own + " ")
                          ? "No modules, ops or lines: our hook did not start in this Python: " + hooked.substr(own.size() + 1) + "."
                          : "No modules, ops or lines: this Python ignores PYTHONPATH, as in a program made by PyInstaller, or "
                            "with python -I or -E.");
}

// The program may end while another thread begins its recording: without this, the run would say that it was killed.
void wait_until_begun() {
  constexpr auto kMost = std::chrono::milliseconds(700);
  if (g_beginning == getpid()) const std::unique_lock begun(g_begin, kMost);
}

void finish_at_exit() {
  wait_until_begun();
  ProgramSender* sender = recorder();
  if (!sender) return;
  try {
    note_python_without_hook(*sender);
    end_native_samples();
    sender->finish();
  } catch (const std::exception& failure) {
    report(std::string("the recording ends early: ") + failure.what());
  }
}

// Only such a handler gets the status.
void note_status(int status, void*) {
  wait_until_begun();
  if (ProgramSender* sender = recorder()) sender->notes().fact(kExitStatusKey, std::to_string(status & 0xff));
}

// Exit handlers run in reverse order: the file is finished with the status in it.
void finish_when_it_exits() {
  std::atexit(finish_at_exit);
  on_exit(note_status, nullptr);
}

CollectorOptions collector_options() {
  const RecordOptions asked = options_of_environment();
  CollectorOptions options;
  options.level = asked.level;
  options.hardware_counters = asked.counters;
  if (!asked.window.empty()) options.clock = clock_window(asked.window);
  if (!asked.xray.empty()) options.xray = xray_time(asked.xray);
  options.captures = asked.captures;
  options.inside_driver_start = true;
  options.program_ranges = true;
  options.libraries_loaded = finish_when_it_exits;
  options.gpu = asked.level == TraceLevel::Collectives ? nccl_source() : cupti_gpu_source();
  return options;
}

// Asks the server to make this process a job. Its children belong to the same job: they get the same variables.
void become_job(const std::string& server) {
  std::istringstream lines(output_of({server, "follow", std::to_string(getpid())}, 0, Process::Output::Captured).text);
  for (const char* variable : {kRecordFile, kRecordFollower, kRecordName, kRecordCommand})
    if (std::string value; std::getline(lines, value)) setenv(variable, value.c_str(), 1);
}

void begin(bool by_driver) {
  if (const std::string server = environment(kRecordServer, ""); !server.empty() && environment(kRecordFile, "").empty())
    become_job(server);
  const std::string wanted = environment(kRecordFile, "");
  if (wanted.empty()) return;
  CollectorOptions options = collector_options();
  options.gpu_later = !by_driver;
  begin_own_files();
  std::string path;
  with_own_files([&] { path = claim_file(wanted); });
  if (path.empty()) return;
  const auto claimed = FileIdentity::of(path);
  finish_when_it_exits();
  std::string name = environment(kRecordName, "recorded program");
  if (const std::string rank = rank_text(); !rank.empty())
    name += " · " + rank;
  else if (path != wanted)
    name += " · process " + std::to_string(getpid());
  const auto keep = [](const char* key, const char* variable) {
    if (const std::string value = environment(variable, ""); !value.empty()) g_recorder->notes().fact(key, value);
  };
  try {
    g_recorder = new ProgramSender(path, name, options, environment(kRecordFollower, ""), [](const FrameRing& ring) {
      return start_writer(environment(kRecordWriter, ""), ring);
    });
  } catch (...) {
    if (FileIdentity::of(path) == claimed) remove_database(path);  // somebody may have moved a run there
    throw;
  }
  keep(kTraceLevelKey, kRecordLevel), keep(kPythonLevelKey, kRecordPython);
  keep(kTraceWindowKey, kRecordWindow), keep(kCountersKey, kRecordCounters), keep(kCapturesKey, kRecordCaptures), keep(kXrayTimeKey, kRecordXray);
  if (environment(kRecordCommand, "") != kNoCommand) {
    std::error_code none;
    keep(kCommandKey, kRecordCommand);
    g_recorder->notes().fact(kFolderKey, std::filesystem::current_path(none).string());
  }
  g_usable = g_recorder;
  pthread_atfork(nullptr, nullptr, [] { g_usable = nullptr; g_forked = true; });
}

// At other levels CUPTI reports it.
void watch_without_cupti(bool driver_starts) {
  const RecordOptions asked = options_of_environment();
  if (asked.level != TraceLevel::Collectives) return;
  watch_nccl();
  if (asked.captures) watch_profiler_calls(driver_starts);
}

}  // namespace

ProgramSender* recorder() { return g_usable.load(std::memory_order_acquire); }
ProgramSender* active_recorder() { return ProgramRanges::instance().paused() ? nullptr : recorder(); }
bool in_forked_child() { return g_forked.load(std::memory_order_relaxed); }

namespace {

// CUDA registers exit handlers of its own, so we register again after it, to run before them.
void begin_or_throw(bool by_driver) {
  if (in_forked_child()) return;
  const std::lock_guard lock(g_begin);
  g_beginning = getpid();
  struct Begun {
    ~Begun() { g_beginning = 0; }
  } const begun;
  const OwnThreads unsampled;
  if (!g_recorder)
    begin(by_driver);
  else if (by_driver && recorder())
    g_recorder->add_gpu();
  else
    return;
  finish_when_it_exits();
  if (recorder()) watch_without_cupti(by_driver);
  if (by_driver && recorder() && options_of_environment().python == PythonLevel::Lines) {
    sample_native_program();
    ProgramRanges::instance().find_native_frames(with_native_frames);
  }
}

}  // namespace

void begin_recording(bool by_driver) {
  try {
    begin_or_throw(by_driver);
  } catch (const std::bad_alloc&) {
    report("nothing is recorded: no memory is left, or the address space of this program is limited (ulimit -v).");
  } catch (const std::exception& failure) {
    report(std::string("nothing is recorded: ") + failure.what());
  }
}

}  // namespace ws::prof

// The driver calls this while it starts.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  ws::prof::begin_recording(true);
  return 1;
}
