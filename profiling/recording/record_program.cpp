#include "profiling/recording/record_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "profiling/collectors/gpu_tracer.h"
#include "profiling/base/failure.h"
#include "profiling/cupti/gpu_source.h"
#include "profiling/recording/finish_recording.h"
#include "profiling/run_file/run_file.h"

namespace ws::prof {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLibrary = "libwarpscope_inject.so";

std::string find_library(const RecordOptions& options) {
  if (!options.library.empty()) return options.library;
  std::error_code none;
  const fs::path here = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const fs::path& folder : {here, here / "../lib", here / "../lib/warpscope", here / "../profiling/collectors",
                                 here / "../../profiling/collectors"}) {
    if (fs::exists(folder / kLibrary, none)) return fs::canonical(folder / kLibrary, none);
  }
  throw Failure(std::string("Cannot record: ") + kLibrary +
                " is not beside this program; it is built where CUDA 13 is.");
}

// The child of a program with threads may not allocate before it becomes the other program: all is made ready here.
class Launch {
 public:
  Launch(const std::vector<std::string>& command, const std::map<std::string, std::string>& more) : words_(command) {
    for (char** own = environ; *own; ++own) {
      const std::string entry = *own;
      if (!more.contains(entry.substr(0, entry.find('=')))) settings_.push_back(entry);
    }
    for (const auto& [key, value] : more) settings_.push_back(key + "=" + value);
    arguments_ = pointers(words_);
    environment_ = pointers(settings_);
  }
  [[noreturn]] void become(int report) {
    execvpe(arguments_[0], arguments_.data(), environment_.data());
    const int error = errno;
    [[maybe_unused]] const auto written = write(report, &error, sizeof error);
    _exit(127);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  }
  std::vector<std::string> words_, settings_;
  std::vector<char*> arguments_, environment_;
};

std::map<std::string, std::string> settings(const std::string& library, const std::string& out, const std::string& name,
                                            TraceLevel level) {
  std::map<std::string, std::string> all{
      {"CUDA_INJECTION64_PATH", library}, {kRecordFile, out}, {kRecordLevel, to_string(level)}, {kRecordName, name}};
  // Ours, for ranges before the program uses the GPU; the library we load into it names the one that it finds there.
  if (const std::string cupti = cupti_gpu_source().library; !cupti.empty()) all["NVTX_INJECTION64_PATH"] = cupti;
  return all;
}

// A running program. Throws Failure when it cannot be started.
pid_t start(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  Launch launch(command, environment);
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw Failure("Cannot record: no pipe could be made.");
  const pid_t child = fork();
  if (child == 0) launch.become(pipe_ends[1]);
  close(pipe_ends[1]);
  int error = 0;
  const bool failed = child > 0 && read(pipe_ends[0], &error, sizeof error) == sizeof error;
  close(pipe_ends[0]);
  if (child < 0) throw Failure("Cannot record: no process could be started.");
  if (!failed) return child;
  waitpid(child, nullptr, 0);
  throw Failure("Cannot start " + command[0] + ": " + std::strerror(error) + ".");
}

void must_be_writable(const fs::path& out) {
  const fs::path folder = out.parent_path();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Failure("Cannot record into " + folder.string() + ": " + std::strerror(errno) + ".");
  if (fs::is_directory(out)) throw Failure("Cannot record into " + out.string() + ": it is a folder.");
}

// Of a program that ended before anything was written there is an empty file.
bool holds_something(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none) && fs::file_size(path, none) != 0;
}

// An earlier recording by the same name: it comes back when there is none to take its place.
class Earlier {
 public:
  explicit Earlier(std::string path) : path_(std::move(path)) {
    if (holds_something(path_)) {
      remove(aside());  // what a killed recording left there would be taken for a part of this one
      move(path_, aside());
    } else {
      remove(path_);
    }
  }
  Earlier(const Earlier&) = delete;
  Earlier& operator=(const Earlier&) = delete;
  ~Earlier() {
    if (!holds_something(path_)) move(aside(), path_);
    remove(aside());
  }

