// Runs a CUDA or Python program, records what it does, and reports progress meanwhile.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/progress_line.h"
#include "app/cli/remote_watch.h"
#include "app/core/remote/job_request.h"
#include "app/core/runs/run_ceilings.h"
#include "profiling/analysis/ranks.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/record_keys.h"
#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/stall_samples.h"

namespace ws::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RecordArguments {
  std::string out, level = "full", python, window, xray, library, folder;
  bool counters = false, captures = false, serve = false, environment = false, no_command = false;
  bool replaces = false;  // an earlier recording
  bool live = isatty(STDERR_FILENO) != 0;
  std::vector<std::string> command;
  RemoteArguments remote;
};

std::string counted(uint64_t number, const char* what) { return count_text(number) + " " + what; }

// The steps are those that are complete so far. The last ones of a GPU wait for their kernels.
std::string news(const prof::FollowStatus& now, double seconds) {
  std::string line = duration_text(seconds);
  if (now.steps > 0) line += " · " + counted(now.steps, "steps");
  if (now.programs > 0 && now.kernels + now.copies + now.calls + now.allocations == 0)
    return line + " · " + counted(now.spans, "ranges and stacks") + " · no CUDA yet";
  line += " · " + counted(now.kernels, "kernels") + " · " + counted(now.copies, "copies") + " · " +
          counted(now.calls, "calls") + " · " + counted(now.allocations, "allocations");
  if (now.programs > 1) line += " · " + counted(static_cast<uint64_t>(now.running), "processes");
  if (now.dropped > 0) line += " · " + counted(now.dropped, "dropped");
  return now.programs == 0 ? duration_text(seconds) + " · CUDA not started yet" : line;
}

std::atomic<int> g_terminations{0};  // how often we got SIGTERM

// SIGTERM ends the program. We go on until its files are complete. A scheduler sends it to the program as well, `kill` sends
// it to us alone: after a while it is passed on.
class PassTermination {
 public:
  PassTermination() : before_(std::signal(SIGTERM, [](int) { ++g_terminations; })) {}
  ~PassTermination() { std::signal(SIGTERM, before_); }
  PassTermination(const PassTermination&) = delete;
  PassTermination& operator=(const PassTermination&) = delete;

  void to(prof::RecordedProgram& run) {
    const int seen = g_terminations;
    if (seen > seen_) seen_ = seen, due_ = Clock::now() + std::chrono::seconds(2);
    if (Clock::now() < due_) return;
    due_ = kNever;
    run.terminate();
  }

 private:
  static constexpr Clock::time_point kNever = Clock::time_point::max();
  void (*before_)(int);
  int seen_ = 0;
  Clock::time_point due_ = kNever;
};

// The program's own output appears between our lines. On a terminal we erase our line before the next one.
int watch(prof::RecordedProgram& run, bool live) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto begin = Clock::now();
  auto due = begin;
  std::optional<int> status;
  PassTermination termination;
  while (!(status = run.wait(100))) {
    termination.to(run);
    while (!run.take().empty()) {
    }
    if (!live || Clock::now() < due) continue;
    due = Clock::now() + std::chrono::milliseconds(terminal ? 250 : 1000);
    const double seconds = prof::seconds_since(begin);
    std::fprintf(stderr, terminal ? "\r\033[K%s" : "%s\n", news(run.status(), seconds).c_str());
  }
  if (live && terminal) std::fprintf(stderr, "\r\033[K");
  return *status;
}

prof::TraceLevel level_of(const RecordArguments& a) {
  try {
    return prof::record_level(a.level);
  } catch (const Failure& failure) {
    throw UsageError(std::string("--trace: ") + failure.what());
  }
}

prof::PythonLevel python_level_of(const RecordArguments& a, prof::TraceLevel level) {
  if (a.python.empty()) return prof::usual_python_level(level);
  try {
    return prof::python_level(a.python);
  } catch (const Failure& failure) {
    throw UsageError(std::string("--level: ") + failure.what());
  }
}

prof::RecordOptions options_of(const RecordArguments& a) {
  const prof::TraceLevel level = level_of(a);
  const prof::RecordOptions options{level, a.library, a.counters, python_level_of(a, level), a.window, a.captures, a.folder, "", false, !a.no_command, a.xray};
  try {
    prof::check_options(options);
  } catch (const Failure& failure) {
    throw UsageError(failure.what());
  }
  return options;
}

