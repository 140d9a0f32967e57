// Bytes handed out and bytes taken from the device over time, from the allocations that a trace recorded.
#pragma once
#include <limits>
#include <unordered_map>

#include "profiling/trace/trace.h"

namespace ws::prof {

class MemoryCurves {
 public:
  // Takes in what is new, at most so many events; true when there is no more.
  bool update(const Trace& trace, size_t most = std::numeric_limits<size_t>::max());
  const CounterTrack& used() const { return used_; }
  const CounterTrack& reserved() const { return reserved_; }
  bool empty() const { return used_.points.empty(); }

 private:
  void take(const MemoryEvent& event);
  void put(CounterTrack& track, TimeNs time, double value);

  CounterTrack used_{"memory used", "B", {}}, reserved_{"memory reserved", "B", {}};
  std::unordered_map<uint64_t, uint64_t> blocks_;
  bool pooled_ = false, blocks_seen_ = false, own_ = false;
  size_t taken_ = 0;
  uint64_t live_ = 0, held_ = 0;
};

}  // namespace ws::prof
