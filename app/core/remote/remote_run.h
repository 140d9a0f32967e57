// A job on another machine as one sees it from here: what it tells, and requests to it. As TracedTraining, but there.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/core/remote/remote_link.h"
#include "app/core/remote/update_codec.h"

namespace ws::app {

class RemoteRun {
 public:
  // Follows the job of that name; `trace`: its spans as well. `job`: begins it first, without waiting, as start() takes it;
  // null: it is there already.
  RemoteRun(RemoteLink& link, std::string name, bool trace, const nlohmann::json& job = nullptr);
  ~RemoteRun();
  RemoteRun(const RemoteRun&) = delete;
  RemoteRun& operator=(const RemoteRun&) = delete;

  // Begins a job there and waits until it runs. Throws Failure. As run_job() takes it.
  static void start(RemoteLink& link, const std::string& name, const nlohmann::json& job);
  static std::string new_name(const std::string& title);  // "20261123-031833-mnist-1a2b3c"

  const std::string& name() const { return name_; }
  RemoteLink& link() { return link_; }
  // Any thread; what came since. The end comes after all else.
  RemoteUpdate take();
  std::string take_log();  // what the job printed since
  std::string refused() const;  // why it did not begin; empty: it did, or it is not known yet
  // The job has ended, and all that it told is here.
  bool over() const;
  uint64_t left_out() const;  // bytes of the trace that were not sent live
  bool thinned() const;       // losses came of which the line did not carry all; the run file has them

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
  void say(const std::string& text, bool problem);
  void follow(const char* what, FileFollower follower, bool needed = true);

  RemoteLink& link_;
  const std::string name_, sender_;
  mutable std::mutex mutex_;
  UpdateReader reader_;
  FrameReader now_{"The state"}, news_{"The news"}, curves_{"The curves"}, trace_{"The trace"};
  RemoteUpdate inbox_;
  size_t spans_ = 0, counted_ = 0;  // of the traces in the inbox; the traces that are in that sum
  int64_t last_step_ = -1, last_epoch_ = -1;  // the step of the last loss and of the last epoch that came
  std::string log_, refused_;
  uint64_t left_out_ = 0;
  bool thinned_ = false;
  int64_t requests_ = 0;
  int open_ = 0;  // streams that go on
  std::vector<uint32_t> streams_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ws::app
