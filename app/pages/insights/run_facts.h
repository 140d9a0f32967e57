// The facts of a run for the insight rules, and where its timeline shows an insight. No widgets.
#pragma once
#include <optional>

#include "app/core/insights/insight_rules.h"
#include "app/workspace/run.h"

namespace ws::app {

bool on_gpu(const Run& run);            // it trained on a GPU, even if this machine has none
RunFacts facts_of_run(const Run& run);  // from its newest complete steps; step_us is 0 if nothing was traced

// The span in the newest steps that shows a meaning best: the longest one. For gaps, it is
// the span that the GPU waited for.
struct Evidence {
  size_t track = 0;
  prof::Span span;
  size_t step_track = 0;
  prof::Span step;          // contains the span, or what to show around it
  prof::TimeNs waited = 0;  // the gap before the span
};
std::optional<Evidence> evidence_of(const Run& run, prof::Meaning meaning);
// Uses the insight's own place if it has one, otherwise the function above.
std::optional<Evidence> evidence_of(const Run& run, const Insight& insight);

}  // namespace ws::app
