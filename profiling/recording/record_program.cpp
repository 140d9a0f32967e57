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

std::string find_library(const RecordOptions& options) {
  if (!options.library.empty()) return options.library;
  const fs::path library = collector_library(program_file());
  if (library.empty())
    throw Failure("Cannot record: libwarpscope_inject.so is not beside this program. Build or install it again.");
  return library;
}

constexpr std::array<const char*, 4> kPythonLevels{"off", "modules", "ops", "lines"};

// Python runs the first sitecustomize on its path. Ours then runs the one that it hides.
void hook_python(std::map<std::string, std::string>& all, PythonLevel level) {
  all[kRecordPython] = to_string(level);
  if (level == PythonLevel::Off) return;
  const char* before = std::getenv("PYTHONPATH");
  all["PYTHONPATH"] = (python_folder() / "hook").string() + (before && *before ? ":" + std::string(before) : "");
}

std::map<std::string, std::string> settings(const std::string& library, const std::string& out, const std::string& name,
                                            TraceLevel level) {
  return {{"CUDA_INJECTION64_PATH", library},
          {"NVTX_INJECTION64_PATH", library},
          {kRecordLibrary, library},
          {kRecordFile, out},
          {kRecordLevel, to_string(level)},
          {kRecordName, name}};
}

void must_be_ours(const fs::path& out) {
  const fs::path folder = out.parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("Cannot record into " + folder.string() + ": " + std::strerror(errno) + ".");
  file_to_write(out);
  if (const std::string owner = owner_of(out); !owner.empty())
    throw Failure("Cannot record into " + out.string() + ": process " + owner + " writes it. Choose another name.");
}

// A program that ended before anything was written leaves an empty file.
bool holds_something(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none) && fs::file_size(path, none) != 0;
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
    if (!holds_something(path_)) move(aside(), path_);
    remove(aside());
  }

 private:
  static constexpr const char* kSuffixes[] = {"", "-wal", "-shm"};
  std::string aside() const {
    return (fs::path(path_).parent_path() / (".before-" + fs::path(path_).filename().string())).string();
  }
  static void move(const std::string& from, const std::string& to) {
    std::error_code none;
    for (const char* suffix : kSuffixes) fs::rename(from + suffix, to + suffix, none);
  }
  static void remove(const std::string& path) {
    std::error_code none;
    for (const char* suffix : kSuffixes) fs::remove(path + suffix, none);
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
                                               strsignal(ended_by) + "); what was written is shown."
                                         : "The program left at once; what was written is shown.");
  } catch (const std::exception&) {  // the file stays unfinished, and is shown as such
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

bool is_still_written(const std::string& path) { return holds_something(path) && !owner_of(path).empty(); }

void check_window(const RecordOptions& options) {
  if (options.window.empty()) return;
  if (options.level <= TraceLevel::Steps)
    throw Failure(std::string("goes with the levels graph, kernels and full; ") + to_string(options.level) +
                  " records no kernels");
  clock_window(options.window);
}

namespace {

// The script that a launcher starts, or the launcher itself.
std::string started_by(const std::string& launcher, const std::vector<std::string>& command) {
  const auto script = std::ranges::find_if(command, [](const std::string& word) { return word.ends_with(".py"); });
  return script == command.end() ? launcher : fs::path(*script).filename().string();
}

bool is_launcher(const std::string& name) {
  constexpr std::array<std::string_view, 8> kNames{
      "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "torch.distributed.run", "torch.distributed.launch"};
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

const char* to_string(PythonLevel level) { return kPythonLevels[static_cast<size_t>(level)]; }

PythonLevel python_level(std::string_view name) {
  for (size_t i = 0; i < kPythonLevels.size(); ++i)
    if (name == kPythonLevels[i]) return static_cast<PythonLevel>(i);
  throw Failure("There is no level \"" + std::string(name) + "\": choose off, modules, ops or lines.");
}

struct RecordedProgram::Impl {
  explicit Impl(const std::string& out) : path(out), claim(out, kMaker), before(further_files(out)), earlier(out) {}
  std::vector<std::string> files() const {
    std::vector<std::string> all{path};
    for (const std::string& file : further_files(path))
      if (std::ranges::find(before, file) == before.end() && holds_something(file)) all.push_back(file);
    return all;
  }
  LiveFollower follower;
  std::string name, path;
  Ownership claim;                  // the program's processes claim the files themselves
  std::vector<std::string> before;  // files of an earlier recording of this name
  Earlier earlier;
  std::optional<Process> child;
  std::optional<int> status;  // set once the file is complete too
  std::future<void> ending;   // completes the file after the program has ended
};

RecordedProgram::RecordedProgram(const std::vector<std::string>& command, const std::string& out_path,
                         const RecordOptions& options) {
  if (command.empty()) throw Failure("Cannot record: no command was given.");
  check_window(options);  // here, so that the caller sees the failure
  const std::string library = find_library(options);
  const fs::path out = fs::absolute(out_path);
  must_be_ours(out);
  impl_ = std::make_unique<Impl>(out.string());
  impl_->name = command[0];
  auto environment = settings(library, impl_->path, name_of_command(command), options.level);
  environment[kRecordFollower] = impl_->follower.address();
  environment[kRecordWindow] = options.window;
  environment[kRecordCommand] =
      nlohmann::json(command).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  hook_python(environment, options.python);
  environment[kRecordCounters] = options.counters ? "1" : "0";
  impl_->child.emplace(command, Process::Output::Ours, environment);
}

RecordedProgram::~RecordedProgram() {
  if (!impl_ || impl_->status) return;
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    // The program has ended and its number may be reused; the future waits for the file.
    if (impl_->ending.valid()) return;
    impl_->child->signal(signal);
    if (wait(4000)) return;
  }
}

TraceBatch RecordedProgram::take() { return impl_->follower.take(); }
LiveCurves RecordedProgram::take_curves() { return impl_->follower.take_curves(); }
FollowStatus RecordedProgram::status() const { return impl_->follower.status(); }
const std::string& RecordedProgram::path() const { return impl_->path; }
bool RecordedProgram::recorded() const { return holds_something(impl_->path); }
std::vector<std::string> RecordedProgram::paths() const { return impl_->files(); }

void RecordedProgram::interrupt() { impl_->child->signal(SIGINT); }

std::optional<int> RecordedProgram::wait(int most_ms) {
  if (impl_->status) return impl_->status;
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<int> left_with = impl_->child->wait(most_ms);
  if (!left_with) return std::nullopt;
  if (!impl_->ending.valid())
    impl_->ending = std::async(std::launch::async, [impl = impl_.get()] {
      end_files(impl->files(), impl->child->ended_by());  // takes a while for a long recording
      if (const auto files = impl->files(); files.size() > 1) fold_processes(files);
    });
  if (impl_->ending.wait_until(begin + std::chrono::milliseconds(most_ms)) == std::future_status::ready)
    impl_->status = left_with;
  return impl_->status;
}

}  // namespace ws::prof
