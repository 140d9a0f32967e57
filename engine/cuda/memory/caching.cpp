#include "engine/cuda/memory/caching.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

constexpr int64_t kSmallBlock = 1 << 20;    // blocks up to this size are small
constexpr int64_t kSmallSegment = 2 << 20;  // small blocks share segments of this size
constexpr int64_t kLargeUnit = 2 << 20;     // a large segment is a multiple of this

std::string mib(int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Caching::Caching(MemoryResource& upstream, int64_t cap_bytes) : upstream_(upstream), cap_(cap_bytes) {}

Caching::~Caching() {
  for (auto& segment : segments_) {
    upstream_.deallocate(nullptr, segment.ptr, segment.bytes);
    for (Block* block = segment.first; block;) delete std::exchange(block, block->after);
  }
}

// Eight size classes per power of two: at most an eighth is wasted, and similar requests can reuse a block.
int64_t Caching::rounded(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  int64_t unit = kAlignment;
  while (unit * 16 <= bytes) unit *= 2;
  return round_up(bytes, unit);
}

int64_t Caching::segment_bytes(int64_t block) {
  return block <= kSmallBlock ? kSmallSegment : round_up(block, kLargeUnit);
}

void* Caching::allocate(StreamRef stream, int64_t bytes) {
  const int64_t need = rounded(bytes);
  Block* block = best_fit(need);
  if (!block) block = grow(stream, need);
  split(block, need);
  free_list(*block->segment).erase(block);
  block->free = false;
  block->segment->last_used = ++clock_;
  used_ += block->bytes;
  handed_out_.emplace(block->ptr, block);
  return block->ptr;
}

void Caching::deallocate(StreamRef, void* ptr, int64_t) noexcept {
  const auto found = handed_out_.find(ptr);
  assert(found != handed_out_.end() && "freed twice, or not from this pool");
  if (found == handed_out_.end()) return;
  Block* block = found->second;
  handed_out_.erase(found);
  used_ -= block->bytes;
  block->segment->last_used = ++clock_;
  block->free = true;
  block = merged(block);
  free_list(*block->segment).insert(block);
}

Caching::Block* Caching::best_fit(int64_t bytes) {
  FreeList& list = free_[bytes <= kSmallBlock ? 0 : 1];
  const auto found = list.lower_bound(bytes);
  return found == list.end() ? nullptr : *found;
}

// Adds a segment. If the cap is exceeded or the device is full, it first frees unused segments.
Caching::Block* Caching::grow(StreamRef stream, int64_t bytes) {
  int64_t size = segment_bytes(bytes);
  void* ptr = from_upstream(stream, size, bytes);
  segments_.push_front({static_cast<std::byte*>(ptr), size, bytes <= kSmallBlock, false, clock_, nullptr, {}});
  Segment& segment = segments_.front();
  segment.self = segments_.begin();
  reserved_ += size;
  auto* block = new Block{segment.ptr, size, &segment};
  segment.first = block;
  free_list(segment).insert(block);
  return block;
}

void* Caching::from_upstream(StreamRef stream, int64_t& bytes, int64_t least) {
  if (cap_ > 0 && reserved_ + bytes > cap_) trim(stream, std::max<int64_t>(cap_ - bytes, 0));
  if (cap_ > 0 && reserved_ + bytes > cap_) bytes = least;  // near the cap a segment is as small as possible
  if (cap_ > 0 && reserved_ + bytes > cap_)
    throw OutOfMemory("The caching pool", "its cap of " + mib(cap_),
                      mib(reserved_) + " are in use and " + mib(bytes) +
                          " more are needed; raise cache_cap_mib or choose a smaller batch");
  try {
    return upstream_.allocate(stream, bytes);
  } catch (const OutOfMemory&) {
    trim(stream, 0);
  }
  return upstream_.allocate(stream, bytes);
}

void Caching::split(Block* block, int64_t bytes) {
  const int64_t rest = block->bytes - bytes;
  const int64_t least = block->segment->small ? kAlignment : kSmallBlock;  // a smaller rest would never be used again
  if (rest < least) return;
  FreeList& list = free_list(*block->segment);
  auto tail = std::make_unique<Block>(Block{block->ptr + bytes, rest, block->segment, block, block->after});
  list.erase(block);
  block->bytes = bytes;
  if (tail->after) tail->after->before = tail.get();
  block->after = tail.get();
  list.insert(block);
  list.insert(tail.release());
}

Caching::Block* Caching::merged(Block* block) noexcept {
  if (block->after && block->after->free) absorb_next(block);
  if (!block->before || !block->before->free) return block;
  block = block->before;
  free_list(*block->segment).erase(block);
  absorb_next(block);
  return block;
}

void Caching::absorb_next(Block* block) noexcept {
  Block* next = block->after;
  free_list(*next->segment).erase(next);
  block->bytes += next->bytes;
  block->after = next->after;
  if (next->after) next->after->before = block;
  delete next;
}

Caching::Segment* Caching::oldest_free_segment() {
  Segment* oldest = nullptr;
  for (auto& segment : segments_) {
    const bool kept = segment.pinned || segment.last_used > recorded_from_;
    const bool free = !kept && segment.first->free && segment.first->bytes == segment.bytes;
    if (free && (!oldest || segment.last_used < oldest->last_used)) oldest = &segment;
  }
  return oldest;
}

void Caching::release(StreamRef stream, Segment& segment) noexcept {
  free_list(segment).erase(segment.first);
  delete segment.first;
  reserved_ -= segment.bytes;
  upstream_.deallocate(stream, segment.ptr, segment.bytes);
  segments_.erase(segment.self);
}

void Caching::trim(StreamRef stream, int64_t keep) noexcept {
  while (reserved_ > keep) {
    Segment* oldest = oldest_free_segment();
    if (!oldest) return;
    release(stream, *oldest);
  }
}

void Caching::pin(bool pinned) {
  for (auto& segment : segments_) segment.pinned = pinned;
}

void Caching::recording(bool on) { recorded_from_ = on ? clock_ : std::numeric_limits<uint64_t>::max(); }

CachingStats Caching::stats() const {
  CachingStats stats{reserved_, used_, 0, static_cast<int64_t>(segments_.size()), 0};
  for (const FreeList& list : free_) {
    stats.free_blocks += static_cast<int64_t>(list.size());
    if (!list.empty()) stats.largest_free = std::max(stats.largest_free, (*list.rbegin())->bytes);
  }
  return stats;
}

}  // namespace ws::cuda
