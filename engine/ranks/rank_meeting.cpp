#include "engine/ranks/rank_meeting.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "engine/ranks/rank_channel.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// An empty host: every address of this machine.
Addresses resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  hints.ai_flags = host.empty() ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw Failure("The host " + host + ", where the ranks meet, was not found (" + gai_strerror(error) +
                  "): check MASTER_ADDR.");
  return {found, freeaddrinfo};
}

int meeting_port() {
  constexpr int kUsual = 29500, kHighest = 65534;
  const char* text = std::getenv("MASTER_PORT");
  if (!text) return kUsual + 1;
  char* end = nullptr;
  const long port = std::strtol(text, &end, 10);
  if (end == text || *end || port < 1 || port > kHighest)
    throw Failure("MASTER_PORT is " + std::string(text) + ": choose a number from 1 to " + std::to_string(kHighest) +
                  ".");
  return static_cast<int>(port) + 1;
}

RankSocket socket_for(const addrinfo& address) {
  return RankSocket(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
}

}  // namespace

RankSocket::~RankSocket() {
  if (number_ >= 0) close(number_);
}
int RankSocket::release() { return std::exchange(number_, -1); }

// torchrun listens on MASTER_PORT itself, so the ranks take the next port.
RankMeeting rank_meeting(const LaunchedRank& self) {
  const char* host = std::getenv("MASTER_ADDR");
  const bool names_this_host = host && (!std::strcmp(host, "127.0.0.1") || !std::strcmp(host, "localhost"));
  const bool one_host = self.local_ranks == self.ranks || (self.local_ranks == 0 && names_this_host);
  if (!host && !one_host)
    throw Failure(
        "The launcher started " + std::to_string(self.ranks) +
        " ranks, and MASTER_ADDR is not set: set it to the host of rank 0, so that the ranks find each other.");
  return {host ? host : "127.0.0.1", meeting_port(), one_host};
}

RankSocket listen_at(const RankMeeting& meeting) {
  const Addresses here = resolve(meeting.one_host ? "127.0.0.1" : "", meeting.port);
  RankSocket socket = socket_for(*here);
  const int on = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.number(), here->ai_addr, here->ai_addrlen) == 0 && listen(socket.number(), SOMAXCONN) == 0)
    return socket;
  if (errno == EADDRINUSE)
    throw Failure("Port " + std::to_string(meeting.port) +
                  ", where the ranks meet, is in use. They meet at MASTER_PORT + 1: choose another MASTER_PORT.");
  throw Failure("Rank 0 cannot listen on port " + std::to_string(meeting.port) + ": " + std::strerror(errno) + ".");
}

RankSocket connect_to(const RankMeeting& meeting) {
  const auto limit = 3 * rank_patience(), pause = std::chrono::milliseconds(50);
  const Addresses there = resolve(meeting.one_host ? "127.0.0.1" : meeting.host, meeting.port);
  int error = 0;
  for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begin < limit;) {
    for (const addrinfo* each = there.get(); each; each = each->ai_next) {
      RankSocket socket = socket_for(*each);
      const timeval most{5, 0};  // a host that drops packets must not hold us for minutes
      setsockopt(socket.number(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
      if (connect(socket.number(), each->ai_addr, each->ai_addrlen) == 0) return socket;
      error = errno == EINPROGRESS ? ETIMEDOUT : errno;
    }
    std::this_thread::sleep_for(pause);
  }
  throw Failure("Rank 0 does not answer at " + meeting.text() + " (" + std::strerror(error) + "). Tried for " +
                duration_text(std::chrono::duration<double>(limit).count()) + ": check MASTER_ADDR and MASTER_PORT.");
}

}  // namespace ws
