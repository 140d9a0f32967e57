// The allocator that the user chose, as a stack: driver → pool → counts. A step only allocates and deallocates.
#pragma once
#include <memory>

#include "engine/cuda/memory/arena.h"
#include "engine/cuda/memory/caching.h"
#include "engine/cuda/memory/counting.h"
#include "engine/cuda/memory/driver_memory.h"
#include "engine/executor/executor.h"

namespace ws::cuda {

class AllocatorStack {
 public:
  AllocatorStack(Allocator kind, const ExecSpec& exec);
  ~AllocatorStack();
  AllocatorStack(const AllocatorStack&) = delete;
  AllocatorStack& operator=(const AllocatorStack&) = delete;

  Allocator kind() const { return kind_; }
  void* allocate(cudaStream_t stream, int64_t bytes, prof::OpTag op);
  void deallocate(cudaStream_t stream, void* ptr, int64_t bytes, prof::OpTag op) noexcept;

  // Arena: returns true if the block moved, which invalidates older addresses. They are also invalid if it throws.
  bool reserve_arena(cudaStream_t stream, int64_t bytes);
  void* in_arena(int64_t offset) const { return arena_.at(offset); }

  // While pinned, nothing returns to the device, because a captured graph holds addresses.
  void pin(bool pinned) {
    if (caching_) caching_->pin(pinned);
  }
  // While a graph is captured, memory that the capture already used does not return to the device either.
  void recording(bool on) {
    if (caching_) caching_->recording(on);
  }

  // Call after the first launch of a graph: counts the memory that its allocations took from the device. None of our
  // own calls shows that memory.
  void graph_launched();

  void add_to(MemoryUse& use) const;
  void add_to(AllocatorCalls& calls) const;

 private:
  Allocator kind_;
  Direct driver_;
  Counting reservations_;
  std::unique_ptr<StreamOrdered> pool_;
  std::unique_ptr<Caching> caching_;
  Arena arena_;
  Counting blocks_;
  int64_t arena_used_ = 0;
  int64_t graph_reserved_ = 0, graph_growths_ = 0;
};

}  // namespace ws::cuda
