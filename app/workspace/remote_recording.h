// A program that is recorded on another machine, for the window: its spans as they arrive, and its files at the end.
#pragma once
#include <QStringList>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/core/remote/remote_run.h"
#include "app/workspace/printed_lines.h"
#include "app/workspace/remote_machine.h"
#include "profiling/recording/live_link.h"

namespace ws::app {

class RemoteRecording {
 public:
  // `job`: as for RemoteRun::start(); null: it already runs there.
  RemoteRecording(std::shared_ptr<RemoteMachine> machine, const std::string& name, const nlohmann::json& job);
  RunUpdate take();  // spans; what the program prints comes as messages
  bool over();       // True if it ended; call take() once more
  void stop() { run_.stop(); }
  std::string failure() const;  // why it did not start, or cannot be followed
  // Valid once it is over.
  int exitStatus() const { return exit_status_.value_or(-1); }
  const std::vector<std::string>& files() const { return files_; }  // remote files, the first process first
  const QString& lastLine() const { return output_.lastLine(); }  // of what the program printed
  const prof::FollowStatus& status() const { return status_; }
  const std::shared_ptr<RemoteMachine>& machine() const { return machine_; }

 private:
  std::shared_ptr<RemoteMachine> machine_;
  RemoteRun run_;
  ShownOutput output_;
  std::optional<int> exit_status_;
  std::vector<std::string> files_;
  prof::FollowStatus status_;
};

}  // namespace ws::app
