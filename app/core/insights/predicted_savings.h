// What the advice of insights would save, by replay of the run's steps, and how far such predictions have been off. No Qt here.
#pragma once
#include <string>
#include <vector>

#include "app/core/insights/insight_rules.h"
#include "app/core/proofs/proved_predictions.h"
#include "profiling/causes/step_causes.h"

namespace ws::app {

bool any_edits(const std::vector<Insight>& insights);  // false: there is nothing to replay
// Replays the steps with the edits of each insight. `mean_step_us`: on whose scale a step after a change of choices is
// predicted; 0: the run has no choices.
void predict_savings(std::vector<Insight>& insights, const prof::StepCauses& causes, const prof::Trace& trace, double mean_step_us);

// "saves 12.3 ± 3.0 µs a step; such predictions were off by …"; empty without a prediction. `step_us`: as above.
std::string saving_text(const Insight& insight, double step_us, const ProvedPredictions& proved);

}  // namespace ws::app
