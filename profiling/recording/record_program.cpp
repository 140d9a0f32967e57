#include "profiling/recording/record_program.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "profiling/base/ownership.h"
#include "profiling/base/paths.h"
#include "profiling/base/process.h"
#include "profiling/base/whole_file.h"
#include "profiling/collectors/gpu_tracer.h"
#include "profiling/recording/finish_recording.h"
#include "profiling/recording/process_files.h"
#include "profiling/run_file/run_file.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

void must_be_ours(const fs::path& out) {
  const fs::path folder = out.parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("Cannot record into " + folder.string() + ": " + std::strerror(errno) + ".");
  check_run_file(out);
  if (const std::string owner = owner_of(out); !owner.empty())
    throw Failure("Cannot record into " + out.string() + ": process " + owner + " writes it. Choose another name.");
}

// A program that ended before anything was written leaves an empty file.
bool holds_something(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none) && fs::file_size(path, none) != 0;
}

constexpr const char* kSuffixes[] = {"", "-wal", "-shm"};  // of the files of a run

void remove(const std::string& path) {
  std::error_code none;
  for (const char* suffix : kSuffixes) fs::remove(path + suffix, none);
}

// Moves away an earlier recording of the same name. Restores it if there is no new one.
class Earlier {
 public:
  explicit Earlier(std::string path) : path_(std::move(path)) {
    if (!holds_something(path_)) {  // also removes the empty file of a killed recording
      remove(path_);
      move(aside(), path_);
    }
    if (!holds_something(path_)) return;
    remove(aside());  // leftovers of a killed recording would be taken for parts of this one
    move(path_, aside());
  }
  Earlier(const Earlier&) = delete;
  Earlier& operator=(const Earlier&) = delete;
  ~Earlier() {
    if (holds_something(path_)) {
      remove(aside());
    } else {
      remove(path_);
      move(aside(), path_);  // where that fails, the next recording takes it back
    }
  }

 private:
  std::string aside() const {
    return (fs::path(path_).parent_path() / (".before-" + fs::path(path_).filename().string())).string();
  }
  static void move(const std::string& from, const std::string& to) {
    std::error_code none;
    for (const char* suffix : kSuffixes) fs::rename(from + suffix, to + suffix, none);
  }
  const std::string path_;
};

constexpr std::string_view kEnding = ".wsrun";

// Another process of the program writes name.1234.wsrun instead of name.wsrun.
std::string stem_of(const std::string& path) {
  return path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : path;
}

// Returns the process number in the name of a file beside `path`, or 0 if it has none.
int64_t process_in_name(const std::string& path, const std::string& file) {
  const std::string begin = fs::path(stem_of(path)).filename().string() + ".";
  if (!file.starts_with(begin) || !file.ends_with(kEnding) || file.size() <= begin.size() + kEnding.size()) return 0;
  const std::string middle = file.substr(begin.size(), file.size() - begin.size() - kEnding.size());
  const size_t digits = middle.find_first_not_of("0123456789");
  const bool again = digits != std::string::npos && middle[digits] == '-' && digits + 1 < middle.size() &&
                     middle.find_first_not_of("0123456789", digits + 1) == std::string::npos;
  if (digits == 0 || (digits != std::string::npos && !again)) return 0;
  return std::strtoll(middle.c_str(), nullptr, 10);
}

// Files of the other processes, in order of their process numbers.
std::vector<std::string> further_files(const std::string& path) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), none))
    if (const int64_t process = process_in_name(path, entry.path().filename().string()); process > 0)
      found.emplace_back(process, entry.path().string());
  std::ranges::sort(found);
  std::vector<std::string> files;
  for (auto& [process, file] : found) files.push_back(std::move(file));
  return files;
}

// Completes the file of a program that was killed or that left without its exit handlers.
void end_file(const std::string& path, int ended_by) {
  if (!holds_something(path) || is_still_written(path)) return;
  try {
    finish_recording(path, ended_by != 0 ? "The program was ended by signal " + std::to_string(ended_by) + " (" +
                                               strsignal(ended_by) + "). The written part is shown."
                                         : "The process was killed, or left without its exit handlers. The written part is shown.");
  } catch (const std::exception&) {  // the file stays unfinished, and is shown as such
  }
}

