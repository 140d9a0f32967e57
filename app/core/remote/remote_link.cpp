#include "app/core/remote/remote_link.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <future>
#include <optional>

#include "app/core/remote/remote_address.h"
#include "profiling/base/byte_reader.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"

namespace ws::app {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostNoise = 64u << 10;   // bytes of a shell profile before the server's greeting
constexpr size_t kMostErrors = 16u << 10;
constexpr milliseconds kPingEvery{2000}, kSilent{10'000}, kFirstBackOff{100}, kMostBackOff{10'000};
constexpr size_t kAcknowledgeEvery = 16u << 10;

// Finds the first line of the server: "warpsight-serve 1 0.9.0".
std::optional<std::string> greeting_in(std::string& bytes) {
  for (size_t begin = 0, end; (end = bytes.find('\n', begin)) != bytes.npos; begin = end + 1) {
    const std::string line = bytes.substr(begin, end - begin);
    if (!line.starts_with(kLineMagic)) continue;
    bytes.erase(0, end + 1);
    return line.substr(kLineMagic.size());
  }
  return std::nullopt;
}

// Thrown if another attempt would not help.
class LineRefused : public Failure {
 public:
  LineRefused(const std::string& sentence, bool missing) : Failure(sentence), copy_helps(missing) {}
  bool copy_helps;
};

}  // namespace

RemoteLink::RemoteLink(RemoteAddress address, milliseconds patience) : address_(std::move(address)), patience_(patience) {
  if (pipe2(wake_pipe_, O_CLOEXEC | O_NONBLOCK) != 0) throw Failure("No pipe could be made for the connection.");
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::jthread([this](const std::stop_token& ended) { loop(ended); });
}

RemoteLink::~RemoteLink() {
  thread_.request_stop();
  wake();
  thread_.join();
  close(wake_pipe_[0]), close(wake_pipe_[1]);
}

LineStatus RemoteLink::status() const {
  std::lock_guard lock(mutex_);
  LineStatus now = status_;
  if (now.state == LineState::Cut) now.cut_s = prof::seconds_since(cut_since_);
  return now;
}

void RemoteLink::set(LineState state, const std::string& sentence) {
  std::lock_guard lock(mutex_);
  if (state == LineState::Cut && status_.state == LineState::Up) cut_since_ = Clock::now();
  status_.state = state, status_.sentence = sentence;
  status_.process = process_ ? process_->id() : 0;
  status_.times_up += state == LineState::Up;
}

void RemoteLink::wake() {
  const char byte = 0;
  static_cast<void>(!::write(wake_pipe_[1], &byte, 1));
}

void RemoteLink::post(json request, Answered answered) {
  {
    std::lock_guard lock(mutex_);
    const int64_t number = next_number_++;
    request["number"] = number;
    pending_[number] = {std::move(request), std::move(answered)};
    unsent_.push_back(number);
  }
  wake();
}

json RemoteLink::ask(json request, double most_s) {
  auto result = std::make_shared<std::promise<json>>();
  auto future = result->get_future();
  post(std::move(request), [result](const json& ok, const std::string& error) {
    if (error.empty())
      result->set_value(ok);
    else
      result->set_exception(std::make_exception_ptr(Failure(error)));
  });
  const auto most = std::chrono::duration<double>(most_s);
  auto until = Clock::now() + most;
  while (future.wait_for(milliseconds(20)) != std::future_status::ready) {
    const LineStatus now = status();
    if (now.state == LineState::Refused) throw Failure(now.sentence);
    if (now.state == LineState::Connecting) until = Clock::now() + most;
    if (Clock::now() > until)
      throw Failure(address_.place() + " does not answer" + (now.sentence.empty() ? "." : ": " + now.sentence));
  }
  return future.get();
}

uint32_t RemoteLink::follow(json what, FileFollower follower) {
  uint32_t number = 0;
  json request;
  {
    std::lock_guard lock(mutex_);
    number = next_stream_++;
    what["do"] = "follow", what["stream"] = number;
    followed_[number] = {what, std::move(follower), what.value("offset", uint64_t{0}), {}};
    request = followed_[number].what;
    if (status_.state != LineState::Up) return number;  // requested once the line is up
  }
  post(request, [this, number](const json& ok, const std::string& error) { took_follow(number, ok, error); });
  return number;
}

void RemoteLink::leave(uint32_t number) {
  {
    std::lock_guard calling(calling_);
    std::lock_guard lock(mutex_);
    if (followed_.erase(number) == 0) return;
  }
  post({{"do", "leave"}, {"stream", number}});
}

