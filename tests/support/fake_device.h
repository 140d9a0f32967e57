// Host memory in the place of a device's, which counts and notices what is not given back.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/support/memory_conformance.h"

namespace ws::test {

// A device of `size` bytes.
class FakeDevice final : public cuda::MemoryResource {
 public:
  explicit FakeDevice(int64_t size = int64_t{256} << 20) : size_(size) {}
  ~FakeDevice() override { EXPECT_TRUE(blocks_.empty()) << "memory was not given back"; }

  void* allocate(cuda::StreamRef, int64_t bytes) override {
    if (used + bytes > size_) throw OutOfMemory("FakeDevice", "full", "");
    void* ptr = std::aligned_alloc(cuda::kAlignment, static_cast<size_t>(cuda::round_up(bytes, cuda::kAlignment)));
    blocks_[ptr] = bytes;
    used += bytes;
    ++calls;
    return ptr;
  }
  void deallocate(cuda::StreamRef, void* ptr, int64_t bytes) noexcept override {
    const auto block = blocks_.find(ptr);
    ASSERT_NE(block, blocks_.end()) << "not from this device, or freed twice";
    EXPECT_EQ(block->second, bytes);
    blocks_.erase(block);
    used -= bytes;
    returned.push_back(ptr);
    std::free(ptr);
  }

  int64_t used = 0, calls = 0;
  std::vector<void*> returned;

 private:
  int64_t size_;
  std::map<void*, int64_t> blocks_;
};

inline MemoryUnderTest on_host(cuda::MemoryResource& memory) {
  return {memory, nullptr, [](void* p, int64_t n, int v) { std::memset(p, v, static_cast<size_t>(n)); },
          [](const void* p, int64_t n, int v) {
            const auto* bytes = static_cast<const unsigned char*>(p);
            return std::all_of(bytes, bytes + n, [v](unsigned char b) { return b == v; });
          }};
}

}  // namespace ws::test
