#include "engine/ranks/rank_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "engine/executor/rank_group.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"

namespace ws {
namespace {

using Clock = std::chrono::steady_clock;

struct Head {
  MessageKind kind;
  uint32_t unused = 0;
  uint64_t size;
};

constexpr size_t kPiece = 1 << 20;  // bytes between two signs of life

std::chrono::milliseconds beat_period() { return std::min(std::chrono::milliseconds(1000), rank_patience() / 8); }

// A signal neither ends the wait nor begins it anew.
bool ready(int socket, short what, std::chrono::milliseconds most) {
  const auto until = Clock::now() + most;
  for (auto left = most;; left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now())) {
    pollfd one{socket, what, 0};
    const int count = poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (count >= 0 || errno != EINTR) return count > 0;
  }
}

// Sends or receives some bytes: `transfer` must not block. Waits up to rank_patience() for the other side and calls
// `meanwhile` several times a second; after that it returns -1, and errno is EAGAIN. A time limit of the socket itself
// would not do: each signal, and each stop of this process, begins it anew.
template <class Transfer, class Meanwhile>
ssize_t transfer_some(int socket, short what, Transfer transfer, Meanwhile meanwhile) {
  for (;;) {
    const ssize_t count = transfer();
    if (count >= 0 || (errno != EAGAIN && errno != EINTR)) return count;
    const auto able = [&](std::chrono::milliseconds slice) {
      meanwhile();
      return ready(socket, what, slice);
    };
    if (wait_awake(rank_patience(), able)) continue;
    errno = EAGAIN;
    return -1;
  }
}
template <class Meanwhile>
ssize_t receive_some(int socket, char* to, size_t size, Meanwhile meanwhile) {
  return transfer_some(socket, POLLIN, [=] { return recv(socket, to, std::min(size, kPiece), MSG_DONTWAIT); }, meanwhile);
}

std::string silence() {
  return " has not answered for " + duration_text(static_cast<double>(rank_patience().count()) / 1e3) + ".";
}

}  // namespace

std::chrono::milliseconds rank_patience() {
  static const std::chrono::milliseconds patience = [] {
    const char* text = std::getenv("WARPSIGHT_RANK_TIMEOUT");
    const double seconds = text ? std::atof(text) : 0;
    return std::chrono::milliseconds(seconds > 0 && seconds < 1e6 ? static_cast<int64_t>(seconds * 1000) : 20'000);
  }();
  return patience;
}

RankMessage read_message(int socket, uint64_t most) {
  const auto read = [socket](char* to, size_t size) {
    while (size > 0) {
      const ssize_t count = receive_some(socket, to, size, [] {});
      if (count <= 0) throw Failure("The other side is not a rank of Warpsight.");
      to += count, size -= static_cast<size_t>(count);
    }
  };
  Head head{};
  read(reinterpret_cast<char*>(&head), sizeof head);
  if (head.size > most) throw Failure("The other side is not a rank of Warpsight.");
  RankMessage message{head.kind, std::string(head.size, '\0')};
  read(message.bytes.data(), message.bytes.size());
  return message;
}

RankChannel::RankChannel(int socket, std::string peer) : socket_(socket), peer_(std::move(peer)) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  thread_ = std::thread([this] { loop(); });
}

RankChannel::~RankChannel() {
  ending_ = true;
  shutdown(socket_, SHUT_RDWR);
  thread_.join();
  close(socket_);
}

void RankChannel::loop() {
  while (!ending_) {
    const auto received = [this](std::chrono::milliseconds slice) {
      beat();
      return ending_ || ready(socket_, POLLIN, slice);
    };
    if (!wait_awake(rank_patience(), received)) {
      broke(peer_ + silence());
      break;
    }
    if (const std::string why = read_next(); !why.empty()) {
      broke(peer_ + why);
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  wake_.notify_all();
}

std::string RankChannel::read_next() {
  const auto why_not = [] {
    const bool silent = errno == EAGAIN;  // inside a message
    return silent ? silence() : " ended in the middle of the training: it was killed, or it crashed.";
  };
  Head head{};
  if (!read_all(reinterpret_cast<char*>(&head), sizeof head)) return why_not();
  try {
    RankMessage message{head.kind, std::string(head.size, '\0')};
    if (!read_all(message.bytes.data(), message.bytes.size())) return why_not();
    if (head.kind == MessageKind::Abandon) broke(message.bytes);
    if (head.kind == MessageKind::Abandon || head.kind == MessageKind::Alive) return {};
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    wake_.notify_all();
    return {};
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    return " sent a message of " + bytes_text(static_cast<int64_t>(head.size)) +
           ", and the memory is too small for it.";
  }
}

bool RankChannel::read_all(char* to, size_t size) {
  while (size > 0) {
    const ssize_t count = receive_some(socket_, to, size, [this] { beat(); });
    if (count == 0) errno = 0;
    if (count <= 0) return false;
    to += count, size -= static_cast<size_t>(count);
    beat();
  }
  return true;
}

// Never blocks: while this process sends a long message, that message is the sign of life.
void RankChannel::beat() {
  if (Clock::now() - beat_ < beat_period()) return;
  const std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (lock && ready(socket_, POLLOUT, std::chrono::milliseconds(0)) && write(MessageKind::Alive, {})) beat_ = Clock::now();
}

bool RankChannel::write(MessageKind kind, std::string_view bytes) {
  const Head head{kind, 0, bytes.size()};
  for (std::string_view part : {std::string_view(reinterpret_cast<const char*>(&head), sizeof head), bytes})
    while (!part.empty()) {
      const auto send_some = [&] { return ::send(socket_, part.data(), std::min(part.size(), kPiece), MSG_NOSIGNAL | MSG_DONTWAIT); };
      const ssize_t count = transfer_some(socket_, POLLOUT, send_some, [] {});
      if (count < 0) return false;
      part.remove_prefix(static_cast<size_t>(count));
    }
  return true;
}

void RankChannel::send(MessageKind kind, std::string_view bytes) {
  {
    const std::lock_guard lock(send_mutex_);
    if (write(kind, bytes)) return;
  }
  // The other process may have sent its reason before it closed. The reading thread finds it.
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, rank_patience(), [this] { return !broken_.empty(); });
  throw Failure(broken_.empty() ? peer_ + silence() : broken_);
}

RankMessage RankChannel::receive() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !messages_.empty() || !broken_.empty(); });
  if (messages_.empty()) throw Failure(broken_);
  RankMessage message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

void RankChannel::abandon(const std::string& why) noexcept {
  {
    std::unique_lock lock(send_mutex_, std::defer_lock);
    const auto until = Clock::now() + beat_period();
    while (!lock.try_lock() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (lock && ready(socket_, POLLOUT, std::chrono::milliseconds(0))) write(MessageKind::Abandon, why);
    shutdown(socket_, lock ? SHUT_WR : SHUT_RDWR);  // without the lock, the peer reads nothing and send() waits for it
  }
  broke(why);
}

void RankChannel::broke(const std::string& why) {
  std::function<void(const std::string&)> act;
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) return;
    broken_ = why;
    act = act_;
    wake_.notify_all();
  }
  if (act) act(why);
}

void RankChannel::when_broken(const std::function<void(const std::string&)>& act) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    act_ = act;
    why = broken_;
  }
  if (!why.empty() && act) act(why);
}

void RankChannel::wait_until_closed() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return closed_ || !broken_.empty(); });
  wake_.wait_for(lock, rank_patience(), [this] { return closed_; });
}

}  // namespace ws