void RemoteLink::loop(const std::stop_token& ended) {
  auto back_off = kFirstBackOff;
  while (!ended.stop_requested()) {
    try {
      connect(ended);
      back_off = kFirstBackOff;
      talk(ended);
    } catch (const LineRefused& refused) {
      stop_trying(refused.what(), refused.copy_helps);
      return;
    } catch (const std::exception& problem) {
      process_.reset();
      if (status().times_up == 0) return stop_trying(problem.what(), false);
      set(LineState::Cut, problem.what());
    }
    process_.reset();
    std::mutex waiting;
    std::condition_variable_any wake_up;
    std::unique_lock lock(waiting);
    wake_up.wait_for(lock, ended, back_off, [] { return false; });
    back_off = std::min(2 * back_off, kMostBackOff);
  }
}

void RemoteLink::stop_trying(const std::string& sentence, bool copy_helps) {
  process_.reset();
  {
    std::lock_guard lock(mutex_);
    status_.copy_helps = copy_helps && address_.pipe.empty();
  }
  set(LineState::Refused, sentence);
  std::map<int64_t, Pending> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(pending_);
  }
  std::lock_guard calling(calling_);
  for (const auto& [number, request] : left)
    if (request.answered) request.answered({}, sentence);
}

void RemoteLink::connect(const std::stop_token& ended) {
  frames_ = FrameReader("The connection");
  outgoing_.clear(), errors_.clear();
  received_ = acknowledged_ = 0;
  process_ = std::make_unique<PipeProcess>(address_.command());
  greet(ended);
  last_received_ = pinged_ = Clock::now();
  set(LineState::Up);
  std::vector<json> again;
  std::vector<uint32_t> numbers;
  {
    std::lock_guard lock(mutex_);
    unsent_.clear();
    // Followed files are requested again below. All other open requests are sent once more.
    std::erase_if(pending_, [](const auto& one) {
      const std::string what = one.second.request.value("do", "");
      return what == "follow" || what == "leave" || what == "ping";
    });
    for (const auto& [number, request] : pending_) unsent_.push_back(number);
    for (const auto& [number, file] : followed_) {
      json what = file.what;
      what["offset"] = file.offset, what["version"] = file.version;
      again.push_back(std::move(what));
      numbers.push_back(number);
    }
  }
  for (size_t i = 0; i < again.size(); ++i)
    post(again[i], [this, number = numbers[i]](const json& ok, const std::string& error) { took_follow(number, ok, error); });
}

void RemoteLink::read_errors() {
  if (const auto more = process_->read_errors()) errors_ += *more;
  if (errors_.size() > kMostErrors) errors_.erase(0, errors_.size() - kMostErrors);
}

// Skips everything that a shell there prints first.
void RemoteLink::greet(const std::stop_token& ended) {
  std::string bytes;
  const auto until = Clock::now() + patience_;
  for (;;) {
    const auto more = process_->read_output();
    read_errors();
    if (more) bytes += *more;
    if (const auto greeting = greeting_in(bytes)) {
      if (const std::string why = why_other_version(address_, *greeting); !why.empty()) throw LineRefused(why, true);
      frames_.add(bytes);
      return;
    }
    if (!more) {
      const int status = process_->wait(2000).value_or(-1);
      read_errors();
      const std::string why = why_no_line(address_, status, errors_, !bytes.empty());
      if (status == 127 && this->status().times_up == 0) throw LineRefused(why, true);
      if (asks_a_person(status, errors_)) throw LineRefused(why, false);
      throw Failure(why);
    }
    if (bytes.size() > kMostNoise || (Clock::now() > until && !bytes.empty())) throw Failure(why_no_line(address_, -1, errors_, true));
    if (Clock::now() > until) throw Failure(address_.place() + ": nothing answers there.");
    if (ended.stop_requested()) throw Failure("Ended.");
    if (more->empty()) wait_for_bytes(100);
  }
}

void RemoteLink::wait_for_bytes(int most_ms) {
  const short out = outgoing_.empty() ? 0 : POLLOUT;
  std::array<pollfd, 4> ends{pollfd{process_->output(), POLLIN, 0}, pollfd{process_->input(), out, 0},
                             pollfd{wake_pipe_[0], POLLIN, 0}, pollfd{process_->errors(), POLLIN, 0}};
  const bool reads_errors = errors_.size() < kMostErrors;
  poll(ends.data(), reads_errors ? 4 : 3, most_ms);
  std::array<char, 64> none;
  while (::read(wake_pipe_[0], none.data(), none.size()) > 0) {
  }
  if ((ends[3].revents & POLLHUP) != 0 && (ends[3].revents & POLLIN) == 0) usleep(1000);  // closed: avoid a busy loop
}

