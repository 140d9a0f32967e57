#include "engine/cpu/step_blocks.h"

#include <algorithm>

namespace ws::cpu {
namespace {

int64_t rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

void* new_block(int64_t bytes) {
  void* data = std::aligned_alloc(256, static_cast<size_t>(std::max<int64_t>(rounded(bytes), 256)));
  if (!data)
    throw OutOfMemory("malloc of " + std::to_string(bytes) + " bytes", "ENOMEM",
                      "choose a smaller batch or narrower layers");
  return data;
}

}  // namespace

void StepBlocks::note(prof::MemoryAction action, const void* data, int64_t bytes, prof::OpTag op) const {
  if (!traced) return;
  const char* owner = kind_ == Allocator::Direct ? "malloc" : kind_ == Allocator::Arena ? "arena" : "caching";
  prof::note_memory({action, reinterpret_cast<uint64_t>(data), static_cast<uint64_t>(bytes), op, owner});
}

void StepBlocks::clear() {
  for (Block& block : blocks_)
    if (block.data && !arena_) std::free(block.data);
  for (auto& [bytes, data] : pool_) std::free(data);
  if (arena_) note(prof::MemoryAction::Release, arena_, use.reserved, prof::kNoOp);
  std::free(arena_);
  blocks_.clear();
  pool_.clear();
  arena_ = nullptr;
  use.used = use.reserved = 0;
}

namespace {

// Returns the ratio of our element size to the plan's smallest: here all elements have the same size.
int64_t scale_of(const Plan& plan, int64_t bytes_per_element) {
  int64_t smallest = bytes_per_element;
  for (const Buffer& buffer : plan.buffers) smallest = std::min(smallest, size_of(buffer.type));
  return bytes_per_element / smallest;
}

}  // namespace

void StepBlocks::reset(const Plan& plan, int64_t bytes_per_element) {
  clear();
  kind_ = plan.spec.exec.allocator;
  blocks_.resize(plan.buffers.size());
  const int64_t scale = scale_of(plan, bytes_per_element);
  for (size_t i = 0; i < blocks_.size(); ++i) blocks_[i].bytes = plan.buffers[i].bytes() * scale;
  if (plan.arena_bytes == 0) return;
  arena_ = new_block(plan.arena_bytes * scale);
  use.used = use.reserved = plan.arena_bytes * scale;
  use.peak = std::max(use.peak, use.used);
  use.peak_reserved = std::max(use.peak_reserved, use.reserved);
  note(prof::MemoryAction::Reserve, arena_, use.reserved, prof::kNoOp);
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (plan.buffers[i].offset >= 0) blocks_[i].data = static_cast<char*>(arena_) + plan.buffers[i].offset * scale;
}

void* StepBlocks::take(int64_t bytes) {
  const auto found = kind_ == Allocator::Caching ? pool_.lower_bound(rounded(bytes)) : pool_.end();
  if (found != pool_.end() && found->first <= 2 * rounded(bytes)) {
    void* data = found->second;
    pool_.erase(found);
    return data;
  }
  ++calls.device_allocate;
  use.reserved += rounded(bytes);
  use.peak_reserved = std::max(use.peak_reserved, use.reserved);
  return new_block(bytes);
}

void StepBlocks::allocate(BufferId id, prof::OpTag op) {
  Block& block = blocks_[index(id)];
  block.data = take(block.bytes);
  ++calls.allocate;
  use.used += block.bytes;
  use.peak = std::max(use.peak, use.used);
  note(prof::MemoryAction::Allocate, block.data, block.bytes, op);
}

void StepBlocks::free(BufferId id, prof::OpTag op) {
  Block& block = blocks_[index(id)];
  note(prof::MemoryAction::Free, block.data, block.bytes, op);
  ++calls.free;
  use.used -= block.bytes;
  if (kind_ == Allocator::Caching) {
    pool_.emplace(rounded(block.bytes), block.data);
  } else {
    ++calls.device_free;
    use.reserved -= rounded(block.bytes);
    std::free(block.data);
  }
  block.data = nullptr;
}

}  // namespace ws::cpu
