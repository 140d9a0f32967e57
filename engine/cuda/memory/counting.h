// Wraps a memory resource: counts calls and bytes, and reports them to an active profiler.
#pragma once
#include <unordered_set>

#include "engine/cuda/memory/resource.h"
#include "profiling/annotate/annotate.h"

namespace ws::cuda {

struct MemoryCounts {
  int64_t allocations = 0, frees = 0;
  int64_t live = 0, peak = 0;  // bytes
};

enum class Level : uint8_t { Blocks, Reservations };  // memory for the plan, or memory taken from the device

class Counting final : public MemoryResource {
 public:
  Counting(MemoryResource& inner, const char* owner, Level level) : inner_(inner), owner_(owner), level_(level) {}

  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;

  const MemoryCounts& counts() const { return counts_; }
  void set_op(prof::OpTag op) { op_ = op; }  // the op that makes the next calls

 private:
  void note(bool allocated, void* ptr, int64_t bytes) const;

  MemoryResource& inner_;
  const char* owner_;
  Level level_;
  prof::OpTag op_ = prof::kNoOp;
  MemoryCounts counts_;
  std::unordered_set<void*> alive_;  // debug builds only: detects double frees
};

}  // namespace ws::cuda