void RemoteLink::talk(const std::stop_token& ended) {
  while (!ended.stop_requested()) {
    send_waiting();
    const auto more = process_->read_output();
    read_errors();
    if (!more) throw Failure(why_no_line(address_, process_->wait(1000).value_or(-1), errors_, false));
    if (!more->empty()) last_received_ = Clock::now(), frames_.add(*more);
    while (const auto frame = frames_.next()) take(*frame);
    if (received_ - acknowledged_ >= kAcknowledgeEvery || (received_ > acknowledged_ && more->empty())) {
      ByteWriter to;
      to.value(acknowledged_ = received_);
      queue(LineKind::Received, to.bytes());
    }
    if (Clock::now() - last_received_ > kSilent) throw Failure(address_.place() + " has not answered for a while.");
    if (Clock::now() - last_received_ > kPingEvery && Clock::now() - pinged_ > kPingEvery) pinged_ = Clock::now(), post({{"do", "ping"}});
    if (!outgoing_.empty()) outgoing_.erase(0, process_->write(outgoing_));
    if (more->empty()) wait_for_bytes(500);
  }
}

void RemoteLink::queue(LineKind kind, std::string_view payload) { outgoing_ += frame_of(static_cast<uint8_t>(kind), payload); }

void RemoteLink::send_waiting() {
  std::lock_guard lock(mutex_);
  for (const int64_t number : unsent_)
    if (const auto at = pending_.find(number); at != pending_.end())
      queue(LineKind::Request, at->second.request.dump(-1, ' ', false, json::error_handler_t::replace));
  unsent_.clear();
}

void RemoteLink::take(const Frame& frame) {
  switch (static_cast<LineKind>(frame.kind)) {
    case LineKind::Answer: return take_answer(frame.payload);
    case LineKind::Bytes: return take_bytes(frame.payload, false);
    case LineKind::Instead: return take_bytes(frame.payload, true);
    case LineKind::Event: return take_event(frame.payload);
    case LineKind::Request:
    case LineKind::Received: break;
  }
  throw Failure("The connection is damaged: an answer to no request");
}

void RemoteLink::take_answer(std::string_view text) {
  const json answer = parse_json(text, "An answer");
  const JsonInput in(answer, "");
  Answered answered;
  {
    std::lock_guard lock(mutex_);
    const auto at = pending_.find(in.required("number").whole(0));
    if (at == pending_.end()) return;
    answered = std::move(at->second.answered);
    pending_.erase(at);
  }
  if (!answered) return;
  std::lock_guard calling(calling_);
  const std::string error = in.at("error").text();
  answered(error.empty() ? in.required("ok").value() : json(), error);
}

void RemoteLink::took_follow(uint32_t number, const json& ok, const std::string& error) {
  FileFollower follower;
  bool restarted = false;
  {
    std::lock_guard lock(mutex_);
    const auto at = followed_.find(number);
    if (at == followed_.end()) return;
    follower = at->second.follower;
    if (!error.empty()) {
      followed_.erase(at);
    } else {
      const JsonInput in(ok, "follow");
      const auto offset = static_cast<uint64_t>(in.at("offset").whole(0, 0));
      restarted = offset == 0 && at->second.offset > 0;
      if (offset != at->second.offset && !restarted) throw Failure("The connection is damaged: a file goes on at the "
                                                                   "wrong place");
      at->second.offset = offset, at->second.version = in.at("version").text();
    }
  }
  if (!error.empty() && follower.failed) follower.failed(error);
  if (restarted && follower.restarted) follower.restarted();
}

void RemoteLink::take_bytes(std::string_view payload, bool instead) {
  ByteReader from(payload, "The connection");
  const auto number = from.value<uint32_t>("a stream");
  const auto offset = from.value<uint64_t>("an offset");
  const auto until = instead ? from.value<uint64_t>("an offset") : 0;
  const std::string_view bytes = from.raw(from.left(), "bytes");
  received_ += bytes.size();
  std::lock_guard calling(calling_);
  FileFollower follower;
  {
    std::lock_guard lock(mutex_);
    const auto at = followed_.find(number);
    if (at == followed_.end()) return;
    if (offset != at->second.offset) throw Failure("The connection is damaged: a part of a file is missing");
    if (instead && (until < offset || !at->second.follower.instead)) throw Failure("The connection is damaged: a part "
                                                                                   "of a message is missing");
    at->second.offset = instead ? until : offset + bytes.size();
    follower = at->second.follower;
  }
  if (instead) follower.instead(bytes, until - offset);
  else if (follower.bytes) follower.bytes(bytes);
}

void RemoteLink::take_event(std::string_view text) {
  const json event = parse_json(text, "An event");
  const JsonInput in(event, "");
  const auto number = static_cast<uint32_t>(in.required("stream").whole(0, 0, UINT32_MAX));
  std::lock_guard calling(calling_);
  FileFollower follower;
  {
    std::lock_guard lock(mutex_);
    const auto at = followed_.find(number);
    if (at == followed_.end()) return;
    follower = at->second.follower;
    followed_.erase(at);
  }
  if (in.at("end").there() && follower.ended) follower.ended(in.at("end").value());
  if (in.at("error").there() && follower.failed) follower.failed(in.at("error").text());
}

}  // namespace ws::app
