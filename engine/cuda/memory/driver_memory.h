// The two allocators of the CUDA runtime.
#pragma once
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/memory/resource.h"

namespace ws::cuda {

// cudaMalloc and cudaFree, which both block the host: the slow allocator, and the upstream of the pools.
class Direct final : public MemoryResource {
 public:
  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;
};

// cudaMallocAsync from a pool of its own. At a synchronisation the pool keeps up to `threshold` unused bytes; negative:
// all.
class StreamOrdered final : public MemoryResource {
 public:
  explicit StreamOrdered(int64_t threshold);
  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;

  int64_t reserved() const;  // bytes that the pool holds now
  int64_t peak_reserved() const;
  int64_t growths() const { return growths_; }  // allocations that made the pool request more from the device
  int64_t shrinks() const { return shrinks_; }
  void trim(int64_t keep) noexcept;

 private:
  int64_t attribute(cudaMemPoolAttr which) const;
  void watch();

  MemPool pool_;
  int64_t last_reserved_ = 0, growths_ = 0, shrinks_ = 0;
};

}  // namespace ws::cuda
