// Measures the seconds spent training. The clock stops during pauses, tests, checkpoints and recompilation.
#pragma once
#include <chrono>

namespace ws {

class TrainClock {
 public:
  void start() {
    if (running_) return;
    since_ = Steady::now();
    running_ = true;
  }
  void stop() {
    total_ = seconds();
    running_ = false;
  }
  void set(double seconds) { total_ = seconds; }
  double seconds() const {
    return running_ ? total_ + std::chrono::duration<double>(Steady::now() - since_).count() : total_;
  }

 private:
  using Steady = std::chrono::steady_clock;
  Steady::time_point since_;
  double total_ = 0;
  bool running_ = false;
};

}  // namespace ws