// The step time that all views show. Without it, the mean.
std::string step_text(const prof::RunSummary& run) {
  if (run.step_time.known()) return "median " + time_text(run.step_time.us.value);
  return "mean " + time_text(run.us_per_step);
}

// Describes what a file contains.
std::string contents(const std::string& path, const RecordArguments& a) {
  const prof::RunSummary run = prof::read_run_summary(path);
  std::string text;
  if (prof::is_still_written(path))
    text += "still being written: its process goes on";
  else if (run.steps > 0)
    text += count_text(run.steps) + " steps, " + step_text(run) + ", found in " + run.said("steps_from");
  else if (!run.said("message").empty())
    text += "its steps were not counted";  // the recording ended early
  else
    text += run.said("program_python").empty() ? "no steps were found"
                                               : "no steps were found; to mark them: warpsight.step(), after pip install " +
                                                     shell_word(python_folder().string());
  if (const std::string captures = run.said(prof::kCaptureCountKey); !captures.empty())
    text += captures == "1" ? "; 1 capture range" : "; " + captures + " capture ranges";
  const auto add = [&text](const std::string& line) { text += line.empty() ? "" : "\n" + line; };
  add(run.said("message"));
  if (run.extra.contains("cpu_only") && !run.extra.contains(prof::kNeverCaptured)) add(run.said("traced"));
  if (const std::string lost = run.said("dropped_records"); !lost.empty() && lost != "0") add(lost + " records were lost.");
  add(run.said("kernel_ranges"));
  for (const char* missing : prof::kMissingKeys) add(run.said(missing));
  add(run.said(prof::kXrayKey));
  if (a.counters)
    add(run.said("counters").empty() ? "No hardware counters: the program ended before they were sampled."
                                 : run.said("counters"));
  return text;
}

std::string process_of(const std::string& path) {
  const prof::RunSummary run = prof::read_run_summary(path);
  const std::string process = run.said(prof::kRecordProcess);
  if (process.empty()) return "of an unknown process";
  const size_t space = process.find(' ');
  return process.substr(space == std::string::npos ? process.size() : space + 1) + ", process " + process.substr(0, space);
}

// Prints how to see all ranks if this file lacks some, as on each of several hosts.
std::string how_to_join(const std::string& path, const std::string& shown) {
  const prof::RankOfFile file = prof::rank_of_file(path);
  if (file.rank < 0 || static_cast<int>(file.held.size()) == file.ranks) return "";
  return "\nIt has " + prof::ranks_text(file.held) + " of " + std::to_string(file.ranks) +
         ". If other hosts ran the missing ranks, copy their files here and join them: warpsight convert " + shell_word(shown) +
         " FILES… joined.wsrun";
}

// Prints what was recorded, and how to look at it. A program without GPU work has its host's time only.
std::string conclusion(const std::vector<std::string>& paths, const RecordArguments& a) {
  const auto shown = [&a](const std::string& path) { return (std::filesystem::path(a.out).parent_path() / std::filesystem::path(path).filename()).string(); };
  if (paths.size() == 1)
    return "recorded in " + shown(paths[0]) + (a.replaces ? " (replaces an earlier recording): " : ": ") + contents(paths[0], a) + "\nto look at it: warpsight stats " +
           shell_word(shown(paths[0])) + (prof::read_run_summary(paths[0]).extra.contains("cpu_only") ? " --by host" : "") + ", or open it in the window" +
           how_to_join(paths[0], shown(paths[0]));
  const bool attempts = std::ranges::any_of(paths, [](const std::string& path) { return prof::read_run_summary(path).extra.contains(prof::kRestartKey); });
  std::string text = attempts ? "The launcher has started all ranks anew. Each attempt is a run of its own:"
                              : "recorded " + std::to_string(paths.size()) + " processes, each in a file of its own:";
  for (const std::string& path : paths) text += "\n" + shown(path) + " (" + process_of(path) + "): " + contents(path, a);
  return text + "\nto look at one: warpsight stats " + shell_word(shown(paths[0])) + ", or open them in the window";
}

std::string nothing_recorded(const RecordArguments& a, int exit_status) {
  if (python_level_of(a, level_of(a)) == prof::PythonLevel::Off)
    return "Nothing was recorded: " + a.command[0] + " (exit status " + std::to_string(exit_status) +
           ") did not start CUDA, and level off records nothing of Python.";
  return "Nothing was recorded: " + a.command[0] + " (exit status " + std::to_string(exit_status) +
         ") " + prof::kNothingToRecord + ".";
}

