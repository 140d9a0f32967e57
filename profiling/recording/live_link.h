// Shows a recorded program live: its batches arrive over a local socket while the run file is written.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "profiling/recording/program_frames.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// Runs in the process that writes the run file and never waits: data that a slow follower cannot take is only in the file.
class LiveSender {
 public:
  // `process`: the number of the recorded process. `origin_ns`: steady clock at trace time 0.
  LiveSender(const std::string& address, int64_t process, int64_t origin_ns);
  ~LiveSender();
  LiveSender(const LiveSender&) = delete;
  LiveSender& operator=(const LiveSender&) = delete;

  bool connected() const { return socket_ >= 0; }
  void send(const TraceBatch& batch);
  void send(const std::vector<Metric>& metrics, const std::vector<Evaluation>& evaluations);
  void send_waiting(int most_ms = 0);  // what the follower could not take; call it also while nothing is new
  void finish();  // waits briefly until the follower has taken the rest

 private:
  int socket_ = -1;
  NewOps ops_;
  std::string waiting_;  // unsent bytes begin at sent_
  size_t sent_ = 0;
  uint64_t left_out_ = 0;  // number of spans, not yet reported
};

struct FollowStatus {
  int programs = 0, running = 0;  // processes seen, and those still running
  uint64_t spans = 0, steps = 0, kernels = 0, copies = 0, calls = 0, allocations = 0;
  uint64_t dropped = 0;   // records that are in no file
  uint64_t left_out = 0;  // spans only in the file, because the follower was too slow
  std::string problem;    // why a program is no longer followed
};

// Runs in our process and listens during its whole lifetime. The batches of all processes of a program form one trace.
class LiveFollower {
 public:
  LiveFollower();  // throws Failure
  ~LiveFollower();
  LiveFollower(const LiveFollower&) = delete;
  LiveFollower& operator=(const LiveFollower&) = delete;

  const std::string& address() const { return address_; }
  TraceBatch take();  // empty if nothing is new
  LiveCurves take_curves();
  FollowStatus status() const;

 private:
  struct Program {
    int socket = -1;
    int number = 0, pid = 0;
    int64_t shift = 0;  // from its origin to the origin of the first program
    std::string bytes;
    std::vector<OpTag> ops;  // maps the sender's op tags to ours
    std::map<int, uint64_t> steps;  // by rank
  };
  void listen_here();
  void close_all();
  void loop();
  void accept_one();
  bool read(Program& program);  // returns false if the program is gone
  void take_frame(Program& program, FrameKind kind, std::string_view payload);
  void take_hello(Program& program, std::string_view payload);
  void take_batch(Program& program, std::string_view payload);
  void take_curves(const Program& program, std::string_view payload);

  std::string folder_, address_;
  int listening_ = -1;
  int stop_pipe_[2] = {-1, -1};
  int64_t origin_ = 0;
  std::vector<Program> programs_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<TraceBatch> ready_;
  size_t ready_spans_ = 0;
  LiveCurves ready_curves_;
  FollowStatus status_;
  std::thread thread_;
};

}  // namespace ws::prof
