// Repeats a task ten times a second until stop is requested. The second thread of a recording uses it to carry data.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace ws {

template <class Work>
void repeat_until(const std::stop_token& ended, const Work& work) {
  std::mutex waiting;
  std::condition_variable_any wake;
  std::unique_lock lock(waiting);
  while (!ended.stop_requested()) {
    wake.wait_for(lock, ended, std::chrono::milliseconds(100), [] { return false; });
    work();
  }
}

}  // namespace ws
