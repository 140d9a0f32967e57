// A pool that keeps freed memory: size classes, best fit, split and merge. It frees the least recently used segments
// first.
//
// Segments come from the upstream; blocks tile a segment. Small blocks share 2 MiB segments. Larger blocks get segments
// of their own size class, so small blocks do not fragment a large free block.
#pragma once
#include <cstddef>
#include <limits>
#include <list>
#include <set>
#include <unordered_map>

#include "engine/cuda/memory/resource.h"

namespace ws::cuda {

struct CachingStats {
  int64_t reserved = 0;  // bytes in segments
  int64_t used = 0;      // bytes in blocks handed out, rounded by the pool
  int64_t largest_free = 0;
  int64_t segments = 0, free_blocks = 0;
  // 0: the free memory is one block; near 1: it consists of small fragments.
  double fragmentation() const {
    const int64_t free = reserved - used;
    return free > 0 ? 1.0 - static_cast<double>(largest_free) / static_cast<double>(free) : 0.0;
  }
};

class Caching final : public MemoryResource {
 public:
  Caching(MemoryResource& upstream, int64_t cap_bytes);  // cap 0: no limit
  ~Caching() override;

  void* allocate(StreamRef stream, int64_t bytes) override;
  void deallocate(StreamRef stream, void* ptr, int64_t bytes) noexcept override;

  // Frees segments without used blocks, least recently used first, until at most `keep` bytes are reserved.
  void trim(StreamRef stream, int64_t keep) noexcept;
  // While pinned, the current segments stay, because a captured graph holds addresses.
  void pin(bool pinned);
  // While a graph is captured, memory handed out since its beginning stays, even if it is free again.
  void recording(bool on);
  CachingStats stats() const;

  static int64_t rounded(int64_t bytes);        // bytes that a request of `bytes` occupies
  static int64_t segment_bytes(int64_t block);  // bytes to request from the upstream for a block

 private:
  struct Segment;
  struct Block {
    std::byte* ptr = nullptr;
    int64_t bytes = 0;
    Segment* segment = nullptr;
    Block *before = nullptr, *after = nullptr;  // neighbours in the segment
    bool free = true;
  };
  struct Segment {
    std::byte* ptr = nullptr;
    int64_t bytes = 0;
    bool small = false, pinned = false;
    uint64_t last_used = 0;
    Block* first = nullptr;
    std::list<Segment>::iterator self;
  };
  struct BySize {
    using is_transparent = void;
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->ptr < b->ptr;
    }
    bool operator()(const Block* a, int64_t bytes) const { return a->bytes < bytes; }
    bool operator()(int64_t bytes, const Block* b) const { return bytes < b->bytes; }
  };
  using FreeList = std::set<Block*, BySize>;

  FreeList& free_list(const Segment& segment) { return free_[segment.small ? 0 : 1]; }
  Block* best_fit(int64_t bytes);
  Block* grow(StreamRef stream, int64_t bytes);
  void* from_upstream(StreamRef stream, int64_t& bytes, int64_t least);
  void split(Block* block, int64_t bytes);
  Block* merged(Block* block) noexcept;
  void absorb_next(Block* block) noexcept;
  void release(StreamRef stream, Segment& segment) noexcept;
  Segment* oldest_free_segment();

  MemoryResource& upstream_;
  int64_t cap_;
  std::list<Segment> segments_;
  FreeList free_[2];  // for small and for large segments
  std::unordered_map<void*, Block*> handed_out_;
  uint64_t clock_ = 0;
  uint64_t recorded_from_ = std::numeric_limits<uint64_t>::max();  // segments used later belong to a capture
  int64_t reserved_ = 0, used_ = 0;
};

}  // namespace ws::cuda
