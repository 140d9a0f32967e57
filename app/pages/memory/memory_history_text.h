// The memory of a run over time, from its plan or its trace: the sizes of live blocks, and
// the fragmentation of free memory.
#pragma once
#include "app/pages/memory/memory_blocks.h"
#include "profiling/analysis/memory_account.h"

namespace ws::app {

struct FragmentationCurve {
  QString of;                               // "the plan", "caching", "cudaMalloc and similar calls"
  std::vector<prof::MemoryMoment> moments;  // in order of time
  bool by_op = false;                       // times are ops of the plan
  double x_begin = 0, x_end = 1;
  QString first, last;  // "step 10", "step 25"; empty: times
  double at_peak = 0, worst = 0;  // fragmentation, 0 to 1
  bool empty() const { return moments.empty(); }
};

FragmentationCurve plan_fragmentation(const MemoryMap& map);
// Uses the program's own allocator if it reports its blocks, otherwise the driver. A long run gives its newest part.
// `source`: this allocator only; < 0: any.
FragmentationCurve event_fragmentation(const prof::Trace& trace, int source = -1);

}  // namespace ws::app
