// The arena as an allocator: what will be asked for is known, the plan's offsets are handed out.
#pragma once
#include "engine/cuda/memory/arena.h"
#include "engine/passes/lifetimes.h"
#include "engine/passes/passes.h"
#include "tests/support/fake_device.h"

namespace ws::test {

// What was asked of an allocator, in order. Which block it is: its number among the allocations.
struct AskedFor {
  bool allocate;
  size_t block;
  int64_t bytes;
};

class Recording final : public cuda::MemoryResource {
 public:
  void* allocate(cuda::StreamRef stream, int64_t bytes) override {
    void* ptr = device_.allocate(stream, bytes);
    known_[ptr] = blocks_;
    history.push_back({true, blocks_++, bytes});
    return ptr;
  }
  void deallocate(cuda::StreamRef stream, void* ptr, int64_t bytes) noexcept override {
    history.push_back({false, known_.at(ptr), bytes});
    device_.deallocate(stream, ptr, bytes);
  }

  std::vector<AskedFor> history;

 private:
  FakeDevice device_;
  std::map<void*, size_t> known_;
  size_t blocks_ = 0;
};

// Each moment of a history is an op; a block lives from the op that asks for it to the one that frees it.
inline Plan plan_of(const std::vector<AskedFor>& history) {
  Plan plan;
  for (const AskedFor& asked : history) {
    Op op{OpKind::Activate};
    if (asked.allocate) {
      plan.buffers.push_back({"b" + std::to_string(asked.block), Role::Temp, DType::F32, 1, (asked.bytes + 3) / 4});
      op.out = {static_cast<BufferId>(asked.block)};
    } else {
      op.in = {static_cast<BufferId>(asked.block)};
    }
    plan.ops.push_back(op);
  }
  return place_memory(std::move(plan), Allocator::Arena);
}

// Answers the same history once more from one block of `upstream`.
class PlannedArena final : public cuda::MemoryResource {
 public:
  PlannedArena(cuda::MemoryResource& upstream, cuda::StreamRef stream, const std::vector<AskedFor>& history)
      : plan(plan_of(history)), history_(history), arena_(upstream) {
    arena_.reserve(stream, plan.arena_bytes);
  }

  void* allocate(cuda::StreamRef, int64_t bytes) override {
    const AskedFor& asked = history_.at(at_++);
    EXPECT_TRUE(asked.allocate);
    EXPECT_EQ(asked.bytes, bytes);
    return arena_.at(plan.buffers[asked.block].offset);
  }
  void deallocate(cuda::StreamRef, void* ptr, int64_t) noexcept override {
    const AskedFor& asked = history_[at_++];
    EXPECT_FALSE(asked.allocate);
    EXPECT_EQ(arena_.at(plan.buffers[asked.block].offset), ptr);
  }
  int64_t reserved() const { return arena_.bytes(); }
  bool done() const { return at_ == history_.size(); }

  const Plan plan;

 private:
  const std::vector<AskedFor> history_;
  size_t at_ = 0;
  cuda::Arena arena_;
};

// What means something for an arena: nobody frees, trims or is refused within a step, because nobody asks.
inline MemoryUnderTest planned(MemoryUnderTest t) {
  t.too_much = 0;
  t.actions = 100;
  return t;
}

inline std::vector<AskedFor> history_of_the_suite() {
  Recording recording;
  expect_conformance(planned(on_host(recording)));
  return recording.history;
}

// Bytes of the block that no plan needs: holes between what is alive.
inline double fragmentation(const Plan& plan) {
  return 1 - static_cast<double>(live_lower_bound(plan)) / static_cast<double>(plan.arena_bytes);
}

}  // namespace ws::test
