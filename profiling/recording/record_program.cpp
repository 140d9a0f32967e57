#include "profiling/recording/record_program.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "profiling/analysis/step_finder.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/failure.h"
#include "profiling/base/file_identity.h"
#include "profiling/base/ownership.h"
#include "profiling/base/sqlite_log.h"
#include "profiling/base/process.h"
#include "profiling/base/whole_file.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/formats/convert.h"
#include "profiling/recording/command_words.h"
#include "profiling/recording/process_files.h"
#include "profiling/recording/program_writer.h"
#include "profiling/recording/record_keys.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

std::map<int, FoundSteps> steps_of(const RunData& run) {
  StepFinders finder;
  std::vector<std::string> names;
  for (size_t i = 0; i < run.trace.name_count(); ++i) names.push_back(run.trace.name(static_cast<NameId>(i)));
  for (const StepAllocations& calls : run.allocations) finder.take(calls);
  for (const Track& track : run.trace.tracks())
    for (const SpanBlock& block : track.blocks)
      finder.take(track.rank, track.kind, track.group + " " + track.name, block.spans, names);
  return finder.find();
}

void find_steps_of(RunData& run) {
  const auto by_rank = steps_of(run);
  if (by_rank.empty()) return;
  for (const auto& [rank, steps] : by_rank)
    if (!steps.marked) run.trace.append(run.trace.track(TrackKind::Steps, "steps", "CPU", 0, rank), steps.spans(run.trace.intern("step")));
  const FoundSteps& found = by_rank.begin()->second;
  run.summary.steps = static_cast<int64_t>(found.steps.size());
  run.summary.us_per_step = found.us_each;
  run.summary.step_time = step_time(found, used_gpu(run.trace));
  run.summary.allocator_calls_per_step = found.allocator_calls_each;
  run.summary.extra.try_emplace("steps_from", found.from());
}

// Completes the recording of a program that ended too early to do it: finds the steps of a run file whose status is still "running",
// and sets it to "stopped". Only for a file that no process writes any more. Returns false if there was nothing to do. Throws
// Failure; the file is then unchanged.
bool finish_recording(const std::string& path, const std::string& why) {
  const auto file = FileIdentity::of(path);
  if (read_run_summary(path).status != "running") return false;
  RunData run = import_run(path);
  find_steps_of(run);
  run.summary.status = "stopped";
  run.summary.extra["message"] = why;
  run.summary.wall_s = static_cast<double>(run.trace.last_time()) * 1e-9;
  if (!run.summary.step_time.known()) run.summary.step_time = step_time(run, StepsOfRun::of(run).sample({.lengths_only = true}));
  write_whole_file(path, [&](const std::string& part) {
    RunFileWriter writer(part, run.summary);
    writer.add(run.trace);
    finish_run_file(writer, run);
    if (FileIdentity::of(path) != file) throw Failure(path + " was replaced by another file while it was being completed.");
  });
  return true;
}

void must_be_ours(const fs::path& out) {
  const fs::path folder = out.parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("Cannot record into " + folder.string() + ": " + std::strerror(errno) + ".");
  check_run_file(out);
  if (const std::string owner = owner_of(out); !owner.empty())
    throw Failure("Cannot record into " + out.string() + ": process " + owner + " writes it. Choose another name.");
}

// Moves away an earlier recording of the same name. Restores it if there is no new one.
class Earlier {
 public:
  explicit Earlier(std::string path) : path_(std::move(path)) {
    if (!holds_something(path_)) {  // also removes the empty file of a killed recording
      remove_database(path_);
      move_database(aside(), path_);
    }
    if (!holds_something(path_)) return;
    remove_database(aside());  // leftovers of a killed recording would be taken for parts of this one
    move_database(path_, aside());
  }
  Earlier(const Earlier&) = delete;
  Earlier& operator=(const Earlier&) = delete;
  ~Earlier() {
    if (holds_something(path_)) {
      remove_database(aside());
    } else {
      remove_database(path_);
      move_database(aside(), path_);  // where that fails, the next recording takes it back
    }
  }

 private:
  std::string aside() const {
    return (fs::path(path_).parent_path() / (".before-" + fs::path(path_).filename().string())).string();
  }
  const std::string path_;
};

// Reports why the recording of a killed program ends, and completes its file if its writer was killed, too.
void end_file(const std::string& path, const std::string& mark, int ended_by) {
  if (!is_of_recording(path, mark) || is_still_written(path)) return;
  try {
    const std::string why = ended_by == 0 ? kProgramLeft
                                          : "The program was ended by signal " + std::to_string(ended_by) + " (" +
                                                strsignal(ended_by) + "). The written part is shown.";
    if (!finish_recording(path, why) && ended_by != 0 && read_run_summary(path).said("message") == kProgramLeft)
      keep_with_run(path, "message", why);
  } catch (const std::exception&) {  // the file stays unfinished, and is shown as such
  }
}

// What a program that is not our child ended with, as its file says; 1 if it was killed.
int status_in(const std::string& path) {
  try {
    const RunSummary run = read_run_summary(path);
    const auto at = run.extra.find(kExitStatusKey);
    return at != run.extra.end() ? std::atoi(at->second.c_str()) : run.status == "finished" ? 0 : 1;
  } catch (const std::exception&) {
    return 1;
  }
}

// True while the writer of a process that has ended completes its file.
bool is_being_completed(const std::string& path) {
  const std::string owner = owner_of(path);
  return !owner.empty() && !is_alive(std::atoll(owner.c_str()));
}

constexpr int kSliceMs = 10;

