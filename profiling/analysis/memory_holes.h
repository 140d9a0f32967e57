// Moments of a memory history: what was live then, how broken up the free memory was, which sizes were in use.
#pragma once
#include <vector>

#include "profiling/analysis/memory_history.h"

namespace ws::prof {

struct MemoryMoment {
  TimeNs time = 0;
  uint64_t live = 0, reserved = 0;  // reserved: 0 where no segments are known
  uint64_t free_bytes = 0, largest_hole = 0;
  uint32_t holes = 0;
  std::vector<SizeBin> sizes;  // of the live blocks, powers of two
  // 1 - largest free piece / all free bytes; 0 when nothing is free.
  double fragmentation() const {
    return free_bytes == 0 ? 0 : 1 - static_cast<double>(largest_hole) / static_cast<double>(free_bytes);
  }
};

// Where holes count: inside the segments that a pool holds at the time; of an allocator that tells of none, inside the
// addresses that its blocks ever had, places further apart than the driver's own pages left out.
MemoryMoment memory_moment(const MemoryHistory& history, TimeNs time);
// After each change in the range, evenly thinned to so many.
std::vector<MemoryMoment> memory_moments(const MemoryHistory& history, TimeNs begin, TimeNs end, size_t most);
double fragmentation(const MemoryHistory& history, TimeNs time);

}  // namespace ws::prof
