// One block with offsets planned ahead: an allocation hands out the place that the plan reserved, so a step calls
// nobody.
#pragma once
#include <cstddef>

#include "engine/cuda/memory/resource.h"

namespace ws::cuda {

class Arena {
 public:
  explicit Arena(MemoryResource& upstream) : upstream_(upstream) {}
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Holds at least `bytes`. Growing moves the block, so nobody may use the old addresses any more, whether a larger one
  // was to be had or not: the old one goes first, for there may be no room for both.
  void reserve(StreamRef stream, int64_t bytes) {
    if (bytes <= bytes_) return;
    release();
    data_ = static_cast<std::byte*>(upstream_.allocate(stream, bytes));
    bytes_ = bytes;
  }
  void* at(int64_t offset) const { return data_ + offset; }
  int64_t bytes() const { return bytes_; }

 private:
  void release() noexcept {
    if (data_) upstream_.deallocate(nullptr, data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  MemoryResource& upstream_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace ws::cuda
