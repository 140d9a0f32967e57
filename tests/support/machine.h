// How busy the machine is. Tests that measure times widen their bounds by it.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "tests/support/sanitizers.h"

namespace ws::test {

// Factor by which a measured time may exceed its goal. Set WARPSIGHT_QUIET=1 where nothing else runs, to test the goal.
inline double busy() { return std::getenv("WARPSIGHT_QUIET") ? 1 : 5; }

// Processor time of this process, and of this thread: neighbours on the machine do not count.
inline double cpu_seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
inline double thread_cpu_ms() { return cpu_seconds(CLOCK_THREAD_CPUTIME_ID) * 1e3; }

// k where the time grows as size^k, of two measured times. Linear work has 1, more where it leaves a cache; work that grows
// with the square has 2. Sizes far apart bear noise: a factor of 1.5 in one of two times that are 8 apart adds 0.2.
inline double growth(double small_s, double large_s, double times_larger) {
  return std::log(large_s / small_s) / std::log(times_larger);
}

// False under sanitizers: AddressSanitizer keeps freed memory, ThreadSanitizer has memory of its own beside ours.
inline constexpr bool kMemoryCounts = !kSanitized;

// Measures how late a thread wakes up that only sleeps.
class Pulse {
 public:
  double longest_ms() const { return longest_ms_; }

 private:
  void beat(const std::stop_token& ended) {
    while (!ended.stop_requested()) {
      const auto begin = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      longest_ms_ = std::max<double>(longest_ms_, took.count() - 5);
    }
  }
  std::atomic<double> longest_ms_{0};
  std::jthread thread_{[this](const std::stop_token& ended) { beat(ended); }};
};

}  // namespace ws::test
