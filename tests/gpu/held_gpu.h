// Keeps the GPU so busy that no other kernel can begin, until it is released: whoever waits for the GPU meanwhile is
// seen.
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

namespace ws::test {

class HeldGpu {
 public:
  // Releases it by itself after `patience`, so that a test of something that waits ends.
  explicit HeldGpu(std::chrono::milliseconds patience);
  ~HeldGpu();
  HeldGpu(const HeldGpu&) = delete;
  HeldGpu& operator=(const HeldGpu&) = delete;

  void release();  // returns when the GPU is free
  bool released_by_itself() const { return late_; }

 private:
  void open();

  int* gate_ = nullptr;  // pinned: kernels end when it is set; behind it, a number for each block that has begun
  void* stream_ = nullptr;
  std::atomic<bool> open_{false}, late_{false};
  std::thread watch_;
};

}  // namespace ws::test