// Prints every second how much was recorded on the other machine.
class NewsFromThere {
 public:
  NewsFromThere(bool live, ProgressLine& line) : live_(live), line_(line) {}
  void take(const app::RemoteUpdate& update) {
    if (!live_ || !update.recording || Clock::now() < due_) return;
    due_ = Clock::now() + std::chrono::seconds(1);
    line_.say(news(*update.recording, prof::seconds_since(begin_)));
  }

 private:
  bool live_;
  ProgressLine& line_;
  Clock::time_point begin_ = Clock::now(), due_ = begin_;
};

// Fetches the files of all remote processes. Each gets a name based on ours.
std::vector<std::string> fetch_recorded(const RecordArguments& a, app::RemoteRun& run, const std::vector<std::string>& files,
                                        ProgressLine& line) {
  const std::filesystem::path out(a.out);
  std::vector<std::string> paths;
  for (const std::string& file : files) {
    const std::string suffix = file.starts_with(run.name() + ".") ? file.substr(run.name().size()) : "";
    if (!app::is_plain_name(file) || suffix.empty()) throw Failure("The other machine named a file that does not "
                                                                   "belong to this recording.");
    const bool first = suffix == ".wsrun";
    paths.push_back(first ? a.out : unused_name((out.parent_path() / (out.stem().string() + suffix)).string()));
    fetch(run, {{"file", file}}, paths.back(), line, first ? a.remote.found : FoundFile());
  }
  return paths;
}

// With --serve, the recording runs as on another machine, but here, so that windows and
// other terminals can come and go.
app::RemoteAddress machine_of(RecordArguments& a) {
  if (a.serve) a.remote.on = "pipe:exec '" + program_file().string() + "' serve";
  return a.remote.address(a.out);
}

// Shows a recording on another machine until it ends or is left. Copies its files here, if a.out names one.
int watch_recording(const RecordArguments& a, app::RemoteRun& run, ProgressLine& line) {
  NewsFromThere news(a.live, line);
  const RemoteOutcome end = watch(
      run, line, {.at_interrupt = a.remote.at_interrupt, .log = stdout, .each = [&](const app::RemoteUpdate& update) {
                    news.take(update);
                  }});
  if (end.left) return kDone;
  if (!end.exit_status)
    throw Failure("The recording there was killed. The written part is kept there.");
  if (end.files.empty())
    line.say(nothing_recorded(a, *end.exit_status));
  else if (a.out.empty())
    line.say("the recording is kept there as " + end.files[0]);
  else
    line.say(conclusion(fetch_recorded(a, run, end.files, line), a));
  return *end.exit_status;
}

int record_there(RecordArguments& a) {
  const prof::RecordOptions options = options_of(a);  // reports wrong options before anything starts
  app::RemoteLink link(machine_of(a));
  const std::string name = app::RemoteRun::new_name(std::filesystem::path(a.command[0]).filename().string());
  app::RemoteRun::start(link, name, app::record_request(a.command, options));
  app::RemoteRun run(link, name, false);
  ProgressLine line(stderr);
  if (a.serve)
    line.say("recorded as " + name + "; to watch it from elsewhere: warpsight attach ssh://THIS-MACHINE --job " + name);
  else
    line.say("records on " + link.address().place() + " as " + name);
  return watch_recording(a, run, line);
}

// For eval in a shell: programs that it starts from then on become jobs.
int print_environment(const RecordArguments& a) {
  for (const auto& [name, value] : prof::serving_environment(options_of(a), program_file().string()))
    std::printf("export %s=%s\n", name.c_str(), shell_quoted(value).c_str());
  return kDone;
}

int record(RecordArguments a) {
  if (a.out.empty()) a.out = unused_name("recorded.wsrun");  // a recording that fails must not cost an earlier one
  check_run_name(a.out);
  std::error_code none;
  a.replaces = std::filesystem::exists(a.out, none) && std::filesystem::file_size(a.out, none) > 0;
  if (a.serve && !a.remote.on.empty()) throw UsageError("--serve records on this machine; leave out --on");
  if (a.serve || !a.remote.on.empty()) return record_there(a);
  prof::RecordedProgram run(a.command, a.out, options_of(a));
  const prof::IgnoreInterrupt ignore;
  const int status = watch(run, a.live);
  for (const std::string& path : run.foreign())
    std::fprintf(stderr, "warpsight: %s is another file now: it was moved there during the recording. It stays as it is.\n", printable(path).c_str());
  if (!run.recorded()) {  // the exit status is the program's all the same
    const std::string why = run.began() ? "Nothing was recorded. The reason stands above." : nothing_recorded(a, status);
    std::fprintf(stderr, "warpsight: %s\n", printable(why).c_str());
    return status;
  }
  for (const std::string& path : run.paths())
    if (!prof::is_still_written(path)) app::keep_ceilings(path);
  std::fprintf(stderr, "%s\n", printable(conclusion(run.paths(), a)).c_str());
  return status;
}

}  // namespace

