// Allocated bytes and bytes reserved on the device over time, computed from the allocations that a trace recorded.
#pragma once
#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// What the curves show. Reserved: an arena hands out no blocks. Used: all that was reserved was used.
enum class MemoryLines { Used, Reserved, Both };

class MemoryCurves {
 public:
  // Takes in at most `most` new events. Returns true if there are no more.
  bool update(const Trace& trace, size_t most = std::numeric_limits<size_t>::max());
  const CounterTrack& used() const { return used_; }
  const CounterTrack& reserved() const { return reserved_; }
  bool empty() const { return used_.points.empty(); }
  MemoryLines lines() const { return apart_ ? MemoryLines::Both : handed_out_ ? MemoryLines::Used : MemoryLines::Reserved; }

 private:
  void take(const MemoryEvent& event);
  void put(CounterTrack& track, TimeNs time, double value);

  CounterTrack used_{"memory used", "B", CounterKind::MemoryUsed, {}}, reserved_{"memory reserved", "B", CounterKind::MemoryReserved, {}};
  // One allocator of the run. A run may change its allocator; each has its own memory.
  struct Allocator {
    std::unordered_map<uint64_t, uint64_t> blocks;
    bool pooled = false, hands_out = false;
    uint64_t live = 0, held = 0;
    // An arena allocates nothing in a step. Without a pool, each block comes directly from the device.
    uint64_t used() const { return hands_out ? live : held; }
    uint64_t reserved() const { return pooled ? std::max(held, live) : live; }
  };
  std::vector<Allocator> allocators_;  // indexed by source
  bool own_ = false, apart_ = false, handed_out_ = false;
  size_t taken_ = 0;
};

}  // namespace ws::prof
