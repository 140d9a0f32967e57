// A program that is recorded on another machine, for the window: its spans as they come, and its files in the end.
#pragma once
#include <QStringList>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/core/remote/remote_run.h"
#include "app/workspace/remote_machine.h"
#include "profiling/recording/record_program.h"

namespace ws::app {

class RemoteRecording {
 public:
  // `job`: as RemoteRun::start() takes it; null: it runs there already.
  RemoteRecording(std::shared_ptr<RemoteMachine> machine, const std::string& name, const nlohmann::json& job);
  RunUpdate take();  // spans, and what the program prints as messages
  bool over();       // and all that it told was taken, but for one take()
  void stop() { run_.stop(); }
  std::string failure() const;  // why it did not begin, or cannot be followed
  // Once it is over.
  int exitStatus() const { return exit_status_.value_or(-1); }
  const std::vector<std::string>& files() const { return files_; }  // that it left there, the first process's first
  const prof::FollowStatus& status() const { return status_; }
  const std::shared_ptr<RemoteMachine>& machine() const { return machine_; }

 private:
  std::shared_ptr<RemoteMachine> machine_;
  RemoteRun run_;
  std::optional<int> exit_status_;
  std::vector<std::string> files_;
  prof::FollowStatus status_;
};

nlohmann::json remote_recording_job(const QStringList& command, const prof::RecordOptions& options);

}  // namespace ws::app
