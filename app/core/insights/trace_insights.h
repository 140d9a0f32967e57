// What any trace tells of a slow program, whoever recorded it: an idle GPU and why, tiny kernels, waits, the longest
// gap, copies that nothing hides, traffic to the allocator. Each names the span that shows it. No Qt in here.
#pragma once
#include "app/core/insights/insight_rules.h"

namespace ws::app {

// The part of a trace that is judged: all of it, or the newest part of one that is long or partly out of memory.
struct TraceLook {
  const prof::Trace* trace;
  prof::TimeNs begin = 0, end = 0;
  bool whole = true;
};
TraceLook look_of(const prof::Trace& trace);

// The split of that time, as that of one long step.
RunFacts facts_of(const TraceLook& look);
std::vector<Insight> trace_insights(const TraceLook& look);  // those with a line first, each the most costly first

}  // namespace ws::app
