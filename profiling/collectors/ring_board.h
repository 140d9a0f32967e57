// Carries the stamps of kernels that use profiling/annotate/kernel_ranges.cuh from the thread that copies them off the
// GPU to the collector.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profiling/annotate/kernel_ranges.cuh"

namespace ws::prof {

struct StampRing {
  uint64_t number = 0;  // counts the rings of this process
  uint32_t device = 0;
  uint32_t segments = 1, stamps = 0;  // as in warpsight::Ring
  bool by_warp = false;
  std::vector<std::string> names;
  int64_t clock_offset = 0;  // globaltimer - steady clock, with an error of a few µs
  size_t segment_bytes() const {
    return sizeof(warpsight::RangeSegment) + size_t{stamps} * sizeof(warpsight::RangeStamp);
  }
};

// Consecutive segments of a ring, as they were at one moment.
struct RingCopy {
  std::shared_ptr<const StampRing> ring;
  uint32_t first = 0;  // number of the first segment, counted over the whole run
  std::vector<std::byte> bytes;
};

class RingBoard {
 public:
  static RingBoard& instance();

  // From the first ring on, kernel records are kept so that stamps can be drawn inside of them.
  void announce() { announced_.store(true, std::memory_order_relaxed); }
  bool announced() const { return announced_.load(std::memory_order_relaxed); }

  void add(RingCopy copy);  // dropped if too much is waiting
  std::vector<RingCopy> take();

 private:
  std::atomic<bool> announced_{false};
  std::mutex mutex_;
  std::vector<RingCopy> copies_;
  size_t bytes_ = 0;
};

}  // namespace ws::prof
