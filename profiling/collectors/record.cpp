#include "profiling/collectors/record.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "profiling/failure.h"

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

// The CUPTI library this program itself runs with: it also receives NVTX ranges.
std::string loaded_cupti() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name && std::strstr(info->dlpi_name, "libcupti.so"))
          *static_cast<std::string*>(out) = info->dlpi_name;
        return 0;
      },
      &path);
  return path;
}

void set_environment(const std::string& library, const std::string& out, const std::string& name, TraceLevel level) {
  setenv("CUDA_INJECTION64_PATH", library.c_str(), 1);
  if (const std::string cupti = loaded_cupti(); !cupti.empty()) setenv("NVTX_INJECTION64_PATH", cupti.c_str(), 1);
  setenv(kRecordFile, out.c_str(), 1);
  setenv(kRecordLevel, to_string(level), 1);
  setenv(kRecordName, name.c_str(), 1);
}

[[noreturn]] void become(const std::vector<std::string>& command, int report) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(report, &error, sizeof error);
  _exit(127);
}

// While the child runs, an interrupt is its affair: it ends, and we report.
class IgnoreInterrupt {
 public:
  IgnoreInterrupt() : before_(signal(SIGINT, SIG_IGN)) {}
  ~IgnoreInterrupt() { signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

int wait_for(pid_t child) {
  const IgnoreInterrupt ignore;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void remove_old(const std::string& out) {
  std::error_code none;
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(out + suffix, none);
}

}  // namespace

int record(const std::vector<std::string>& command, const std::string& out_path, const RecordOptions& options) {
  if (command.empty()) throw Failure("Cannot record: no command was given.");
  const std::string library = find_library(options);
  const std::string out = fs::absolute(out_path);
  remove_old(out);
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw Failure("Cannot record: no pipe could be made.");
  const pid_t child = fork();
  if (child < 0) throw Failure("Cannot record: no process could be started.");
  if (child == 0) {
    set_environment(library, out, fs::path(command[0]).filename(), options.level);
    become(command, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  int error = 0;
  const bool failed = read(pipe_ends[0], &error, sizeof error) == sizeof error;
  close(pipe_ends[0]);
  const int status = wait_for(child);
  if (failed) throw Failure("Cannot start " + command[0] + ": " + std::strerror(error) + ".");
  if (!fs::exists(out)) {
    throw Failure("Nothing was recorded: " + command[0] + " (exit status " + std::to_string(status) +
                  ") did not start CUDA.");
  }
  return status;
}

}  // namespace ws::prof
