// What every allocator must do, whatever it is made of: run against host memory everywhere and against the GPU where
// there is one.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "engine/cuda/memory/resource.h"
#include "profiling/failure.h"

namespace ws::test {

struct MemoryUnderTest {
  cuda::MemoryResource& memory;
  cuda::StreamRef stream = nullptr;
  std::function<void(void*, int64_t, int)> fill;         // ordered on the stream
  std::function<bool(const void*, int64_t, int)> holds;  // every byte has this value; waits
  int64_t too_much = int64_t{1} << 50;                   // more than the upstream ever has
};

struct TestBlock {
  void* ptr;
  int64_t bytes;
  int value;
};

inline void expect_alignment(MemoryUnderTest& t) {
  std::vector<TestBlock> blocks;
  for (const int64_t bytes : {1, 2, 255, 256, 257, 4095, 65537, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    void* ptr = t.memory.allocate(t.stream, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % cuda::kAlignment, 0u) << bytes;
    blocks.push_back({ptr, bytes, 0});
  }
  for (const auto& b : blocks) t.memory.deallocate(t.stream, b.ptr, b.bytes);
}

// Blocks that are alive together never share a byte, through a long random history.
inline void expect_integrity(MemoryUnderTest& t) {
  std::mt19937 rng(11);
  std::vector<TestBlock> alive;
  for (int i = 0; i < 400; ++i) {
    if (alive.size() < 12 && (alive.empty() || rng() % 3)) {
      const int64_t bytes = 1 + static_cast<int64_t>(rng() % (rng() % 4 ? 5000 : 3000000));
      const int value = static_cast<int>(rng() % 250);
      void* ptr = t.memory.allocate(t.stream, bytes);
      t.fill(ptr, bytes, value);
      alive.push_back({ptr, bytes, value});
      continue;
    }
    const size_t which = rng() % alive.size();
    EXPECT_TRUE(t.holds(alive[which].ptr, alive[which].bytes, alive[which].value)) << "after " << i << " actions";
    t.memory.deallocate(t.stream, alive[which].ptr, alive[which].bytes);
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
  }
  for (const auto& b : alive) t.memory.deallocate(t.stream, b.ptr, b.bytes);
}

// A block freed while work on it is queued, and handed out again on the same stream, is not touched by that older work.
inline void expect_stream_order(MemoryUnderTest& t) {
  constexpr int64_t kBytes = 3 << 20;
  for (int i = 0; i < 20; ++i) {
    void* first = t.memory.allocate(t.stream, kBytes);
    t.fill(first, kBytes, 1);
    t.memory.deallocate(t.stream, first, kBytes);
    void* second = t.memory.allocate(t.stream, kBytes);
    t.fill(second, kBytes, 2);
    EXPECT_TRUE(t.holds(second, kBytes, 2));
    t.memory.deallocate(t.stream, second, kBytes);
  }
}

// A request that cannot be met says so and leaves the allocator usable.
inline void expect_exhaustion(MemoryUnderTest& t) {
  void* before = t.memory.allocate(t.stream, 4096);
  t.fill(before, 4096, 5);
  EXPECT_THROW(t.memory.allocate(t.stream, t.too_much), OutOfMemory);
  EXPECT_TRUE(t.holds(before, 4096, 5));
  void* after = t.memory.allocate(t.stream, 1 << 20);
  t.fill(after, 1 << 20, 6);
  EXPECT_TRUE(t.holds(after, 1 << 20, 6));
  t.memory.deallocate(t.stream, after, 1 << 20);
  t.memory.deallocate(t.stream, before, 4096);
}

inline void expect_conformance(MemoryUnderTest t) {
  expect_alignment(t);
  expect_integrity(t);
  expect_stream_order(t);
  expect_exhaustion(t);
}

}  // namespace ws::test
