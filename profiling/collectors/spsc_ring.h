// A bounded queue from one thread to one other thread. A full queue refuses and counts, so the producer never waits.
// readerwriterqueue neither counts refusals nor drains only what was there at the start. With both added around it, it
// would not be shorter than these 40 lines.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace ws::prof {

template <class T>
class SpscRing {
 public:
  // If memory is short, the queue is always full and does not throw: its thread may belong to a program that does not
  // know us.
  explicit SpscRing(int bits) : slots_(new (std::nothrow) T[size_t{1} << bits]()), mask_((uint64_t{1} << bits) - 1) {}

  bool push(const T& value) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - known_tail_ > mask_ || !slots_) {
      known_tail_ = tail_.load(std::memory_order_acquire);
      if (head - known_tail_ > mask_ || !slots_) {
        refused_.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    }
    slots_[head & mask_] = value;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // Calls `use` for each value that was there when drain() was called. A value for which `use` throws is lost.
  template <class Use>
  size_t drain(Use&& use) {
    const uint64_t head = head_.load(std::memory_order_acquire);
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    uint64_t i = tail;
    try {
      for (; i != head; ++i) use(slots_[i & mask_]);
    } catch (...) {
      tail_.store(i + 1, std::memory_order_release);
      throw;
    }
    tail_.store(head, std::memory_order_release);
    return head - tail;
  }

  uint64_t take_refused() { return refused_.exchange(0, std::memory_order_relaxed); }

 private:
  std::unique_ptr<T[]> slots_;
  const uint64_t mask_;
  alignas(64) std::atomic<uint64_t> head_{0};
  uint64_t known_tail_ = 0;  // the producer's copy
  alignas(64) std::atomic<uint64_t> tail_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace ws::prof
