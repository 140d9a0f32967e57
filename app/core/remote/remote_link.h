// The client side of a line to another Warpsight: starts ssh, sends requests and follows files there. It reconnects
// after a cut, repeats open requests, and continues files where they stopped. It has its own thread.
#pragma once
#include <chrono>
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
  std::string sentence;  // why the line is cut or refused
  double cut_s = 0;      // seconds since the cut
  int times_up = 0;
  pid_t process = 0;     // process of the line while it is up
  bool copy_helps = false;  // refused because this version of the program is missing there
};

// Callbacks for the bytes of a remote file. They run on the line's thread.
struct FileFollower {
  std::function<void(std::string_view bytes)> bytes;
  // Gets the replacement for a left-out part of `length` bytes.
  std::function<void(std::string_view bytes, uint64_t length)> instead;
  std::function<void()> restarted;                            // the file was replaced: read it from its beginning
  std::function<void(const nlohmann::json& figures)> ended;   // the file is complete
  std::function<void(const std::string& sentence)> failed;
};

class RemoteLink {
 public:
  // `patience`: for the server's greeting. A person may have to type a password first; sshd waits 120 s for it.
  explicit RemoteLink(RemoteAddress address, std::chrono::milliseconds patience = std::chrono::seconds(150));
  ~RemoteLink();
  RemoteLink(const RemoteLink&) = delete;
  RemoteLink& operator=(const RemoteLink&) = delete;

  const RemoteAddress& address() const { return address_; }
  LineStatus status() const;

  using Answered = std::function<void(const nlohmann::json& ok, const std::string& error)>;
  // Any thread. `answered` runs on the line's thread. While the line is cut, no answer comes.
  void post(nlohmann::json request, Answered answered = {});
  // Waits for the answer, at most `most_s` after the first attempt to connect. Throws Failure with the error from the
  // other side, why there is no line, or a timeout.
  nlohmann::json ask(nlohmann::json request, double most_s = 60);

  // `what`: "now", "news", "curves", "log" or "trace" of a job, or "file" with its name. Returns a number for leave().
  uint32_t follow(nlohmann::json what, FileFollower follower);
  // After it returns, the follower is not called any more. Do not call it from a follower.
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
  void queue(LineKind kind, std::string_view payload);
  void set(LineState state, const std::string& sentence = {});
  void stop_trying(const std::string& sentence, bool copy_helps);
  void wake();

  RemoteAddress address_;
  std::chrono::milliseconds patience_;
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

  // Used only by the thread.
  std::unique_ptr<PipeProcess> process_;
  FrameReader frames_{"The connection"};
  std::string outgoing_, errors_;
  uint64_t received_ = 0, acknowledged_ = 0;
  std::chrono::steady_clock::time_point last_received_, pinged_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace ws::app
