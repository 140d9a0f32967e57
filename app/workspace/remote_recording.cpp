#include "app/workspace/remote_recording.h"

#include <nlohmann/json.hpp>

namespace ws::app {

using nlohmann::json;

RemoteRecording::RemoteRecording(std::shared_ptr<RemoteMachine> machine, const std::string& name, const json& job)
    : machine_(std::move(machine)), run_(machine_->link(), name, true, job) {}

RunUpdate RemoteRecording::take() {
  const bool over = run_.over();
  RemoteUpdate update = run_.take();
  if (update.exit_status) exit_status_ = update.exit_status;
  if (update.recording) status_ = *update.recording;
  if (!update.files.empty()) files_ = update.files;
  output_.add(run_.take_log(), over, update.run.messages);
  return std::move(update.run);
}

bool RemoteRecording::over() { return run_.over() || !failure().empty(); }

std::string RemoteRecording::failure() const {
  const LineStatus line = machine_->link().status();
  if (line.state == LineState::Refused) return line.sentence;
  return run_.refused();
}

}  // namespace ws::app
