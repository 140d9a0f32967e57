#include "app/core/remote/pipe_process.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "profiling/base/failure.h"

namespace ws::app {

PipeProcess::~PipeProcess() {
  process_.close_input();  // makes a server end by itself
  constexpr int kGraceMs = 200;
  for (const int signal : {SIGTERM, SIGKILL})
    if (!wait(kGraceMs)) process_.signal(signal);
  wait(2000);
}

std::optional<std::string> PipeProcess::read_some(int from) {
  std::array<char, 1 << 16> piece;
  const ssize_t got = ::read(from, piece.data(), piece.size());
  if (got > 0) return std::string(piece.data(), static_cast<size_t>(got));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return "";
  return std::nullopt;
}

size_t PipeProcess::write(std::string_view bytes) {
  const ssize_t went = ::write(input(), bytes.data(), bytes.size());
  if (went >= 0) return static_cast<size_t>(went);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Failure(std::string("The connection is closed: ") + std::strerror(errno) + ".");
}

}  // namespace ws::app
