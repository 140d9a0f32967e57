#include "engine/cuda/memory/driver_memory.h"

#include <limits>

#include "profiling/annotate/annotate.h"

namespace ws::cuda {

void* Direct::allocate(StreamRef, int64_t bytes) {
  void* ptr = nullptr;
  CUDA_CHECK(cudaMalloc(&ptr, static_cast<size_t>(bytes)));
  return ptr;
}

void Direct::deallocate(StreamRef, void* ptr, int64_t) noexcept {
  if (cudaFree(ptr) != cudaSuccess) cudaGetLastError();  // after a lost context the block no longer exists
}

StreamOrdered::StreamOrdered(int64_t threshold) {
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  CUDA_CHECK(cudaMemPoolCreate(pool_.out(), &props));
  uint64_t keep = threshold < 0 ? std::numeric_limits<uint64_t>::max() : static_cast<uint64_t>(threshold);
  CUDA_CHECK(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
}

void* StreamOrdered::allocate(StreamRef stream, int64_t bytes) {
  void* ptr = nullptr;
  CUDA_CHECK(cudaMallocFromPoolAsync(&ptr, static_cast<size_t>(bytes), pool_, stream));
  watch();
  return ptr;
}

void StreamOrdered::deallocate(StreamRef stream, void* ptr, int64_t) noexcept {
  if (cudaFreeAsync(ptr, stream) != cudaSuccess) cudaGetLastError();
}

// The pool requests memory from the device without our call. A change of its size shows it.
void StreamOrdered::watch() {
  const int64_t now = reserved();
  if (now == last_reserved_) return;
  const bool grew = now > last_reserved_;
  ++(grew ? growths_ : shrinks_);
  const uint64_t bytes = static_cast<uint64_t>(grew ? now - last_reserved_ : last_reserved_ - now);
  prof::note_memory({grew ? prof::MemoryAction::Reserve : prof::MemoryAction::Release,
                     reinterpret_cast<uint64_t>(pool_.get()), bytes, prof::kNoOp, "stream-ordered"});
  last_reserved_ = now;
}

int64_t StreamOrdered::attribute(cudaMemPoolAttr which) const {
  uint64_t value = 0;
  if (cudaMemPoolGetAttribute(pool_, which, &value) != cudaSuccess) cudaGetLastError();
  return static_cast<int64_t>(value);
}

int64_t StreamOrdered::reserved() const { return attribute(cudaMemPoolAttrReservedMemCurrent); }
int64_t StreamOrdered::peak_reserved() const { return attribute(cudaMemPoolAttrReservedMemHigh); }

void StreamOrdered::trim(int64_t keep) noexcept {
  if (cudaMemPoolTrimTo(pool_, static_cast<size_t>(keep)) != cudaSuccess) cudaGetLastError();
}

}  // namespace ws::cuda