// What a program that is not our child ended with, as its file says; 1 if it was killed.
int status_in(const std::string& path) {
  try {
    if (!holds_something(path)) return 1;
    const RunSummary run = read_run_summary(path);
    const auto at = run.extra.find(kExitStatusKey);
    return at != run.extra.end() ? std::atoi(at->second.c_str()) : run.status == "finished" ? 0 : 1;
  } catch (const std::exception&) {
    return 1;
  }
}

// Other processes of a program may end shortly after the first, or continue without it.
void end_files(const std::vector<std::string>& paths, int ended_by) {
  constexpr int kWaits = 40;
  for (int i = 0; i < kWaits && std::ranges::any_of(paths, is_still_written); ++i) usleep(50'000);
  for (const std::string& path : paths) end_file(path, ended_by);
}

}  // namespace

std::string claim_file(const std::string& wanted) {
  const std::string own = stem_of(wanted) + "." + std::to_string(getpid());
  constexpr int kMost = 100;  // recordings of this name by processes with this number
  for (int i = 0; i <= kMost; ++i) {
    const std::string path = i == 0 ? wanted : own + (i == 1 ? "" : "-" + std::to_string(i)) + std::string(kEnding);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0 && errno != EEXIST) throw Failure(path + ": cannot be created: " + std::strerror(errno));
    if (file < 0) continue;
    close(file);
    return path;
  }
  return "";
}

void give_back(const std::string& claimed) { remove(claimed); }

bool is_still_written(const std::string& path) { return holds_something(path) && !owner_of(path).empty(); }

namespace {

// The script that a launcher starts, or the launcher itself.
std::string started_by(const std::string& launcher, const std::vector<std::string>& command) {
  const auto script = std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  return script == command.end() ? launcher : fs::path(*script).filename().string();
}

bool is_launcher(const std::string& name) {
  constexpr std::array<std::string_view, 13> kNames{
      "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "torch.distributed.run", "torch.distributed.launch",
      "accelerate.commands.launch", "uv", "conda", "poetry", "pixi"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

std::string name_of_command(const std::vector<std::string>& command) {
  const std::string program = fs::path(command.at(0)).filename();
  if (is_launcher(program)) return started_by(program, command);
  if (!program.starts_with("python")) return program;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size())
      return is_launcher(command[i + 1]) ? started_by(command[i + 1], command) : command[i + 1];
    if (command[i] == "-c") break;
    if (command[i] == "-X" || command[i] == "-W" || command[i] == "--check-hash-based-pycs") {
      ++i;  // skips its value
      continue;
    }
    if (!command[i].starts_with('-')) return fs::path(command[i]).filename();
  }
  return program;
}

struct RecordedProgram::Impl {
  explicit Impl(const std::string& out) : path(out), claim(out, kMaker), before(further_files(out)), earlier(out) {}
  std::vector<std::string> files() const {
    std::vector<std::string> all{path};
    for (const std::string& file : further_files(path))
      if (std::ranges::find(before, file) == before.end() && holds_something(file)) all.push_back(file);
    return all;
  }
  void signal(int number) {
    if (child) child->signal(number);
    if (other) other->signal(number);
  }
  bool ended(int most_ms) { return child ? child->wait(most_ms).has_value() : other->ended(most_ms); }
  // After the program has ended; takes a while for a long recording.
  int end() {
    end_files(files(), child ? child->ended_by() : 0);
    const int left_with = child ? child->wait() : status_in(path);
    if (const auto all = files(); all.size() > 1) fold_processes(all);
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
  const fs::path out = fs::absolute(out_path);
  auto environment = record_environment(options, out.string());
  must_be_ours(out);
  impl_ = std::make_unique<Impl>(out.string());
  environment[kRecordName] = name_of_command(command);
  environment[kRecordFollower] = impl_->follower.address();
  environment[kRecordCommand] =
      nlohmann::json(command).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (options.prompt_output && !std::getenv("PYTHONUNBUFFERED")) environment["PYTHONUNBUFFERED"] = "1";
  impl_->child.emplace(command, Process::Output::Ours, environment, Process::Place{options.folder, options.output});
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
const std::string& RecordedProgram::path() const { return impl_->path; }
const std::string& RecordedProgram::follower() const { return impl_->follower.address(); }
bool RecordedProgram::recorded() const { return holds_something(impl_->path); }
bool RecordedProgram::began() const { return fs::exists(impl_->path); }
std::vector<std::string> RecordedProgram::paths() const { return impl_->files(); }

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
