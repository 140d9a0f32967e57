// The memory of a run over time: which sizes were live, how broken up what was free was. From its plan or its trace.
#pragma once
#include "app/pages/memory/memory_blocks.h"
#include "profiling/analysis/memory_account.h"

namespace ws::app {

struct MemoryStory {
  QString of;                               // "the plan", "caching", "cudaMalloc and similar calls"
  std::vector<prof::MemoryMoment> moments;  // in order of time
  bool by_op = false;                       // their times are ops of the plan
  double x_begin = 0, x_end = 1;
  double at_peak = 0, worst = 0;  // fragmentation, 0 to 1
  bool empty() const { return moments.empty(); }
};

MemoryStory plan_story(const MemoryMap& map);
// Of the program's own allocator where it tells of its blocks, else of the driver. Of a long run the newest part.
MemoryStory event_story(const prof::Trace& trace);

}  // namespace ws::app
