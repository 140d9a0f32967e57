#include "profiling/recording/live_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr size_t kMostWaiting = size_t{64} << 20;  // bytes that a sender keeps for a slow follower
constexpr size_t kMostReady = 4'000'000;  // spans not taken yet
constexpr size_t kMostCurvePoints = 1'000'000;  // points not taken yet

struct Hello {
  uint32_t span_size;  // must match, so both sides have the same layout
  int32_t pid;
  int64_t origin_ns;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw Failure("The path of a local socket is too long: " + path + ".");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

LiveSender::LiveSender(const std::string& address, int64_t process, int64_t origin_ns) {
  const sockaddr_un to = address_of(address);
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return;
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(socket_);
    socket_ = -1;
    return;
  }
  const int buffer_bytes = 4 << 20;
  setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  add_frame(waiting_, FrameKind::Hello, bytes_of(Hello{sizeof(Span), static_cast<int32_t>(process), origin_ns}));
}

LiveSender::~LiveSender() {
  if (socket_ >= 0) close(socket_);
}

void LiveSender::send(const TraceBatch& batch) {
  if (socket_ < 0) return;
  send_waiting();
  if (waiting_.size() - sent_ > kMostWaiting) {
    left_out_ += batch.span_count();
    return;
  }
  if (left_out_ > 0) add_frame(waiting_, FrameKind::LeftOut, bytes_of(left_out_));
  left_out_ = 0;
  ops_.add_frame_if_any(waiting_);
  add_frame(waiting_, FrameKind::Batch, encode_batch(batch));
  send_waiting(20);
}

void LiveSender::send(const std::vector<Metric>& metrics, const std::vector<Evaluation>& evaluations) {
  if (socket_ < 0 || (metrics.empty() && evaluations.empty()) || waiting_.size() - sent_ > kMostWaiting) return;
  add_frame(waiting_, FrameKind::Curves, encode(LiveCurves{metrics, evaluations}));
  send_waiting(20);
}

void LiveSender::finish() {
  if (socket_ < 0) return;
  if (left_out_ > 0) add_frame(waiting_, FrameKind::LeftOut, bytes_of(left_out_));
  send_waiting(2000);
  close(socket_);
  socket_ = -1;
}

// Sends for at most `most_ms`. Stops at once if the follower is gone.
void LiveSender::send_waiting(int most_ms) {
  const int64_t until = steady_ns() + int64_t{most_ms} * 1'000'000;
  while (socket_ >= 0 && sent_ < waiting_.size()) {
    const ssize_t went = ::send(socket_, waiting_.data() + sent_, waiting_.size() - sent_, MSG_NOSIGNAL);
    if (went > 0) {
      sent_ += static_cast<size_t>(went);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const int64_t left = (until - steady_ns()) / 1'000'000;
      pollfd wait{socket_, POLLOUT, 0};
      if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0) break;
    } else if (errno != EINTR) {
      close(socket_);
      socket_ = -1;
    }
  }
  if (sent_ < waiting_.size() && sent_ < waiting_.size() / 2) return;  // frees the sent part only when it is large
  waiting_.erase(0, sent_);
  sent_ = 0;
}

namespace {

constexpr const char* kFolderOf = "warpsight-";
constexpr size_t kRandomLetters = 6;

// True if nobody listens there any more, and no worker of a program that goes on has written for a while.
bool is_left_over(const std::filesystem::path& folder) {
  constexpr auto kLongAgo = std::chrono::minutes(1);  // a folder that was just made is not listened at yet
  std::error_code none;
  const std::string live = (folder / "live").string();
  sockaddr_un to{};
  if (live.size() >= sizeof to.sun_path || !std::filesystem::is_socket(live, none)) return false;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (std::filesystem::file_time_type::clock::now() - entry.last_write_time(none) < kLongAgo) return false;
  to = address_of(live);
  const int asks = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool refused = asks >= 0 && connect(asks, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno == ECONNREFUSED;
  if (asks >= 0) close(asks);
  return refused;
}

// Removes what killed recorders left.
void remove_left_over_folders() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(temporary_folder(), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFolderOf) && name.size() == std::strlen(kFolderOf) + kRandomLetters && is_left_over(entry.path()))
      std::filesystem::remove_all(entry.path(), none);
  }
}

}  // namespace

LiveFollower::LiveFollower() {
  remove_left_over_folders();
  try {
    listen_here();
    thread_ = std::thread([this] { loop(); });
  } catch (...) {
    close_all();
    throw;
  }
}

void LiveFollower::listen_here() {
  std::string name = (temporary_folder() / (kFolderOf + std::string(kRandomLetters, 'X'))).string();
  if (!mkdtemp(name.data())) throw Failure("Cannot follow: no folder could be made for the socket in " + name + ".");
  folder_ = name;  // only this user can access it
  address_ = folder_ + "/live";
  const sockaddr_un here = address_of(address_);
  listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening_ < 0 || bind(listening_, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
      listen(listening_, 16) != 0 || pipe2(stop_pipe_, O_CLOEXEC) != 0) {
    throw Failure("Cannot follow: no local socket could be made in " + folder_ + ".");
  }
}

LiveFollower::~LiveFollower() {
  close(std::exchange(stop_pipe_[1], -1));  // wakes the thread
  thread_.join();
  close_all();
}

void LiveFollower::close_all() {
  for (const Program& program : programs_) close(program.socket);
  for (const int end : {stop_pipe_[0], stop_pipe_[1], listening_})
    if (end >= 0) close(end);
  std::error_code none;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, none);
}

