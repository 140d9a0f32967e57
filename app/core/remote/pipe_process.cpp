#include "app/core/remote/pipe_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "profiling/base/failure.h"

namespace ws::app {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(std::string("No pipe could be made: ") + std::strerror(errno) + ".");
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int keep(int which) {
    const int end = ends[which];
    ends[which] = -1;
    fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK);
    return end;
  }
};

}  // namespace

// We handle Ctrl+C ourselves, so SIGINT is blocked in the child. The child shares the terminal: ssh may ask there.
PipeProcess::PipeProcess(const std::vector<std::string>& command) {
  Pipe in, out, err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], STDERR_FILENO);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&how, &blocked);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&child_, arguments[0], &actions, &how, arguments.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Failure(command[0] + " cannot be started: " + std::strerror(error) + ".");
  in_ = in.keep(1), out_ = out.keep(0), err_ = err.keep(0);
}

PipeProcess::~PipeProcess() {
  close(in_);  // makes a server end by itself
  constexpr int kGraceMs = 200;
  for (const int signal : {SIGTERM, SIGKILL})
    if (!wait(kGraceMs)) kill(child_, signal);
  wait(2000);
  close(out_);
  close(err_);
}

std::optional<std::string> PipeProcess::read_some(int from) {
  std::array<char, 1 << 16> piece;
  const ssize_t got = ::read(from, piece.data(), piece.size());
  if (got > 0) return std::string(piece.data(), static_cast<size_t>(got));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return "";
  return std::nullopt;
}

size_t PipeProcess::write(std::string_view bytes) {
  const ssize_t went = ::write(in_, bytes.data(), bytes.size());
  if (went >= 0) return static_cast<size_t>(went);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Failure(std::string("The connection is closed: ") + std::strerror(errno) + ".");
}

std::optional<int> PipeProcess::wait(int most_ms) {
  constexpr int kSliceMs = 5;
  for (int waited = 0; !status_; waited += kSliceMs) {
    int status = 0;
    const pid_t ended = waitpid(child_, &status, WNOHANG);
    if (ended == child_)
      status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    else if (ended < 0 && errno != EINTR)
      status_ = 127;
    else if (waited >= most_ms)
      break;
    else
      usleep(kSliceMs * 1000);
  }
  return status_;
}

}  // namespace ws::app
