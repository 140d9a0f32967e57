// Advice from the trace of any program: an idle GPU and why, tiny kernels, waits, the longest gap, copies that do not
// overlap with kernels, allocator calls. Each names the span that shows it. No Qt here.
#pragma once
#include "app/core/insights/insight_rules.h"

namespace ws::app {

// The part of a trace that is judged. Usually this is all of it. A long or partly loaded trace gives its newest part.
struct TraceLook {
  const prof::Trace* trace;
  prof::TimeNs begin = 0, end = 0;
  bool steps = false;  // the steps only, without what is before and after
  std::vector<prof::TimeRange> pauses = {};  // between the steps; no mean step counts them, and no share of an insight
};
TraceLook look_of(const prof::Trace& trace);
// From the first step to the last, or all if there are no steps: the start of a program and its warm-up are not judged.
TraceLook judged_part(const TraceLook& look);

// The split of that time, as if it were one long step.
RunFacts facts_of(const TraceLook& look);
std::vector<Insight> trace_insights(const TraceLook& look);  // with source line first, then most expensive

}  // namespace ws::app
