// Tracks which pool the driver is asked about. A thread that destroys this pool waits for that one answer only: a query
// can take seconds while work is launched.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ws::prof {

class PoolQuestions {
 public:
  // For the asking thread, one at a time; handles are not 0. Returns false if the pool is being destroyed.
  bool begin(uint64_t pool) {
    const std::lock_guard lock(mutex_);
    if (goes(pool)) return false;
    asked_ = pool;
    return true;
  }
  // The same for a pool whose handle is known only once the driver has answered.
  void begin_unknown() {
    const std::lock_guard lock(mutex_);
    asked_ = kUnknown;
  }
  bool known_as(uint64_t pool) {
    const std::lock_guard lock(mutex_);
    const bool stays = !goes(pool);
    asked_ = stays ? pool : 0;
    ended_.notify_all();
    return stays;
  }
  // True if the same pool may be asked about again.
  bool may_go_on() {
    const std::lock_guard lock(mutex_);
    return !goes(asked_);
  }
  void end() {
    const std::lock_guard lock(mutex_);
    asked_ = 0;
    ended_.notify_all();
  }

  // For the thread that destroys a pool, before and after. Returns false if the query was not answered in time.
  bool leave(uint64_t pool, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    leaving_.push_back(pool);
    return ended_.wait_for(lock, patience, [&] { return asked_ != pool && asked_ != kUnknown; });
  }
  void left(uint64_t pool) {
    const std::lock_guard lock(mutex_);
    if (const auto at = std::ranges::find(leaving_, pool); at != leaving_.end()) leaving_.erase(at);
  }

 private:
  static constexpr uint64_t kUnknown = ~uint64_t{0};
  bool goes(uint64_t pool) const { return std::ranges::find(leaving_, pool) != leaving_.end(); }

  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t asked_ = 0;
  std::vector<uint64_t> leaving_;
};

}  // namespace ws::prof