int attach_recording(const AttachedJob& job) {
  RecordArguments a;
  a.out = job.run_file, a.remote = job.remote;
  a.counters = JsonInput(job.request, "").at("counters").flag(false);
  a.command = {"the program"};
  ProgressLine line(stderr);
  return watch_recording(a, job.run, line);
}

Run add_record(CLI::App& program) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App& command = *program.add_subcommand("record", "run a CUDA or Python program and record what it does");
  command.add_option("-o,--run", arguments->out, "the run file to write (default: recorded.wsrun, then recorded-2.wsrun and so on)")->type_name("FILE");
  command.add_option("--out", arguments->out)->group("");  // its former name
  arguments->remote.add_to(command);
  command.add_option("--folder", arguments->folder, "start the program in this folder; with --on, a folder of that machine")
      ->type_name("FOLDER");
  command.add_flag("--serve", arguments->serve,
                   "let windows and other terminals attach and detach at any time; continues if this terminal closes");
  command.add_flag("--environment", arguments->environment,
                   "print variables for a shell: each CUDA or Python program that it starts then becomes such a job");
  command.add_option("--trace", arguments->level, "how much is traced: steps, collectives (steps and NCCL's collectives, without CUPTI: costs least of the levels "
                                                                  "that see the GPU), graph, kernels, full")
      ->type_name("LEVEL")
      ->capture_default_str();
  command
      .add_option("--level", arguments->python,
                  "what to record of a Python program: off, steps (optimizer steps, logged values), modules (also PyTorch "
                  "modules and phases), ops (also PyTorch ops), lines (also source lines) [modules; steps at --trace collectives]")
      ->type_name("LEVEL");
  command
      .add_option(
          "--trace-window", arguments->window,
          "trace T of every M, for example 200ms/5s. This keeps the file of a long run small, but does not lower "
          "the cost. In between only allocator calls and NVTX ranges are kept. The first T begins with the "
          "first work on the GPU")
      ->type_name("T/M");
  command
      .add_option("--xray", arguments->xray,
                  "sample for T where kernels wait and for what, once, or T of every M: 200ms/10s. Kernel records pause meanwhile. The first T "
                  "begins 2 s after the first work on the GPU")
      ->type_name("T[/M]");
  command.add_flag("--capture-range", arguments->captures,
                   "record only what the program asks for, as often as it does: between cudaProfilerStart and cudaProfilerStop "
                   "(torch.cuda.profiler.start and stop), or inside `with warpsight.capture():`");
  command.add_flag("--no-command", arguments->no_command,
                   "keep neither the command nor the folder with the run. Without this option they are kept, with ••• instead of what looks "
                   "like a key, a token or a password");
  command.add_flag("--counters", arguments->counters,
                   "also sample hardware counters: busy multiprocessors, tensor pipe, DRAM");
  command
      .add_option("--library", arguments->library, "collector library to load (default: the one beside this program)")
      ->type_name("FILE");
  command.footer(
      "Examples:\n  warpsight record -- python3 train.py --epochs 2\n  warpsight record --capture-range -- python3 train.py\n  warpsight record --trace-window "
      "200ms/5s --run long.wsrun -- ./program\n  warpsight record -- torchrun --nproc_per_node 2 train.py\n  warpsight record --trace collectives -- torchrun --nproc_per_node 8 train.py\nEach process "
      "that works on a GPU leaves a file: out.wsrun, out.PROCESS.wsrun.\nThe ranks of one program become one run.");
  command.add_flag("--live,!--no-live", arguments->live,
                   "print progress while the program runs (default on a terminal)");
  command.add_option("PROGRAM", arguments->command, "the program and its arguments");
  command.allow_extras();
  return [arguments, &command] {
    const auto unknown = command.remaining();
    if (!unknown.empty() && unknown[0] != "--") {
      throw UsageError("record: " + unknown[0] + " is not an option of record; put -- before the program");
    }
    if (arguments->environment) return print_environment(*arguments);
    if (arguments->command.empty()) throw UsageError("record: which program? For example: record -- python3 train.py");
    return record(*arguments);
  };
}

}  // namespace ws::cli
