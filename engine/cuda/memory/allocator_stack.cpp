#include "engine/cuda/memory/allocator_stack.h"

#include <algorithm>

namespace ws::cuda {
namespace {

int64_t from_mib(double mib) { return static_cast<int64_t>(mib * (1 << 20)); }

const char* literal(Allocator kind) { return to_string(kind).data(); }  // the names are literals

int64_t graph_memory(cudaGraphMemAttributeType which) {
  int device = 0;
  uint64_t bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetGraphMemAttribute(device, which, &bytes) != cudaSuccess)
    cudaGetLastError();
  return static_cast<int64_t>(bytes);
}

MemoryResource& blocks_from(MemoryResource* pool, MemoryResource* caching, MemoryResource& reservations) {
  if (pool) return *pool;
  return caching ? *caching : reservations;
}

}  // namespace

AllocatorStack::AllocatorStack(Allocator kind, const ExecSpec& exec)
    : kind_(kind),
      reservations_(driver_, literal(kind), Level::Reservations),
      pool_(kind == Allocator::StreamOrdered
                ? std::make_unique<StreamOrdered>(exec.pool_threshold_mib < 0 ? -1 : from_mib(exec.pool_threshold_mib))
                : nullptr),
      caching_(kind == Allocator::Caching ? std::make_unique<Caching>(reservations_, from_mib(exec.cache_cap_mib))
                                          : nullptr),
      arena_(reservations_),
      blocks_(blocks_from(pool_.get(), caching_.get(), reservations_), literal(kind), Level::Blocks) {}

// Frees what graphs allocated from the driver's pool. The driver would keep that memory after the graphs are destroyed.
AllocatorStack::~AllocatorStack() {
  int device = 0;
  if (!pool_) return;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGraphMemTrim(device) != cudaSuccess) cudaGetLastError();
}

void AllocatorStack::graph_launched() {
  if (!pool_) return;
  const int64_t now = graph_memory(cudaGraphMemAttrReservedMemCurrent);
  if (now <= graph_reserved_) return;
  ++graph_growths_;
  graph_reserved_ = now;
}

void* AllocatorStack::allocate(cudaStream_t stream, int64_t bytes, prof::OpTag op) {
  blocks_.set_op(op);
  return blocks_.allocate(stream, std::max<int64_t>(bytes, 1));
}

void AllocatorStack::deallocate(cudaStream_t stream, void* ptr, int64_t bytes, prof::OpTag op) noexcept {
  blocks_.set_op(op);
  blocks_.deallocate(stream, ptr, std::max<int64_t>(bytes, 1));
}

bool AllocatorStack::reserve_arena(cudaStream_t stream, int64_t bytes) {
  const bool moves = bytes > arena_.bytes();
  if (moves) arena_used_ = 0;
  arena_.reserve(stream, bytes);
  arena_used_ = bytes;
  return moves;
}

void AllocatorStack::add_to(MemoryUse& use) const {
  const MemoryCounts &blocks = blocks_.counts(), &reserved = reservations_.counts();
  use.used += blocks.live + arena_used_;
  use.peak += std::max(blocks.peak, arena_.bytes());
  if (pool_) {
    use.reserved += pool_->reserved() + graph_memory(cudaGraphMemAttrReservedMemCurrent);
    use.peak_reserved += pool_->peak_reserved() + graph_memory(cudaGraphMemAttrReservedMemHigh);
  } else {
    use.reserved += reserved.live;
    use.peak_reserved += reserved.peak;
  }
}

void AllocatorStack::add_to(AllocatorCalls& calls) const {
  calls.allocate += blocks_.counts().allocations;
  calls.free += blocks_.counts().frees;
  calls.device_allocate += pool_ ? pool_->growths() + graph_growths_ : reservations_.counts().allocations;
  calls.device_free += pool_ ? pool_->shrinks() : reservations_.counts().frees;
}

}  // namespace ws::cuda
