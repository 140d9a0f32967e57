// A training on another machine, for the window. It has the same updates and controls as a local one.
#pragma once
#include <string>

#include "app/core/remote/remote_run.h"
#include "app/workspace/training_worker.h"

namespace ws::app {

class RemoteTraining : public TrainingWorker {
 public:
  // `job`: as for RemoteRun::start(); null: it already runs there.
  RemoteTraining(RemoteLink& link, const std::string& name, const nlohmann::json& job, RunSpec spec);
  void pause() override { run_.pause(); }
  void resume() override { run_.resume(); }
  void stepOnce() override { run_.step_once(); }
  void stop() override { run_.stop(); }
  void change(const std::string& key, const std::string& value) override;
  void setTraceLevel(prof::TraceLevel level) override { run_.set_trace_level(prof::to_string(level)); }
  RunUpdate take() override;
  bool over() override;
  bool wait(int most_ms) override;
  std::string failure() const override;
  const std::string& name() const { return run_.name(); }
  const std::vector<std::string>& files() const { return files_; }  // remote files

 private:
  void takePlan(RunUpdate& update);
  RemoteRun run_;
  FirstProgress first_;
  RunSpec spec_;
  std::vector<std::string> files_;
  std::string line_refused_;  // why the line cannot come back
  bool planned_ = false;
};

}  // namespace ws::app
