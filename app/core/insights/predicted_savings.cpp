#include "app/core/insights/predicted_savings.h"

#include <algorithm>

#include "profiling/base/failure.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

constexpr double kMostUnexplained = 0.10;  // share of a step that the GPU idles without a recorded cause

}  // namespace

bool any_edits(const std::vector<Insight>& insights) {
  return std::ranges::any_of(insights, [](const Insight& insight) { return !insight.edits.empty(); });
}

void predict_savings(std::vector<Insight>& insights, const prof::StepCauses& causes, const prof::Trace& trace, double mean_step_us) {
  for (Insight& insight : insights) {
    if (insight.edits.empty()) continue;
    try {
      const prof::WhatIf result = prof::what_if(causes, trace, prof::parse_edits(insight.edits), 0);
      if (result.unexplained_us > kMostUnexplained * result.measured_us.value) return;  // the trace has no calls, or lost them
      insight.saves_us = {result.saved_us(), result.predicted_us.half_width};
      if (insight.predicted_us > 0) insight.predicted_us = mean_step_us * result.predicted_us.value / result.measured_us.value;
    } catch (const Failure&) {  // the newest steps have nothing that the edits could change
    }
  }
}

std::string saving_text(const Insight& insight, double step_us, const ProvedPredictions& proved) {
  if (insight.saves_us.known()) return saving_text(insight.saves_us) + "; " + proved.quote(kind_of_edits(insight.edits));
  if (insight.predicted_us <= 0) return {};
  std::string kind;
  for (const auto& [key, value] : insight.change) kind += key + " → " + value + " ";
  return saving_text(Interval{step_us - insight.predicted_us, 0}) + "; " + proved.quote(kind);
}

}  // namespace ws::app
