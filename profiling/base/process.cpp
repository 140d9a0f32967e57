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

class Pipe {
 public:
  Pipe() = default;
  ~Pipe() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void make() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw Failure(std::string("No pipe could be made: ") + std::strerror(errno) + ".");
  }
  int end(int which) const { return ends_[which]; }
  int keep(int which) { return std::exchange(ends_[which], -1); }

 private:
  int ends_[2] = {-1, -1};
};

// What a new process begins with.
class Spawn {
 public:
  Spawn() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~Spawn() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
  void descriptor(int ours, int its) {
    if (ours >= 0) posix_spawn_file_actions_adddup2(&actions, ours, its);
  }
  void block(int signal) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, signal);
    posix_spawnattr_setsigmask(&attributes, &blocked);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  }
  void group() {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);  // only the terminal's own group may read there
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  // In its own session, without a terminal. It keeps no files of a program that becomes a job, and none of its signal handlers.
  void detach() {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

Process::Process(const std::vector<std::string>& command, Output output, const Environment& more, const ProcessPlace& place) : group_(place.group) {
  if (std::error_code none; !place.folder.empty() && !std::filesystem::is_directory(place.folder, none))
    throw Failure(command[0] + " cannot be started: there is no folder " + place.folder + ".");
  std::vector<std::string> words = command, settings;
  for (char** own = environ; *own; ++own) {
    const std::string entry = *own;
    if (!more.contains(entry.substr(0, entry.find('=')))) settings.push_back(entry);
  }
  for (const auto& [key, value] : more) settings.push_back(key + "=" + value);
  const bool talks = output == Output::Talks;
  Pipe in, out, errors;
  if (output != Output::Ours) out.make();
  if (talks) in.make(), errors.make();
  Spawn spawn;
  spawn.descriptor(in.end(0), STDIN_FILENO);
  spawn.descriptor(out.end(1), STDOUT_FILENO);
  spawn.descriptor(output == Output::CapturedWithErrors ? out.end(1) : errors.end(1), STDERR_FILENO);
  if (talks) spawn.block(SIGINT);
  if (!place.output.empty()) {
    constexpr int kAdd = O_WRONLY | O_CREAT | O_APPEND;
    posix_spawn_file_actions_addopen(&spawn.actions, STDOUT_FILENO, place.output.c_str(), kAdd, 0600);
    posix_spawn_file_actions_adddup2(&spawn.actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (place.detached) spawn.detach();
  if (place.group) spawn.group();
  if (!place.folder.empty()) posix_spawn_file_actions_addchdir_np(&spawn.actions, place.folder.c_str());
  const int error =
      posix_spawnp(&child_, words[0].c_str(), &spawn.actions, &spawn.attributes, pointers(words).data(), pointers(settings).data());
  if (error != 0) throw Failure(command[0] + " cannot be started: " + std::strerror(error) + ".");
  in_ = in.keep(1), out_ = out.keep(0), errors_ = errors.keep(0);
  if (!talks) return;
  for (const int end : {in_, out_, errors_}) fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
}

Process::~Process() {
  for (const int end : {in_, out_, errors_})
    if (end >= 0) close(end);
}

void Process::close_input() {
  if (in_ >= 0) close(std::exchange(in_, -1));
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
  if (!status_) kill(group_ ? -child_ : child_, number);
}

CommandOutput output_of(const std::vector<std::string>& command, int silent_ms, Process::Output output, const Process::Environment& more) {
  Process process(command, output, more);
  CommandOutput all;
  while (const auto part = process.output(silent_ms > 0 ? silent_ms : 1000)) {
    if (part->empty() && silent_ms > 0) process.signal(SIGKILL);
    all.text += *part;
  }
  all.status = process.wait();
  return all;
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

bool descends_from(int64_t process, int64_t ancestor) {
  for (int64_t at = process; at > 1; at = std::atoll(stat_word(std::to_string(at), 1).c_str()))
    if (at == ancestor || stat_word(std::to_string(at), 2) == std::to_string(ancestor)) return true;
  return false;
}

std::string this_process() { return std::to_string(getpid()) + " " + first_line("/proc/self/comm"); }

std::string process_mark() { return process_mark(getpid()); }

std::string process_mark(int64_t process) { return mark_of(std::to_string(process)); }

bool is_alive(const std::string& mark) {
  const size_t first = mark.find(' '), second = mark.find(' ', first + 1);
  return second != mark.npos && mark_of(mark.substr(first + 1, second - first - 1)) == mark;
}

}  // namespace ws
