// A job on another machine as one sees it from here: what it tells, and requests to it. As TracedTraining, but there.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/core/remote/remote_link.h"
#include "app/core/remote/update_codec.h"

namespace ws::app {

class RemoteRun {
 public:
  // Follows the job of that name; `trace`: its spans as well.
  RemoteRun(RemoteLink& link, std::string name, bool trace);
  ~RemoteRun();
  RemoteRun(const RemoteRun&) = delete;
  RemoteRun& operator=(const RemoteRun&) = delete;

  // Begins a job there and waits until it runs. Throws Failure. As run_job() takes it.
  static void start(RemoteLink& link, const std::string& name, const nlohmann::json& job);
  static std::string new_name(const std::string& title);  // "20261123-031833-mnist-1a2b3c"

  const std::string& name() const { return name_; }
  RemoteLink& link() { return link_; }
  // Any thread; what came since. Tests of an epoch, and the end, come with or after the losses before them.
  RemoteUpdate take();
  std::string take_log();  // what the job printed since
  // The job has ended, and all that it told is here.
  bool over() const;
  uint64_t left_out() const;  // bytes of the trace that were not sent live

  void pause() { request({{"what", "pause"}}); }
  void resume() { request({{"what", "resume"}}); }
  void step_once() { request({{"what", "step"}}); }
  void stop() { request({{"what", "stop"}}); }
  void change(const std::string& key, const std::string& value) { request({{"what", "change"}, {"key", key}, {"value", value}}); }
  void set_trace_level(const std::string& level) { request({{"what", "trace"}, {"level", level}}); }

 private:
  void request(nlohmann::json what);
  void read(FrameReader& frames, std::string_view bytes);
  void say(const std::string& text, bool problem);
  void follow(const char* what, FileFollower follower, bool needed = true);

  RemoteLink& link_;
  const std::string name_, sender_;
  mutable std::mutex mutex_;
  UpdateReader reader_;
  FrameReader news_{"The news"}, losses_{"The losses"}, trace_{"The trace"};
  RemoteUpdate inbox_;
  std::vector<StepResult> early_;  // losses of which the news are not here yet
  int64_t steps_until_ = 0, steps_given_ = 0;
  std::string log_;
  uint64_t left_out_ = 0;
  int64_t requests_ = 0;
  int open_ = 0;  // streams that go on
  std::vector<uint32_t> streams_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace ws::app
