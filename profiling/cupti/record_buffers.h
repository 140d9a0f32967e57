// Memory for CUPTI records: fixed-size buffers that circulate between the driver, which fills them, and the parser.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace ws::prof {

class RecordBuffers {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;
  struct Filled {
    uint8_t* data;
    size_t valid;
  };

  explicit RecordBuffers(size_t limit = 512) : limit_(limit) {}

  // Returns a zeroed buffer, or nullptr if the limit is reached: the driver then drops records and counts them.
  uint8_t* take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        uint8_t* buffer = free_.back();
        free_.pop_back();
        return buffer;
      }
      if (total_ >= limit_) return nullptr;
      ++total_;
    }
    auto* fresh = static_cast<uint8_t*>(std::aligned_alloc(64, kBytes));
    if (fresh) std::memset(fresh, 0, kBytes);
    return fresh;
  }

  void filled(uint8_t* buffer, size_t valid) {
    std::lock_guard lock(mutex_);
    filled_.push_back({buffer, valid});
  }

  std::vector<Filled> take_filled() {
    std::lock_guard lock(mutex_);
    return std::exchange(filled_, {});
  }

  // Recycles filled buffers that must not be read.
  void discard_filled() {
    for (const Filled& buffer : take_filled()) give_back(buffer.data);
  }

  // Zeroes the buffer on the caller's thread, so that the program's threads need not do it.
  void give_back(uint8_t* buffer) {
    std::memset(buffer, 0, kBytes);
    std::lock_guard lock(mutex_);
    free_.push_back(buffer);
  }

  size_t total() const {
    std::lock_guard lock(mutex_);
    return total_;
  }
  size_t unused() const {
    std::lock_guard lock(mutex_);
    return free_.size();
  }

 private:
  const size_t limit_;
  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<Filled> filled_;
  size_t total_ = 0;
};

}  // namespace ws::prof