 private:
  static constexpr const char* kSuffixes[] = {"", "-wal", "-shm"};
  std::string aside() const { return path_ + ".before"; }
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

// name.wsrun is name.1234.wsrun for another process of the program.
std::string stem_of(const std::string& path) {
  return path.ends_with(kEnding) ? path.substr(0, path.size() - kEnding.size()) : path;
}

// The number of the process whose file beside `path` this is; 0: it is none.
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

// Files of further processes beside that of the first, in order of their numbers.
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

bool is_running(int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t name_end = line.rfind(')');  // the name may hold anything
  const char state = name_end + 2 < line.size() ? line[name_end + 2] : 'X';
  return state != 'Z' && state != 'X';
}

// A program that was killed, or that left without its exit handlers, did not end its file.
void end_file(const std::string& path, int status) {
  if (!holds_something(path) || is_still_written(path)) return;
  try {
    finish_recording(path, WIFSIGNALED(status)
                               ? std::string("The program was ended by signal ") + std::to_string(WTERMSIG(status)) +
                                     " (" + strsignal(WTERMSIG(status)) + "); what was written is shown."
                               : "The program left at once; what was written is shown.");
  } catch (const std::exception&) {  // it stays as it is: unfinished, and shown as such
  }
}

// The other processes of a program may end a moment after the first, or go on without it.
void end_files(const std::vector<std::string>& paths, int status) {
  constexpr int kWaits = 40;
  for (int i = 0; i < kWaits && std::ranges::any_of(paths, is_still_written); ++i) usleep(50'000);
  for (const std::string& path : paths) end_file(path, status);
}

}  // namespace

std::string claim_file(const std::string& wanted) {
  const std::string own = stem_of(wanted) + "." + std::to_string(getpid());
  constexpr int kMost = 100;  // recordings of that name by processes of that number
  for (int i = 0; i <= kMost; ++i) {
    const std::string path = i == 0 ? wanted : own + (i == 1 ? "" : "-" + std::to_string(i)) + std::string(kEnding);
    const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (file < 0) continue;
    close(file);
    return path;
  }
  return "";
}

std::string this_process() {
  std::string name;
  std::ifstream("/proc/self/comm") >> name;
  return std::to_string(getpid()) + " " + name;
}

bool is_still_written(const std::string& path) {
  if (!holds_something(path)) return false;
  try {
    const RunSummary run = read_run_summary(path);
    const auto process = run.extra.find(kRecordProcess);
    return run.status == "running" && process != run.extra.end() &&
           is_running(std::strtoll(process->second.c_str(), nullptr, 10));
  } catch (const std::exception&) {
    return false;
  }
}

void check_window(const RecordOptions& options) {
  if (options.window.empty()) return;
  if (options.level <= TraceLevel::Steps)
    throw Failure(std::string("goes with the levels graph, kernels and full; ") + to_string(options.level) +
                  " records no kernels");
  clock_window(options.window);
}

struct RecordedProgram::Impl {
  explicit Impl(const std::string& out) : path(out), before(further_files(out)), earlier(out) {}
  std::vector<std::string> files() const {
    std::vector<std::string> all{path};
    for (const std::string& file : further_files(path))
      if (std::ranges::find(before, file) == before.end() && holds_something(file)) all.push_back(file);
    return all;
  }
  LiveFollower follower;
  std::string name, path;
  std::vector<std::string> before;  // files of an earlier recording by that name
  Earlier earlier;
  pid_t child = 0;
  std::optional<int> status;  // once its file is ended too
  int left_with = 0;
  std::future<void> ending;  // of the file; the program is gone by then
};

RecordedProgram::RecordedProgram(const std::vector<std::string>& command, const std::string& out_path,
                         const RecordOptions& options) {
  if (command.empty()) throw Failure("Cannot record: no command was given.");
  check_window(options);  // here, where somebody reads what it throws
  const std::string library = find_library(options);
  const fs::path out = fs::absolute(out_path);
  must_be_writable(out);
  impl_ = std::make_unique<Impl>(out.string());
  impl_->name = command[0];
  auto environment = settings(library, impl_->path, fs::path(command[0]).filename(), options.level);
  environment[kRecordFollower] = impl_->follower.address();
  environment[kRecordWindow] = options.window;
  environment[kRecordCounters] = options.counters ? "1" : "0";
  impl_->child = start(command, environment);
}

RecordedProgram::~RecordedProgram() {
  if (!impl_ || impl_->status) return;
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    if (impl_->ending.valid()) return;  // gone: its number may be another's, and the future waits for the file
    kill(impl_->child, signal);
    if (wait(4000)) return;
  }
}

TraceBatch RecordedProgram::take() { return impl_->follower.take(); }
FollowStatus RecordedProgram::status() const { return impl_->follower.status(); }
const std::string& RecordedProgram::path() const { return impl_->path; }
bool RecordedProgram::recorded() const { return fs::exists(impl_->path); }
std::vector<std::string> RecordedProgram::paths() const { return impl_->files(); }

void RecordedProgram::interrupt() {
  if (!impl_->status && !impl_->ending.valid()) kill(impl_->child, SIGINT);
}

std::optional<int> RecordedProgram::wait(int most_ms) {
  constexpr int kSliceMs = 5;
  for (int waited = 0; !impl_->status; waited += kSliceMs) {
    if (impl_->ending.valid()) {
      if (impl_->ending.wait_for(std::chrono::milliseconds(std::min(kSliceMs, most_ms))) == std::future_status::ready)
        impl_->status = impl_->left_with;
      else if (waited >= most_ms)
        break;
      continue;
    }
    int status = 0;
    const pid_t ended = waitpid(impl_->child, &status, WNOHANG);
    if (ended == impl_->child) {
      impl_->left_with = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      impl_->ending = std::async(std::launch::async, [impl = impl_.get(), status] {
        end_files(impl->files(), status);  // a long recording takes a while
      });
    } else if (ended < 0 && errno != EINTR) {
      impl_->status = 127;  // somebody else has taken its end
    } else if (waited >= most_ms) {
      break;
    } else {
      usleep(kSliceMs * 1000);
    }
  }
  return impl_->status;
}

int record(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options) {
  RecordedProgram run(command, out_path, options);
  const IgnoreInterrupt ignore;
  std::optional<int> status;
  while (!(status = run.wait(100))) {
    while (!run.take().empty()) {
    }
  }
  if (!run.recorded()) {
    throw Failure("Nothing was recorded: " + command[0] + " (exit status " + std::to_string(*status) +
                  ") did not start CUDA.");
  }
  return *status;
}

}  // namespace ws::prof
