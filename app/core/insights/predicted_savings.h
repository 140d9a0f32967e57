// What the advice of insights would save, by replay of the run's steps, and how far such predictions have been off. No Qt here.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/core/insights/insight_rules.h"
#include "profiling/causes/step_causes.h"

namespace ws::app {

// Replays the steps with the edits of each insight. `causes` gives them; it is called if there is an edit, and may throw Failure
// if nothing can be replayed. `mean_step_us`: on whose scale a step after a change of choices is predicted.
void predict_savings(std::vector<Insight>& insights, const std::function<prof::StepCauses()>& causes, const prof::Trace& trace, double mean_step_us);

// "saves 12.3 ± 3.0 µs a step"; empty without a prediction. `step_us`: as above. A view of such savings says once how far
// predictions have been off: predictions_note().
std::string saving_text(const Insight& insight, double step_us);
std::string predictions_note(const std::vector<Insight>& insights, double step_us);  // empty without a prediction

}  // namespace ws::app