TraceBatch LiveFollower::take() {
  std::lock_guard lock(mutex_);
  if (ready_.empty()) return {};
  TraceBatch batch = std::move(ready_.front());
  ready_.pop_front();
  ready_spans_ -= batch.span_count();
  return batch;
}

LiveCurves LiveFollower::take_curves() {
  std::lock_guard lock(mutex_);
  return std::exchange(ready_curves_, {});
}

FollowStatus LiveFollower::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

void LiveFollower::loop() {
  for (;;) {
    std::vector<pollfd> waits{{stop_pipe_[0], POLLIN, 0}, {listening_, POLLIN, 0}};
    for (const Program& program : programs_) waits.push_back({program.socket, POLLIN, 0});
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    for (size_t i = 2; i < waits.size(); ++i) {
      Program& program = programs_[i - 2];
      if (waits[i].revents == 0 || read(program)) continue;
      close(program.socket);
      program.socket = -1;
    }
    std::erase_if(programs_, [](const Program& program) { return program.socket < 0; });
    if (waits[1].revents != 0) accept_one();
    std::lock_guard lock(mutex_);
    status_.running = static_cast<int>(programs_.size());
  }
}

void LiveFollower::accept_one() {
  const int socket = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  Program& program = programs_.emplace_back();
  program.socket = socket;
  std::lock_guard lock(mutex_);
  program.number = ++status_.programs;
}

bool LiveFollower::read(Program& program) {
  char part[1 << 16];
  for (;;) {
    const ssize_t got = recv(program.socket, part, sizeof part, 0);
    if (got < 0 && errno == EINTR) continue;
    const bool later = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    try {
      if (got > 0) program.bytes.append(part, static_cast<size_t>(got));
      if (got > 0 && program.bytes.size() < (size_t{1} << 22)) continue;
      take_frames(program.bytes, [&](FrameKind kind, std::string_view payload) { take_frame(program, kind, payload); });
    } catch (const std::exception& failure) {
      std::lock_guard lock(mutex_);
      status_.problem = failure.what();
      return false;
    }
    return got > 0 || later;
  }
}

void LiveFollower::take_frame(Program& program, FrameKind kind, std::string_view payload) {
  if (kind == FrameKind::Hello) take_hello(program, payload);
  if (kind == FrameKind::Ops) decode_ops(payload, program.ops);
  if (kind == FrameKind::Batch) take_batch(program, payload);
  if (kind == FrameKind::Curves) take_curves(program, payload);
  if (kind != FrameKind::LeftOut || payload.size() != sizeof(uint64_t)) return;
  uint64_t more = 0;
  std::memcpy(&more, payload.data(), sizeof more);
  std::lock_guard lock(mutex_);
  status_.left_out += more;
}

void LiveFollower::take_hello(Program& program, std::string_view payload) {
  Hello hello{};
  if (payload.size() == sizeof hello) std::memcpy(&hello, payload.data(), sizeof hello);
  if (hello.span_size != sizeof(Span)) throw Failure("The recorded program's collector is of another version.");
  if (origin_ == 0) origin_ = hello.origin_ns;
  program.pid = hello.pid;
  program.shift = hello.origin_ns - origin_;
}

// A second process gets its own rows. Its times are shifted to the origin of the first process.
void LiveFollower::take_batch(Program& program, std::string_view payload) {
  TraceBatch batch = decode_batch(payload, program.ops);
  const std::string mark = program.number > 1 ? " · process " + std::to_string(program.pid) : "";
  FollowStatus more;
  for (BatchTrack& track : batch.tracks) {
    track.group += mark;
    if (track.kind == TrackKind::Steps) {
      uint64_t& steps = program.steps[track.rank];
      const uint64_t before = std::exchange(steps, (track.replaces > 0 ? track.replaces - 1 : steps) + track.spans.size());
      more.steps += steps - before;  // may be fewer: the sum wraps around as it must
    }
    for (Span& span : track.spans) {
      span.start += program.shift;
      const SpanKind kind = span.span_kind();
      more.kernels += kind == SpanKind::Kernel;
      more.copies += kind == SpanKind::Copy;
      more.calls += track.kind == TrackKind::Api;
    }
  }
  if (program.number > 1) std::erase_if(batch.counters, [](const BatchCounter& c) { return is_loss_curve(c.kind); });
  for (BatchCounter& counter : batch.counters) {
    for (CounterPoint& point : counter.points) point.time += program.shift;
  }
  for (MemoryEvent& event : batch.memory) event.time += program.shift;
  for (const StepAllocations& a : batch.allocations) more.allocations += a.allocations + a.async_allocations;
  const size_t spans = batch.span_count();
  std::lock_guard lock(mutex_);
  status_.spans += spans, status_.steps += more.steps, status_.kernels += more.kernels;
  status_.copies += more.copies, status_.calls += more.calls, status_.allocations += more.allocations;
  status_.dropped += batch.losses.dropped_records;
  if (ready_spans_ > kMostReady) {
    status_.left_out += spans;
    return;
  }
  ready_spans_ += spans;
  ready_.push_back(std::move(batch));
}

// The charts show the first process only, because ranks log the same values.
void LiveFollower::take_curves(const Program& program, std::string_view payload) {
  const auto [metrics, evaluations] = decode_curves(payload);
  if (program.number > 1) return;
  std::lock_guard lock(mutex_);
  if (ready_curves_.metrics.size() + ready_curves_.evaluations.size() > kMostCurvePoints) return;
  ready_curves_.metrics.insert(ready_curves_.metrics.end(), metrics.begin(), metrics.end());
  ready_curves_.evaluations.insert(ready_curves_.evaluations.end(), evaluations.begin(), evaluations.end());
}

}  // namespace ws::prof
