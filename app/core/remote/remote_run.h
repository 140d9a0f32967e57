// The client's view of a job on another machine: its reports, and requests to it. It is the remote
// counterpart of TracedTraining.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/core/remote/remote_link.h"
#include "app/core/remote/update_codec.h"
#include "app/core/runs/traced_training.h"

namespace ws::app {

class RemoteRun {
 public:
  // Follows the job of that name; `trace`: also its spans. `job`: starts it first, as start() does, but without
  // waiting. null: it already exists.
  RemoteRun(RemoteLink& link, std::string name, bool trace, const nlohmann::json& job = nullptr);
  ~RemoteRun();
  RemoteRun(const RemoteRun&) = delete;
  RemoteRun& operator=(const RemoteRun&) = delete;

  // Starts a job there and waits until it runs. `job` is as for start_job(). Throws Failure.
  static void start(RemoteLink& link, const std::string& name, const nlohmann::json& job);
  static std::string new_name(const std::string& title);  // "20261123-031833-mnist-1a2b3c"

  const std::string& name() const { return name_; }
  RemoteLink& link() { return link_; }
  // Any thread. Returns what arrived since the last call. The end arrives after everything else.
  RemoteUpdate take();
  std::string take_log();  // what the job printed since the last call
  std::string refused() const;  // why it did not start; empty if it did, or if that is not known yet
  // True if the job has ended and all its reports are here.
  bool over() const;
  uint64_t left_out() const;  // bytes of the trace that were not sent live
  bool thinned() const;       // True if the line carried only some of the losses; the run file has all

  void pause() { request({{"what", "pause"}}); }
  void resume() { request({{"what", "resume"}}); }
  void step_once() { request({{"what", "step"}}); }
  void stop() { request({{"what", "stop"}}); }
  void change(const std::string& key, const std::string& value) { request({{"what", "change"}, {"key", key}, {"value", value}}); }
  void set_trace_level(const std::string& level) { request({{"what", "trace"}, {"level", level}}); }

 private:
  void request(nlohmann::json what);
  void read(FrameReader& frames, std::string_view bytes, bool thinned = false);
  void take_frame(const Frame& frame);
  void begin(const nlohmann::json& job);
  void follow_trace();
  void limit();
  void limit_words();
  void say(const std::string& text, bool problem);
  void follow(const char* what, FileFollower follower, bool needed = true);

  RemoteLink& link_;
  const std::string name_, sender_;
  mutable std::mutex mutex_;
  UpdateReader reader_;
  FrameReader now_{"The state"}, news_{"The news"}, curves_{"The curves"}, trace_{"The trace"};
  RemoteUpdate inbox_;
  size_t spans_ = 0, counted_ = 0;  // spans in the traces of the inbox; traces in that sum
  int64_t last_step_ = -1, last_epoch_ = -1;  // steps of the last loss and of the last epoch received
  std::string log_, refused_;
  uint64_t left_out_ = 0;
  bool thinned_ = false;
  int64_t requests_ = 0;
  int open_ = 0;  // open streams
  std::vector<uint32_t> streams_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Holds back losses and epochs until the first progress report arrives. A viewer needs that report first: it has the
// steps per epoch and the last epoch.
class FirstProgress {
 public:
  // Holds them back until then, or until the training is over.
  void order(RunUpdate& update, bool over);

 private:
  bool known_ = false;
  RunUpdate early_;
};

}  // namespace ws::app
