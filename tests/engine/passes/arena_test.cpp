// The arena with the plan's offsets, through the suite that every allocator passes.
#include <gtest/gtest.h>

#include "tests/support/planned_arena.h"

namespace ws {
namespace {

TEST(Arena, ConformsWithTheOffsetsOfThePlan) {
  test::FakeDevice device;
  test::PlannedArena arena(device, nullptr, test::history_of_the_suite());
  test::MemoryUnderTest t = test::planned(test::on_host(arena));
  t.reserved = [&] { return arena.reserved(); };
  t.keeps = true;
  test::expect_conformance(t);
  EXPECT_TRUE(arena.done());
  EXPECT_EQ(device.calls, 1) << "one block, asked for once";
  EXPECT_EQ(device.used, arena.plan.arena_bytes);
  EXPECT_LE(test::fragmentation(arena.plan), 0.05);
}

TEST(Arena, ThatFindsNoMemoryIsEmptyAndUsable) {
  test::FakeDevice device(1 << 20);
  cuda::Arena arena(device);
  arena.reserve(nullptr, 1 << 19);
  EXPECT_THROW(arena.reserve(nullptr, 1 << 21), OutOfMemory);
  EXPECT_EQ(arena.bytes(), 0);
  EXPECT_EQ(device.used, 0);
  arena.reserve(nullptr, 1 << 20);
  EXPECT_EQ(arena.bytes(), 1 << 20);
}

}  // namespace
}  // namespace ws
