// Memory of the CPU interpreter's step-local buffers: malloc for each, a pool of our own, or one planned block.
#pragma once
#include <cstdlib>
#include <map>
#include <vector>

#include "engine/executor/executor.h"
#include "profiling/annotate/annotate.h"

namespace ws::cpu {

class StepBlocks {
 public:
  StepBlocks() = default;
  StepBlocks(const StepBlocks&) = delete;
  StepBlocks& operator=(const StepBlocks&) = delete;
  ~StepBlocks() { clear(); }

  // Drops all blocks and prepares for a new plan. Element sizes differ from the plan's (a half is stored as a float).
  // Every offset and size is scaled by the same factor, so disjoint buffers stay disjoint.
  void reset(const Plan& plan, int64_t bytes_per_element);
  void allocate(BufferId id, prof::OpTag op);
  void free(BufferId id, prof::OpTag op);
  void* at(BufferId id) const { return blocks_[index(id)].data; }

  MemoryUse use;
  AllocatorCalls calls;
  bool traced = true;  // report to the trace; false for evaluations, whose memory belongs to no step

 private:
  struct Block {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  void clear();
  void* take(int64_t bytes);
  void note(prof::MemoryAction action, const void* data, int64_t bytes, prof::OpTag op) const;

  Allocator kind_ = Allocator::Arena;
  std::vector<Block> blocks_;  // by buffer
  std::multimap<int64_t, void*> pool_;
  void* arena_ = nullptr;
};

}  // namespace ws::cpu
