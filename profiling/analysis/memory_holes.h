// State of the memory at one moment: live blocks, fragmentation of the free memory, and block sizes.
#pragma once
#include <vector>

#include "profiling/analysis/memory_history.h"

namespace ws::prof {

struct MemoryMoment {
  TimeNs time = 0;
  uint64_t live = 0, reserved = 0;  // reserved: 0 if no segments are known
  uint64_t free_bytes = 0, largest_hole = 0;
  uint32_t holes = 0;
  std::vector<SizeBin> sizes;  // sizes of the live blocks, powers of two
  // 1 - largest free piece / all free bytes; 0 if nothing is free.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(largest_hole) / static_cast<double>(free_bytes);
  }
};

// Holes are counted inside the segments that a pool holds at that time. For an allocator without known segments, they
// are counted inside the addresses that its blocks ever had, without gaps larger than a driver page.
MemoryMoment memory_moment(const MemoryHistory& history, TimeNs time);
constexpr size_t kMemoryMoments = 256;  // so many are examined everywhere, so that all views find the same one the worst
// One moment after each change in the range, thinned evenly to at most `most`.
std::vector<MemoryMoment> memory_moments(const MemoryHistory& history, TimeNs begin, TimeNs end, size_t most);

}  // namespace ws::prof
