// What every allocator must do, whatever it is made of: run against host memory everywhere and against the GPU where
// there is one.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "engine/cuda/memory/caching.h"
#include "engine/cuda/memory/resource.h"
#include "profiling/base/failure.h"

namespace ws::test {

struct MemoryUnderTest {
  cuda::MemoryResource& memory;
  cuda::StreamRef stream = nullptr;
  std::function<void(void*, int64_t, int)> fill;         // ordered on the stream
  std::function<bool(const void*, int64_t, int)> holds;  // every byte has this value; waits
  int64_t too_much = int64_t{1} << 50;                   // more than the upstream ever has; 0: nobody asks in a step
  int actions = 400;                                     // of the random history
  // What only some allocators have; what is left out here is not looked at.
  std::function<int64_t()> reserved;  // bytes taken from the upstream now; waits for the stream
  bool keeps = false;                 // freed memory stays reserved for who comes next
  int64_t cap = 0;                    // never more than that is reserved
  std::function<void(int64_t)> trim;  // gives back what is unused, down to so many bytes
  std::function<double()> fragmentation;
  bool catches_double_free = false;  // in a debug build
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
  for (int i = 0; i < t.actions; ++i) {
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
  if (t.too_much == 0) return;
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

// The same step again and again takes no more than it did the first time; who keeps nothing has nothing afterwards.
inline void expect_reuse(MemoryUnderTest& t) {
  const auto step = [&] {
    std::vector<TestBlock> blocks;
    for (const int64_t bytes : {200704, 32768, 2560, 401408, 3145728, 5120})
      blocks.push_back({t.memory.allocate(t.stream, bytes), bytes, 0});
    for (const auto& b : blocks) t.memory.deallocate(t.stream, b.ptr, b.bytes);
  };
  const int64_t before = t.reserved ? t.reserved() : 0;
  step();
  const int64_t once = t.reserved ? t.reserved() : 0;
  for (int i = 0; i < 10; ++i) step();
  if (!t.reserved) return;
  EXPECT_EQ(t.reserved(), once);
  if (t.keeps)
    EXPECT_GE(once, 3145728);
  else
    EXPECT_EQ(once, before);
}

inline void expect_cap(MemoryUnderTest& t) {
  if (t.cap == 0) return;
  std::vector<TestBlock> blocks;
  const auto fill_up = [&] {
    for (int64_t i = 0; i <= t.cap >> 20; ++i) {
      blocks.push_back({t.memory.allocate(t.stream, 1 << 20), 1 << 20, static_cast<int>(i % 250)});
      t.fill(blocks.back().ptr, 1 << 20, blocks.back().value);
    }
  };
  EXPECT_THROW(fill_up(), OutOfMemory);
  EXPECT_GE(static_cast<int64_t>(blocks.size()) << 20, t.cap / 2) << "stopped long before the cap";
  EXPECT_LE(t.reserved(), t.cap);
  for (const auto& b : blocks) {
    EXPECT_TRUE(t.holds(b.ptr, b.bytes, b.value));
    t.memory.deallocate(t.stream, b.ptr, b.bytes);
  }
  void* large = t.memory.allocate(t.stream, t.cap / 2);
  EXPECT_LE(t.reserved(), t.cap);
  t.memory.deallocate(t.stream, large, t.cap / 2);
}

// What is in use stays, what is not goes back.
inline void expect_trim(MemoryUnderTest& t) {
  if (!t.trim) return;
  t.trim(0);
  void* kept = t.memory.allocate(t.stream, 3 << 20);
  t.fill(kept, 3 << 20, 7);
  const int64_t with_it = t.reserved();
  t.memory.deallocate(t.stream, t.memory.allocate(t.stream, 40 << 20), 40 << 20);
  EXPECT_GE(t.reserved(), 43 << 20);
  t.trim(0);
  EXPECT_LE(t.reserved(), with_it);
  EXPECT_GE(t.reserved(), 3 << 20);
  EXPECT_TRUE(t.holds(kept, 3 << 20, 7));
  t.memory.deallocate(t.stream, kept, 3 << 20);
  EXPECT_GT(t.reserved(), 0);
  t.trim(0);
  EXPECT_EQ(t.reserved(), 0);
}

// A figure that is 0 for one free block, and grows with the holes between those in use.
inline void expect_fragmentation(MemoryUnderTest& t) {
  if (!t.fragmentation) return;
  if (t.trim) t.trim(0);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(t.memory.allocate(t.stream, 256 << 10));
  const double whole = t.fragmentation();
  for (size_t i = 0; i < 8; i += 2) t.memory.deallocate(t.stream, blocks[i], 256 << 10);
  EXPECT_GT(t.fragmentation(), whole + 0.3);
  EXPECT_LT(t.fragmentation(), 1);
  for (size_t i = 1; i < 8; i += 2) t.memory.deallocate(t.stream, blocks[i], 256 << 10);
  EXPECT_DOUBLE_EQ(t.fragmentation(), 0);
}

// On a device the child of a death test has to begin anew: a context does not survive a fork.
inline void expect_double_free_is_caught([[maybe_unused]] MemoryUnderTest& t) {
#ifndef NDEBUG
  if (!t.catches_double_free) return;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [&t] {
    void* block = t.memory.allocate(t.stream, 100);
    t.memory.deallocate(t.stream, block, 100);
    t.memory.deallocate(t.stream, block, 100);
  };
  EXPECT_DEATH(twice(), "freed twice");
#endif
}

inline void expect_conformance(MemoryUnderTest t) {
  expect_double_free_is_caught(t);
  expect_alignment(t);
  expect_integrity(t);
  expect_stream_order(t);
  expect_exhaustion(t);
  expect_reuse(t);
  expect_cap(t);
  expect_fragmentation(t);
  expect_trim(t);
}

// `t` is the pool itself, or what stands over it.
inline void expect_caching_conformance(MemoryUnderTest t, cuda::Caching& pool, int64_t cap) {
  t.reserved = [&] { return pool.stats().reserved; };
  t.keeps = true;
  t.cap = cap;
  t.trim = [&](int64_t keep) { pool.trim(t.stream, keep); };
  t.fragmentation = [&] { return pool.stats().fragmentation(); };
  t.catches_double_free = true;
  expect_conformance(t);
}

}  // namespace ws::test
