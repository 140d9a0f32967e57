// What each op achieved against what the card can do.
#pragma once
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct Ceilings {
  double flops_per_s = 0, bytes_per_s = 0;  // as measured on the card
};
struct RooflinePoint {
  OpTag op = kNoOp;        // the one of `ops` that ran most often
  std::vector<OpTag> ops;  // the same work in batches of other sizes is one point
  std::string name, layer, phase;
  Meaning meaning{};
  uint64_t executions = 0;
  int64_t time_ns = 0;          // of all executions
  double flops = 0, bytes = 0;  // of all executions
  double intensity = 0;         // FLOP per byte
  double flops_per_s = 0, bytes_per_s = 0;
  bool memory_bound = false;  // left of the ridge
  double share = 0;           // of the ceiling that applies
  double dram_share = -1;     // of the memory's peak, as hardware counters saw it; below 0: too few samples
};
// Ops that have FLOPs or bytes and that ran in the range; the one that took longest first.
std::vector<RooflinePoint> roofline(const Trace& trace, TimeNs begin, TimeNs end, const Ceilings& ceilings);

}  // namespace ws::prof
