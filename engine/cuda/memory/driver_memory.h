// The two allocators of the CUDA runtime itself.
#pragma once
#include "engine/cuda/runtime/handles.h"
#include "engine/cuda/memory/resource.h"

namespace ws::cuda {

// cudaMalloc and cudaFree, each of which stops the host: the slow way, and the upstream of the pools.
class Direct final : public MemoryResource {
 public:
  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;
};

// cudaMallocAsync from a pool of its own, which keeps up to `threshold` unused bytes at a synchronisation; below 0:
// all.
class StreamOrdered final : public MemoryResource {
 public:
  explicit StreamOrdered(int64_t threshold);
  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;

  int64_t reserved() const;  // bytes that the pool holds now
  int64_t peak_reserved() const;
  int64_t growths() const { return growths_; }  // allocations for which the pool asked the device for more
  int64_t shrinks() const { return shrinks_; }
  void trim(int64_t keep) noexcept;

 private:
  int64_t attribute(cudaMemPoolAttr which) const;
  void watch();

  MemPool pool_;
  int64_t last_reserved_ = 0, growths_ = 0, shrinks_ = 0;
};

}  // namespace ws::cuda
