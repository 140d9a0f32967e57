// Compares what each op achieved with the limits of the card.
#pragma once
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct Ceilings {
  double flops_per_s = 0, bytes_per_s = 0;  // measured on the card
};
struct RooflinePoint {
  OpTag op = kNoOp;        // the most frequent one of `ops`
  std::vector<OpTag> ops;  // the same work in other batch sizes belongs to the same point
  std::string name, layer, phase;
  Meaning meaning{};
  uint64_t executions = 0;
  int64_t time_ns = 0;          // summed over all executions
  double flops = 0, bytes = 0;  // summed over all executions
  double intensity = 0;         // FLOP per byte
  double flops_per_s = 0, bytes_per_s = 0;
  bool memory_bound = false;  // left of the ridge point
  double share = 0;           // share of the ceiling that applies
  double dram_share = -1;     // share of the peak memory bandwidth, from hardware counters; below 0: too few samples
};
// Ops with known FLOPs or bytes that ran in the range, longest total time first.
std::vector<RooflinePoint> roofline(const Trace& trace, TimeNs begin, TimeNs end, const Ceilings& ceilings);

// One op that takes `ns`, for an op without spans of its own.
RooflinePoint roofline_point(const OpInfo& op, OpTag tag, double ns, const Ceilings& ceilings);

}  // namespace ws::prof
