#include "engine/train/train_control.h"

namespace ws {

void TrainControl::pause() {
  std::lock_guard lock(mutex_);
  paused_ = true;
  attention_ = true;
}

void TrainControl::resume() {
  std::lock_guard lock(mutex_);
  paused_ = false;
  single_steps_ = 0;
  attention_ = true;
  wake_.notify_all();
}

void TrainControl::step_once() {
  std::lock_guard lock(mutex_);
  if (!paused_) return;
  ++single_steps_;
  attention_ = true;
  wake_.notify_all();
}

void TrainControl::stop() {
  std::lock_guard lock(mutex_);
  stop_ = true;
  attention_ = true;
  wake_.notify_all();
}

void TrainControl::change(std::string key, std::string value) {
  if (!field(key).live) throw SpecError(key + ": cannot change while training");
  RunSpec trial;
  set_field(trial, key, value);  // throws for a wrong value here, on the caller's thread
  std::lock_guard lock(mutex_);
  changes_.emplace_back(std::move(key), std::move(value));
  attention_ = true;
  wake_.notify_all();
}

bool TrainControl::paused() const {
  std::lock_guard lock(mutex_);
  return paused_;
}

void TrainControl::ask(std::function<void(Executor&)> question) {
  std::lock_guard lock(mutex_);
  questions_.push_back(std::move(question));
  attention_ = true;
  wake_.notify_all();
}

}  // namespace ws
