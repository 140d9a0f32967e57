// One block with planned offsets: an allocation returns the place that the plan reserved, so a step calls no allocator.
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

  // Makes the block at least `bytes` large. Growing frees the old block first, because both may not fit. So old
  // addresses become invalid, even if it throws.
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
