#include "app/core/insights/predicted_savings.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "app/core/proofs/proved_predictions.h"
#include "profiling/base/failure.h"
#include "profiling/causes/what_if.h"

namespace ws::app {
namespace {

constexpr double kMostUnexplained = 0.10;  // share of a step that the GPU idles without a recorded cause

// The host waits while the GPU works anyway: without the wait, the step takes as long.
bool is_harmless_wait(const Insight& insight) {
  const bool wait = insight.rule == "waits" || insight.rule == "waits by a line";
  return wait && insight.saves_us.known() && !(insight.saves_us.value > insight.saves_us.half_width);
}

}  // namespace

void predict_savings(std::vector<Insight>& insights, const std::function<prof::StepCauses()>& causes, const prof::Trace& trace, double mean_step_us) {
  if (std::ranges::all_of(insights, [](const Insight& insight) { return insight.edits.empty(); })) return;
  std::optional<prof::StepCauses> known;
  try {
    known = causes();
  } catch (const Failure&) {  // nothing that could be replayed is in memory
    return;
  }
  for (Insight& insight : insights) {
    if (insight.edits.empty()) continue;
    try {
      const prof::WhatIf result = prof::what_if(*known, trace, prof::parse_edits(insight.edits), 0);
      if (result.unexplained_us > kMostUnexplained * result.measured_us.value) return;  // the trace has no calls, or lost them
      insight.saves_us = result.saves_us;
      if (insight.predicted_us > 0) insight.predicted_us = mean_step_us * result.predicted_us.value / result.measured_us.value;
    } catch (const Failure&) {  // the newest steps have nothing that the edits could change
    }
  }
  std::erase_if(insights, is_harmless_wait);
}

std::string saving_text(const Insight& insight, double step_us) {
  if (insight.saves_us.known()) return saving_text(insight.saves_us);
  return insight.predicted_us > 0 ? saving_text(Interval{step_us - insight.predicted_us, 0}) : std::string();
}

std::string predictions_note(const std::vector<Insight>& insights, double step_us) {
  std::set<std::string> kinds;
  int savings = 0;
  for (const Insight& insight : insights) {
    if (saving_text(insight, step_us).empty()) continue;
    ++savings;
    kinds.insert(insight.saves_us.known() ? kind_of_edits(insight.edits) : "choices");  // a rule predicts these without a replay
  }
  if (savings == 0) return {};
  std::string quote = proved_predictions().quote(kinds);
  quote[0] = static_cast<char>(std::toupper(quote[0]));
  return (savings > 1 ? "Each saving is predicted alone, and savings may overlap. " : "The saving is predicted. ") + quote + ".";
}

}  // namespace ws::app
