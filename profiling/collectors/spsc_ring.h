// A bounded queue from one thread to one other. A full queue refuses and counts: the producer never waits. readerwriterqueue
// neither counts what it refused nor drains only what was there at the begin; with both written around it, it would not be
// shorter than these 40 lines.
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
  // Without memory for it, a queue that is always full: its thread may be one of a program that knows nothing of us.
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

  // Calls `use` with each value that was there when the call began. One that it throws at is gone.
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
