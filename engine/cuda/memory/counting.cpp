#include "engine/cuda/memory/counting.h"

#include <algorithm>
#include <cassert>

namespace ws::cuda {

void* Counting::allocate(StreamRef stream, int64_t bytes) {
  void* ptr = inner_.allocate(stream, bytes);
  ++counts_.allocations;
  counts_.live += bytes;
  counts_.peak = std::max(counts_.peak, counts_.live);
  note(true, ptr, bytes);
#ifndef NDEBUG
  alive_.insert(ptr);
#endif
  return ptr;
}

void Counting::deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept {
#ifndef NDEBUG
  assert(alive_.erase(ptr) == 1 && "freed twice, or not from this allocator");
#endif
  inner_.deallocate(stream, ptr, bytes);
  ++counts_.frees;
  counts_.live -= bytes;
  note(false, ptr, bytes);
}

void Counting::note(bool allocated, void* ptr, int64_t bytes) const {
  using prof::MemoryAction;
  const MemoryAction action = level_ == Level::Blocks ? (allocated ? MemoryAction::Allocate : MemoryAction::Free)
                                                      : (allocated ? MemoryAction::Reserve : MemoryAction::Release);
  prof::note_memory({action, reinterpret_cast<uint64_t>(ptr), static_cast<uint64_t>(bytes), op_, owner_});
}

}  // namespace ws::cuda
