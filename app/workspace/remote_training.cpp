#include "app/workspace/remote_training.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/core/runs/data_shape.h"

namespace ws::app {

using nlohmann::json;

RemoteTraining::RemoteTraining(RemoteLink& link, const std::string& name, const json& job, RunSpec spec)
    : run_(link, name, true, job), spec_(std::move(spec)) {}

// Throws at once if the choice cannot change during a run, as for a local training.
void RemoteTraining::change(const std::string& key, const std::string& value) {
  RunSpec tried = spec_;
  set_field(tried, key, value);
  run_.change(key, value);
}

// Compiles the plan here from the choices: the other machine makes the same plan.
void RemoteTraining::takePlan(RunUpdate& update) {
  for (const Change& change : update.changes) set_field(spec_, change.key, change.to);
  update.plan = plan_before_loading(spec_);
}

RunUpdate RemoteTraining::take() {
  const bool over = run_.over();
  RemoteUpdate update = run_.take();
  first_.order(update.run, over);
  if (!update.files.empty()) files_ = update.files;
  if (update.recompiled || !std::exchange(planned_, true)) takePlan(update.run);
  const std::string log = run_.take_log();
  if (!log.empty()) update.run.messages.push_back({log});
  return std::move(update.run);
}

bool RemoteTraining::over() {
  if (const LineStatus line = run_.link().status(); line.state == LineState::Refused) line_refused_ = line.sentence;
  return run_.over() || !failure().empty();
}

bool RemoteTraining::wait(int most_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(most_ms);
  while (!over() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return over();
}

std::string RemoteTraining::failure() const { return line_refused_.empty() ? run_.refused() : line_refused_; }

}  // namespace ws::app
