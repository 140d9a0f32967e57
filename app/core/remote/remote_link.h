// The line to another Warpscope, from this side: starts ssh, asks, follows files there, and comes back by itself after a
// cut. What was asked is asked again then, and files go on where they stopped. Has a thread of its own.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "app/core/remote/frame.h"
#include "app/core/remote/pipe_process.h"
#include "app/core/remote/remote_address.h"

namespace ws::app {

enum class LineState { Connecting, Up, Cut, Refused };

struct LineStatus {
  LineState state = LineState::Connecting;
  std::string sentence;  // why it is cut or refused
  double cut_s = 0;      // since when
  int times_up = 0;
  pid_t process = 0;     // of the line while it stands
  bool copy_helps = false;  // refused because this version of the program is missing there
};

// What comes of a file there; called on the line's thread.
struct FileFollower {
  std::function<void(std::string_view bytes)> bytes;
  // What stands for a part of that length, which was left out.
  std::function<void(std::string_view bytes, uint64_t length)> instead;
  std::function<void()> restarted;                            // the file is another one: from its beginning
  std::function<void(const nlohmann::json& figures)> ended;   // all of it came
  std::function<void(const std::string& sentence)> failed;
};

class RemoteLink {
 public:
  explicit RemoteLink(RemoteAddress address);
  ~RemoteLink();
  RemoteLink(const RemoteLink&) = delete;
  RemoteLink& operator=(const RemoteLink&) = delete;

  const RemoteAddress& address() const { return address_; }
  LineStatus status() const;

  using Answered = std::function<void(const nlohmann::json& ok, const std::string& error)>;
  // Any thread. `answered` is called on the line's thread; it stays unanswered while the line is cut.
  void post(nlohmann::json request, Answered answered = {});
  // Waits. Throws Failure: what the other side said, why there is no line, or that the time is over.
  nlohmann::json ask(nlohmann::json request, double most_s = 60);

  // `what`: "now", "news", "curves", "log" or "trace" of a job, or "file" with its name. Returns a number for leave().
  uint32_t follow(nlohmann::json what, FileFollower follower);
  // Once it returns, the follower is not called any more. Not from a follower.
  void leave(uint32_t number);

 private:
  struct Followed {
    nlohmann::json what;
    FileFollower follower;
    uint64_t offset = 0;
    std::string version;
  };
  struct Pending {
    nlohmann::json request;
    Answered answered;
  };
  void loop(const std::stop_token& ended);
  void connect(const std::stop_token& ended);
  void greet(const std::stop_token& ended);
  void talk(const std::stop_token& ended);
  void wait_for_bytes(int most_ms);
  void read_errors();
  void take(const Frame& frame);
  void take_answer(std::string_view text);
  void take_bytes(std::string_view payload, bool instead);
  void take_event(std::string_view text);
  void took_follow(uint32_t number, const nlohmann::json& ok, const std::string& error);
  void send_waiting();
  void send_request(const nlohmann::json& request);
  void queue(LineKind kind, std::string_view payload);
  void set(LineState state, const std::string& sentence = {});
  void give_up(const std::string& sentence, bool copy_helps);
  void wake();

  RemoteAddress address_;
  mutable std::mutex mutex_;         // guards status, requests and follows
  std::recursive_mutex calling_;     // held while a follower is called
  LineStatus status_;
  std::chrono::steady_clock::time_point cut_since_;
  std::map<int64_t, Pending> pending_;
  std::map<uint32_t, Followed> followed_;
  std::vector<int64_t> unsent_;
  int64_t next_number_ = 1;
  uint32_t next_stream_ = 1;
  int wake_pipe_[2] = {-1, -1};

  // Of the thread.
  std::unique_ptr<PipeProcess> process_;
  FrameReader frames_{"The line"};
  std::string outgoing_, errors_;
  uint64_t received_ = 0, told_ = 0;
  std::chrono::steady_clock::time_point heard_, pinged_;
  std::jthread thread_;  // last: it uses all of the above
};

// Copies a file there to here, whole or not at all; goes on after cuts. `what` as follow() takes it, without "what".
// `progress`: bytes so far; false: give up. Throws Failure.
void fetch_file(RemoteLink& link, nlohmann::json what, const std::string& path,
                const std::function<bool(uint64_t bytes)>& progress = {});

}  // namespace ws::app
