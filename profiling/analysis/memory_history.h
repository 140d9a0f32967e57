// Memory over time: what was live, what was reserved, which block stood where and for how long.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct MemoryPoint {
  TimeNs time;
  uint64_t live, reserved;
  uint32_t blocks;
};
struct MemoryBlock {
  uint64_t address, bytes;
  TimeNs begin, end;  // end: of the trace when it was never freed
  uint32_t step;      // step + 1 of its allocation
  OpTag op;
  uint8_t source;
  bool reserved;  // a segment of a pool, not a block handed out
  bool freed;
};
struct SizeBin {
  uint64_t from, to, count, bytes;
};  // from <= size < to

struct MemoryHistory {
  std::vector<MemoryPoint> points;
  std::vector<MemoryBlock> blocks;  // by begin
  uint64_t peak_live = 0, peak_reserved = 0;
  TimeNs peak_time = 0;
  uint64_t allocations = 0, frees = 0, unmatched_frees = 0;
};
// `source` < 0: all of them.
MemoryHistory memory_history(const Trace& trace, int source = -1);
using MemoryFilter = std::function<bool(const MemoryEvent&)>;
MemoryHistory memory_history(const Trace& trace, const MemoryFilter& belongs);

std::vector<SizeBin> size_histogram(const MemoryHistory& history);  // powers of two

}  // namespace ws::prof
