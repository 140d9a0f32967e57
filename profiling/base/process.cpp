#include "profiling/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "profiling/base/failure.h"

namespace ws {
namespace {

// Also runs on our threads in a recorded program, where a stream's buffer would cost a heap (own_memory.cpp).
std::string first_line(const std::string& path) {
  char bytes[4096];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t got = read(file, bytes, sizeof bytes);
  close(file);
  const std::string line(bytes, static_cast<size_t>(got > 0 ? got : 0));
  return line.substr(0, line.find('\n'));
}

// Word `index` of /proc/PID/stat, counted from 0 after the name, which may contain spaces and brackets.
std::string stat_word(const std::string& process, int index) {
  const std::string line = first_line("/proc/" + process + "/stat");
  const size_t name_end = line.rfind(')');
  std::istringstream words(name_end == line.npos ? "" : line.substr(name_end + 1));
  std::string word;
  for (int i = 0; i <= index; ++i)
    if (!(words >> word)) return "";
  return word;
}

std::string mark_of(const std::string& process) {
  const std::string start = stat_word(process, 19);
  return start.empty() ? "" : first_line("/proc/sys/kernel/random/boot_id") + " " + process + " " + start;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Process::Process(const std::vector<std::string>& command, Output output, const Environment& more, const Place& place) {
  if (std::error_code none; !place.folder.empty() && !std::filesystem::is_directory(place.folder, none))
    throw Failure(command[0] + " cannot be started: there is no folder " + place.folder + ".");
  std::vector<std::string> words = command, settings;
  for (char** own = environ; *own; ++own) {
    const std::string entry = *own;
    if (!more.contains(entry.substr(0, entry.find('=')))) settings.push_back(entry);
  }
  for (const auto& [key, value] : more) settings.push_back(key + "=" + value);
  int ends[2] = {-1, -1};
  if (output != Output::Ours && pipe2(ends, O_CLOEXEC) != 0)
    throw Failure("No pipe could be made for " + command[0] + ".");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output != Output::Ours) posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (output == Output::CapturedWithErrors) posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  if (!place.output.empty()) {
    constexpr int kAdd = O_WRONLY | O_CREAT | O_APPEND;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, place.output.c_str(), kAdd, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (!place.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, place.folder.c_str());
  const int error =
      posix_spawnp(&child_, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  if (ends[1] >= 0) close(ends[1]);
  out_ = ends[0];
  if (error == 0) return;
  if (out_ >= 0) close(out_);
  throw Failure(command[0] + " cannot be started: " + std::strerror(error) + ".");
}

Process::~Process() {
  if (out_ >= 0) close(out_);
}

std::optional<std::string> Process::output(int most_ms) {
  pollfd ready{out_, POLLIN, 0};
  if (poll(&ready, 1, most_ms) <= 0) return "";
  char piece[4096];
  const ssize_t got = read(out_, piece, sizeof piece);
  if (got < 0 && errno == EINTR) return "";
  return got > 0 ? std::optional<std::string>(std::in_place, piece, static_cast<size_t>(got)) : std::nullopt;
}

std::optional<int> Process::wait(int most_ms) {
  constexpr int kSliceMs = 5;
  for (int waited = 0; !status_; waited += kSliceMs) {
    int status = 0;
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == child_) {
      ended_by_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      status_ = ended_by_ != 0 ? 128 + ended_by_ : WEXITSTATUS(status);
    } else if (ended < 0 && errno != EINTR) {
      status_ = 127;  // another part of the program has already waited for it
    } else if (waited >= most_ms) {
      break;
    } else {
      usleep(kSliceMs * 1000);
    }
  }
  return status_;
}

int Process::wait() {
  while (!wait(1000)) {
  }
  return *status_;
}

void Process::signal(int number) {
  if (!status_) kill(child_, number);
}

OtherProcess::OtherProcess(std::string mark) : mark_(std::move(mark)) {
  const size_t first = mark_.find(' ');
  number_ = first == mark_.npos ? 0 : std::atoi(mark_.c_str() + first);
}

bool OtherProcess::ended(int most_ms) const {
  constexpr int kSliceMs = 5;
  for (int waited = 0; is_alive(mark_) && is_alive(number_); waited += kSliceMs) {
    if (waited >= most_ms) return false;
    usleep(kSliceMs * 1000);
  }
  return true;
}

void OtherProcess::signal(int number) const {
  if (!ended(0)) kill(number_, number);
}

bool is_alive(int64_t process) {
  const std::string state = stat_word(std::to_string(process), 0);
  return !state.empty() && state != "Z" && state != "X";
}

std::string this_process() { return std::to_string(getpid()) + " " + first_line("/proc/self/comm"); }

std::string process_mark() { return process_mark(getpid()); }

std::string process_mark(int64_t process) { return mark_of(std::to_string(process)); }

bool is_alive(const std::string& mark) {
  const size_t first = mark.find(' '), second = mark.find(' ', first + 1);
  return second != mark.npos && mark_of(mark.substr(first + 1, second - first - 1)) == mark;
}

}  // namespace ws
