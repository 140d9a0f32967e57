// What stands where in memory, and for how long: from the plan (op × offset) or from what was allocated (time ×
// address).
#pragma once
#include <QString>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::app {

struct MapBlock {
  double x0 = 0, x1 = 0;    // ops, or ns
  uint64_t y0 = 0, y1 = 0;  // bytes from the top of the map
  prof::Meaning meaning = prof::Meaning::Other;
  QString name;
  uint64_t bytes = 0;
  BufferId buffer = BufferId::None;
  prof::OpTag op = prof::kNoOp;  // the writer, or who allocated
};

struct UsePoint {
  double x;
  uint64_t used, reserved;
};

struct MemoryMap {
  bool by_op = true;
  double x_begin = 0, x_end = 1;
  uint64_t height = 1;  // bytes
  std::vector<MapBlock> blocks;
  std::vector<UsePoint> use;                         // a step: holds until the next
  std::vector<std::pair<double, QString>> sections;  // phases (by op), steps or times (by time)
  int64_t steps = 0;                                 // the newest that are shown; 0: all there is, or is kept
  std::vector<uint64_t> seams;                       // places where addresses between segments are left out
  uint64_t peak = 0, reserved = 0, sum_bytes = 0;
  double peak_x = 0;
  size_t allocations = 0;  // calls in the part shown
  bool empty() const { return blocks.empty(); }
};

MemoryMap plan_map(const Plan& plan);
// The newest `steps` steps of the allocations that a trace recorded; all of them where it does not know their steps.
MemoryMap event_map(const prof::Trace& trace, int64_t steps);
// Bytes that are free below the top of what is used at `x`, as a share of that top: what holes cost.
double holes_at(const MemoryMap& map, double x);
uint64_t used_at(const MemoryMap& map, double x);

}  // namespace ws::app
