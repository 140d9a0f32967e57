// Memory over time: live bytes, reserved bytes, and the address and lifetime of each block.
#pragma once
#include <array>
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
  TimeNs begin, end;  // end: end of the trace if it was never freed
  uint32_t step;      // step + 1 of the allocation
  OpTag op;
  uint8_t source;
  bool reserved;  // a segment of a pool, not an allocated block
  bool freed;
};
struct SizeBin {
  uint64_t from, to, count, bytes;
};  // from <= size < to

// How many blocks of which size there are, by powers of two.
class SizeBins {
 public:
  void add(uint64_t bytes);
  void remove(uint64_t bytes);
  std::vector<SizeBin> bins() const;  // those with a block

 private:
  struct Sum {
    uint64_t count = 0, bytes = 0;
  };
  std::array<Sum, 64> sums_;  // by power
};

struct MemoryHistory {
  std::vector<MemoryPoint> points;
  std::vector<MemoryBlock> blocks;  // by begin
  uint64_t peak_live = 0, peak_reserved = 0;
  TimeNs peak_time = 0;
  uint64_t allocations = 0, frees = 0, unmatched_frees = 0;
};
// `source` < 0: all sources.
MemoryHistory memory_history(const Trace& trace, int source = -1);
using MemoryFilter = std::function<bool(const MemoryEvent&)>;
MemoryHistory memory_history(const Trace& trace, const MemoryFilter& belongs);

// Blocks that were given out: by the program's allocator, and by the driver. A program without an allocator of its own takes all
// blocks from the driver. Of several ranks, a trace has the memory of one.
struct AllocationCounts {
  uint64_t program = 0, program_bytes = 0, driver = 0, driver_bytes = 0;
};
AllocationCounts count_allocations(const Trace& trace, TimeNs begin = -kAlways, TimeNs end = kAlways);
// The most bytes that were live in an allocator of the program, or of the driver if it has none; 0: not known.
uint64_t peak_live(const Trace& trace);

// Blocks that were live when the most bytes were.
void each_live_at_peak(const MemoryHistory& history, const std::function<void(const MemoryBlock&)>& found);
std::vector<SizeBin> size_histogram(const MemoryHistory& history);  // powers of two

}  // namespace ws::prof
