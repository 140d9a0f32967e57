// Controls a training from other threads: pause, single step, stop, changed choices, questions.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/executor/executor.h"

namespace ws {

// Every function may be called from any thread.
class TrainControl {
 public:
  void pause();
  void resume();
  void step_once();  // while paused: runs one more step
  void stop();
  // Takes effect at the next step. Throws SpecError if the field cannot change during a run.
  void change(std::string key, std::string value);
  bool paused() const;
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  // Queues a function that the training thread calls between two steps, e.g. to read weights or predict.
  void ask(std::function<void(Executor&)> question);

 private:
  friend class Trainer;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false}, attention_{false};
  bool paused_ = false;
  int single_steps_ = 0;
  std::vector<std::pair<std::string, std::string>> changes_;
  std::vector<std::function<void(Executor&)>> questions_;
};

}  // namespace ws
