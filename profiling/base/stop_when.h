// Lets a thread end long work early, such as the reading of a file when its window closes.
#pragma once
#include <atomic>
#include <exception>

namespace ws {

class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "It was stopped."; }
};

// While it lives, end_if_stopped() on this thread looks at `flag`.
class StopWhen {
 public:
  explicit StopWhen(const std::atomic<bool>& flag) : before_(current()) { current() = &flag; }
  ~StopWhen() { current() = before_; }
  StopWhen(const StopWhen&) = delete;
  StopWhen& operator=(const StopWhen&) = delete;

 private:
  friend void end_if_stopped();
  static const std::atomic<bool>*& current() {
    thread_local const std::atomic<bool>* flag = nullptr;
    return flag;
  }
  const std::atomic<bool>* before_;
};

// Throws Stopped. Loops over rows of a file call it.
inline void end_if_stopped() {
  if (const auto* const flag = StopWhen::current(); flag && flag->load(std::memory_order_relaxed)) throw Stopped();
}

}  // namespace ws