// A process that was killed while its recording began leaves an empty file, which its writer takes or leaves at once.
void wait_for_writer(const std::string& path) {
  for (int ms = 0; ms < 10'000 && fs::exists(path) && !holds_something(path); ms += kSliceMs) usleep(kSliceMs * 1000);
}

// Other processes of a program may end shortly after the first, or continue without it.
void end_files(const std::vector<std::string>& paths, const std::string& mark, int ended_by) {
  constexpr int kMostOthersMs = 2000, kMostOursMs = 600'000;  // a disk may hang
  for (int ms = 0; (ms < kMostOursMs && std::ranges::any_of(paths, is_being_completed)) || (ms < kMostOthersMs && std::ranges::any_of(paths, is_still_written));
       ms += kSliceMs)
    usleep(kSliceMs * 1000);
  for (const std::string& path : paths) end_file(path, mark, ended_by);
}

}  // namespace

struct RecordedProgram::Impl {
  explicit Impl(const std::string& out) : path(out), claim(out, kMaker), before(further_files(out)), earlier(out) {}
  bool is_ours(const std::string& file) const { return is_of_recording(file, recording_mark(follower.address())); }
  // What has a name of this recording now. Somebody may have moved another file to such a name.
  std::vector<std::string> named() const {
    std::vector<std::string> all{path};
    for (const std::string& file : further_files(path))
      if (std::ranges::find(before, file) == before.end()) all.push_back(file);
    std::erase_if(all, [](const std::string& file) { return !holds_something(file); });
    return all;
  }
  std::vector<std::string> files(bool ours) const {
    std::vector<std::string> some = named();
    std::erase_if(some, [&](const std::string& file) { return is_ours(file) != ours; });
    return some;
  }
  void signal(int number) {
    if (child) child->signal(number);
    if (other) other->signal(number);
  }
  bool ended(int most_ms) { return child ? child->wait(most_ms).has_value() : other->ended(most_ms); }
  // After the program has ended; takes a while for a long recording.
  int end() {
    wait_for_writer(path);
    // Which files are ours is read once their writers have left: one that closes its file while another process reads it leaves its log.
    end_files(named(), recording_mark(follower.address()), child ? child->ended_by() : 0);
    const int left_with = child ? child->wait() : is_ours(path) ? status_in(path) : 1;
    if (const auto all = files(true); all.size() > 1) fold_processes(all);
    return left_with;
  }
  LiveFollower follower;
  std::string path;
  Ownership claim;                  // the program's processes claim the files themselves
  std::vector<std::string> before;  // files of an earlier recording of this name
  Earlier earlier;
  std::optional<Process> child;
  std::optional<OtherProcess> other;  // instead of a child
  std::optional<int> status;          // set once the file is complete too
  std::future<int> ending;
};

RecordedProgram::RecordedProgram(const std::vector<std::string>& command, const std::string& out_path,
                         const RecordOptions& options) {
  if (command.empty()) throw Failure("Cannot record: no command was given.");
  refuse_masked(command);
  const fs::path out = fs::absolute(out_path);
  auto environment = record_environment(options, out.string());
  must_be_ours(out);
  impl_ = std::make_unique<Impl>(out.string());
  environment[kRecordName] = name_of_command(command);
  environment[kRecordFollower] = impl_->follower.address();
  environment[kRecordCommand] =
      options.keep_command ? nlohmann::json(without_secrets(command)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : kNoCommand;
  if (options.prompt_output && !std::getenv("PYTHONUNBUFFERED")) environment["PYTHONUNBUFFERED"] = "1";
  impl_->child.emplace(command, Process::Output::Ours, environment, ProcessPlace{options.folder, options.output});
}

RecordedProgram::RecordedProgram(const std::string& mark, const std::string& out_path) {
  const fs::path out = fs::absolute(out_path);
  must_be_ours(out);
  impl_ = std::make_unique<Impl>(out.string());
  impl_->other.emplace(mark);
}

RecordedProgram::~RecordedProgram() {
  if (!impl_ || impl_->status || !impl_->child) return;
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    // The program has ended and its number may be reused; the future waits for the file.
    if (impl_->ending.valid()) return;
    impl_->signal(signal);
    if (wait(4000)) return;
  }
}

TraceBatch RecordedProgram::take() { return impl_->follower.take(); }
LiveCurves RecordedProgram::take_curves() { return impl_->follower.take_curves(); }
FollowStatus RecordedProgram::status() const { return impl_->follower.status(); }
const std::string& RecordedProgram::follower() const { return impl_->follower.address(); }
bool RecordedProgram::recorded() const { return !impl_->files(true).empty(); }
bool RecordedProgram::began() const { return fs::exists(impl_->path); }
std::vector<std::string> RecordedProgram::paths() const { return impl_->files(true); }
std::vector<std::string> RecordedProgram::foreign() const { return impl_->files(false); }

void RecordedProgram::interrupt() { impl_->signal(SIGINT); }
void RecordedProgram::terminate() { impl_->signal(SIGTERM); }

std::optional<int> RecordedProgram::wait(int most_ms) {
  if (impl_->status) return impl_->status;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(most_ms);
  if (!impl_->ending.valid()) {
    if (!impl_->ended(most_ms)) return std::nullopt;
    constexpr auto kHereIfNoThreadStarts = std::launch::async | std::launch::deferred;
    impl_->ending = std::async(kHereIfNoThreadStarts, [impl = impl_.get()] { return impl->end(); });
  }
  if (impl_->ending.wait_until(until) != std::future_status::timeout) impl_->status = impl_->ending.get();
  return impl_->status;
}

}  // namespace ws::prof
