// What a run of the window says to the rules, and where its timeline shows it. No widgets.
#pragma once
#include <optional>

#include "app/core/insights/insight_rules.h"
#include "app/workspace/run.h"

namespace ws::app {

bool on_gpu(const Run& run);            // it trained there, whatever this machine has
RunFacts facts_of_run(const Run& run);  // from its newest whole steps; step_us 0: nothing was traced

// The span of the newest steps that shows a meaning best: the longest one; for gaps, the one that the GPU waited for.
struct Evidence {
  size_t track = 0;
  prof::Span span;
  size_t step_track = 0;
  prof::Span step;          // in which it lies, or what to show around it
  prof::TimeNs waited = 0;  // the gap before the span
};
std::optional<Evidence> evidence_of(const Run& run, prof::Meaning meaning);
// The insight's own place, else the above.
std::optional<Evidence> evidence_of(const Run& run, const Insight& insight);

}  // namespace ws::app
