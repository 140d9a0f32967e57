// What a run gives to the insight rules, and where its timeline shows an insight. No widgets.
#pragma once
#include <optional>

#include "app/core/insights/run_insights.h"
#include "app/workspace/run.h"

namespace ws::app {

bool on_gpu(const Run& run);            // it trained on a GPU, even if this machine has none
JudgedRun judged_run(const Run& run);   // the run must live longer

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
