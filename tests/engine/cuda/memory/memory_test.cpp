// The pools' logic over host memory: no GPU is needed to see that they split, merge, keep and give back as they should.

#include "engine/cuda/memory/arena.h"
#include "engine/cuda/memory/caching.h"
#include "engine/cuda/memory/counting.h"
#include "tests/support/fake_device.h"

namespace ws::cuda {
namespace {

using test::FakeDevice;
using test::on_host;

constexpr int64_t kMiB = 1 << 20;

TEST(Memory, TheDriversAllocationConforms) {
  FakeDevice device;
  Counting counting(device, "direct", Level::Blocks);
  test::MemoryUnderTest t = on_host(counting);
  t.reserved = [&] { return device.used; };
  t.catches_double_free = true;
  test::expect_conformance(t);
}

TEST(Memory, TheCachingPoolConforms) {
  for (const int64_t cap : {int64_t{0}, 96 * kMiB}) {
    FakeDevice device;
    Caching pool(device, cap);
    test::expect_caching_conformance(on_host(pool), pool, cap);
    EXPECT_EQ(device.used, pool.stats().reserved);
    EXPECT_EQ(pool.stats().used, 0);
  }
}

TEST(Caching, WarmStepsAskTheDeviceForNothing) {
  FakeDevice device;
  Caching pool(device, 0);
  const auto step = [&] {
    std::vector<std::pair<void*, int64_t>> blocks;
    for (const int64_t bytes : {200704, 32768, 2560, 401408, 3145728, 5120})
      blocks.emplace_back(pool.allocate(nullptr, bytes), bytes);
    for (const auto& [ptr, bytes] : blocks) pool.deallocate(nullptr, ptr, bytes);
  };
  step();
  const int64_t calls = device.calls;
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(device.calls, calls);
  EXPECT_EQ(pool.stats().used, 0);
}

TEST(Caching, SizeClassesWasteAtMostAnEighth) {
  for (int64_t bytes = 4096; bytes < 64 * kMiB; bytes = bytes * 9 / 8 + 7) {
    EXPECT_GE(Caching::rounded(bytes), bytes);
    EXPECT_LE(Caching::rounded(bytes), bytes + bytes / 8);
    EXPECT_EQ(Caching::rounded(Caching::rounded(bytes)), Caching::rounded(bytes));
  }
}

TEST(Caching, BestFitTakesTheSmallestBlockThatServes) {
  FakeDevice device;
  Caching pool(device, 0);
  void* big = pool.allocate(nullptr, 24 * kMiB);
  void* fits = pool.allocate(nullptr, 8 * kMiB);
  pool.deallocate(nullptr, big, 24 * kMiB);
  pool.deallocate(nullptr, fits, 8 * kMiB);
  EXPECT_EQ(pool.allocate(nullptr, 7 * kMiB), fits);
  pool.deallocate(nullptr, fits, 7 * kMiB);
}

TEST(Caching, FreedNeighboursMergeIntoOneBlock) {
  FakeDevice device;
  Caching pool(device, 0);
  void* whole = pool.allocate(nullptr, 16 * kMiB);
  pool.deallocate(nullptr, whole, 16 * kMiB);
  std::vector<void*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(pool.allocate(nullptr, 4 * kMiB));
  EXPECT_EQ(device.calls, 1);  // all four were split off the one segment
  for (const int i : {0, 2, 1, 3}) pool.deallocate(nullptr, parts[static_cast<size_t>(i)], 4 * kMiB);
  EXPECT_EQ(pool.stats().free_blocks, 1);
  EXPECT_DOUBLE_EQ(pool.stats().fragmentation(), 0);
  EXPECT_EQ(pool.allocate(nullptr, 16 * kMiB), whole);
  pool.deallocate(nullptr, whole, 16 * kMiB);
}

TEST(Caching, FragmentationDistinguishesCrumbsFromOneBlock) {
  FakeDevice device;
  Caching pool(device, 0);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(pool.allocate(nullptr, 256 * 1024));
  for (size_t i = 0; i < 8; i += 2) pool.deallocate(nullptr, blocks[i], 256 * 1024);
  EXPECT_GT(pool.stats().fragmentation(), 0.5);
  for (size_t i = 1; i < 8; i += 2) pool.deallocate(nullptr, blocks[i], 256 * 1024);
}

TEST(Caching, TrimGivesBackWhatWasUnusedForLongestFirst) {
  FakeDevice device;
  Caching pool(device, 0);
  void* old_one = pool.allocate(nullptr, 10 * kMiB);
  void* new_one = pool.allocate(nullptr, 20 * kMiB);
  pool.deallocate(nullptr, old_one, 10 * kMiB);
  pool.deallocate(nullptr, new_one, 20 * kMiB);
  pool.trim(nullptr, 20 * kMiB);
  ASSERT_EQ(device.returned.size(), 1u);
  EXPECT_EQ(device.returned[0], old_one);
  pool.trim(nullptr, 0);
  EXPECT_EQ(device.used, 0);
}

TEST(Caching, BlocksInUseSurviveATrim) {
  FakeDevice device;
  Caching pool(device, 0);
  void* kept = pool.allocate(nullptr, 10 * kMiB);
  pool.trim(nullptr, 0);
  EXPECT_EQ(device.used, 10 * kMiB);
  pool.deallocate(nullptr, kept, 10 * kMiB);
}

TEST(Caching, PinnedSegmentsStayUntilUnpinned) {
  FakeDevice device;
  Caching pool(device, 0);
  void* block = pool.allocate(nullptr, 10 * kMiB);
  pool.deallocate(nullptr, block, 10 * kMiB);
  pool.pin(true);
  pool.trim(nullptr, 0);
  EXPECT_EQ(device.used, 10 * kMiB);
  pool.pin(false);
  pool.trim(nullptr, 0);
  EXPECT_EQ(device.used, 0);
}

// A graph that is being captured knows the address of a block that the same step has freed again.
TEST(Caching, WhatACaptureUsedDoesNotGoBackBeforeItEnds) {
  FakeDevice device;
  Caching pool(device, 32 * kMiB);
  const auto use = [&pool](int64_t bytes) { pool.deallocate(nullptr, pool.allocate(nullptr, bytes), bytes); };
  use(20 * kMiB);
  pool.recording(true);
  use(30 * kMiB);  // what was there before may go
  EXPECT_EQ(device.returned.size(), 1u);
  EXPECT_THROW(use(31 * kMiB), OutOfMemory);
  EXPECT_EQ(device.used, 30 * kMiB);
  pool.recording(false);
  use(31 * kMiB);
  EXPECT_EQ(device.returned.size(), 2u);
}

TEST(Caching, TheCapHoldsAndItsSentenceNamesIt) {
  FakeDevice device;
  Caching pool(device, 32 * kMiB);
  void* block = pool.allocate(nullptr, 20 * kMiB);
  try {
    pool.allocate(nullptr, 20 * kMiB);
    FAIL() << "the cap was passed";
  } catch (const OutOfMemory& problem) {
    EXPECT_THAT(problem.what(), testing::HasSubstr("cap of 32 MiB"));
  }
  pool.deallocate(nullptr, block, 20 * kMiB);
  void* other = pool.allocate(nullptr, 30 * kMiB);  // the unused segment makes space
  EXPECT_LE(device.used, 32 * kMiB);
  pool.deallocate(nullptr, other, 30 * kMiB);
}

TEST(Caching, AFullDeviceGetsUnusedSegmentsBackFirst) {
  FakeDevice device(40 * kMiB);
  Caching pool(device, 0);
  void* first = pool.allocate(nullptr, 30 * kMiB);
  pool.deallocate(nullptr, first, 30 * kMiB);
  void* second = pool.allocate(nullptr, 36 * kMiB);
  EXPECT_EQ(device.used, 36 * kMiB);
  pool.deallocate(nullptr, second, 36 * kMiB);
}

#ifndef NDEBUG
TEST(CachingDeathTest, FreeingTwiceIsCaught) {
  FakeDevice device;
  Caching pool(device, 0);
  void* block = pool.allocate(nullptr, 100);
  pool.deallocate(nullptr, block, 100);
  EXPECT_DEATH(pool.deallocate(nullptr, block, 100), "freed twice");
}
#else
TEST(Caching, FreeingTwiceHarmsNobody) {
  FakeDevice device;
  Caching pool(device, 0);
  void* block = pool.allocate(nullptr, 100);
  pool.deallocate(nullptr, block, 100);
  pool.deallocate(nullptr, block, 100);
  void* a = pool.allocate(nullptr, 100);
  void* b = pool.allocate(nullptr, 100);
  EXPECT_NE(a, b);
  pool.deallocate(nullptr, a, 100);
  pool.deallocate(nullptr, b, 100);
}
#endif

TEST(Counting, CountsCallsBytesAndThePeak) {
  FakeDevice device;
  Counting counting(device, "test", Level::Blocks);
  void* a = counting.allocate(nullptr, 100);
  void* b = counting.allocate(nullptr, 50);
  counting.deallocate(nullptr, a, 100);
  EXPECT_EQ(counting.counts().allocations, 2);
  EXPECT_EQ(counting.counts().frees, 1);
  EXPECT_EQ(counting.counts().live, 50);
  EXPECT_EQ(counting.counts().peak, 150);
  counting.deallocate(nullptr, b, 50);
}

struct Notes : prof::Listener {
  std::vector<prof::MemoryNote> all;
  void step_begin(int64_t) override {}
  void step_end() override {}
  void phase_begin(const char*) override {}
  void phase_end() override {}
  void op_begin(prof::OpTag) override {}
  void op_end() override {}
  void memory(const prof::MemoryNote& note) override { all.push_back(note); }
  void step_joined(int64_t) override {}
  void works_for(int) override {}
  void steps_launched(int64_t, int64_t) override {}
  int64_t steps_traced_alike(int64_t) override { return 1; }
};

TEST(Counting, ReportsToTheProfilerWhatWhereAndForWhichOp) {
  FakeDevice device;
  Counting counting(device, "test", Level::Reservations);
  Notes notes;
  prof::set_listener(&notes);
  counting.set_op(7);
  void* a = counting.allocate(nullptr, 100);
  counting.deallocate(nullptr, a, 100);
  prof::set_listener(nullptr);
  ASSERT_EQ(notes.all.size(), 2u);
  EXPECT_EQ(notes.all[0].action, prof::MemoryAction::Reserve);
  EXPECT_EQ(notes.all[0].op, 7);
  EXPECT_EQ(notes.all[0].bytes, 100u);
  EXPECT_EQ(notes.all[1].action, prof::MemoryAction::Release);
  EXPECT_EQ(notes.all[0].address, notes.all[1].address);
}

TEST(Arena, GrowsOnceAndHandsOutItsOffsets) {
  FakeDevice device;
  {
    Arena arena(device);
    arena.reserve(nullptr, kMiB);
    void* before = arena.at(0);
    arena.reserve(nullptr, kMiB / 2);
    EXPECT_EQ(arena.at(0), before);
    EXPECT_EQ(device.calls, 1);
    arena.reserve(nullptr, 2 * kMiB);
    EXPECT_EQ(arena.bytes(), 2 * kMiB);
    EXPECT_EQ(device.used, 2 * kMiB);
  }
  EXPECT_EQ(device.used, 0);
}

}  // namespace
}  // namespace ws::cuda
