// What the advice of insights would save, by replay of the run's steps, how that relates to what the step shows now, and how far
// such predictions have been off. No Qt here.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/core/insights/insight_rules.h"
#include "app/core/proofs/proved_predictions.h"
#include "profiling/base/table.h"
#include "profiling/causes/step_causes.h"

namespace ws::app {

// Replays the steps with the edits of each insight. `causes` gives them; it is called if there is an edit, and may throw Failure
// if nothing can be replayed. `facts`: the split of the median step, on whose scale a step after a change of choices is predicted.
// The largest saving comes first, and is the headline of its insight. Findings about one part of the split become one insight,
// and so does small advice with a larger one that does it, too.
void predict_savings(std::vector<Insight>& insights, const std::function<prof::StepCauses()>& causes, const prof::Trace& trace, const RunFacts& facts);

// "a step would take 12.3 µs less (4 %)", "a step would take up to 835.0 µs less (40 %)"; empty without a prediction. `step_us`: of the facts above.
std::string saving_text(const Insight& insight, double step_us);
// How the saving relates to what the step shows: "“launch gaps” takes 95.5 µs in the split. A step saves about that.", "The host waits
// 2.58 ms there, but the GPU works for most of it: a step saves 0.61 ms." Empty without such figures.
std::string relation_text(const Insight& insight);
// How sure a saving is, in one form on each page: "± 0.16 ms · not checked yet". `kind`: of the edits, as kind_of_edits() gives it.
std::string sure_text(const Interval& saves_us, double step_us, const std::string& kind, const ProvedPredictions& proved);
// The words of a card: what was found and why, what to change beside settings, and how sure the saving is. Tooltips: `more` figures and
// how the saving relates to them, and how predictions were `checked`.
struct AdviceLines {
  std::string why, how, more, sure, checked;
};
AdviceLines advice_lines(const Insight& insight, const ProvedPredictions& proved);
std::string whole_why(const Insight& insight);  // why, how and more in one paragraph without backticks, for text and scripts
// "Allocator calls take the host 137.7 µs: 56.8 µs are their own work, and for 106.8 µs the GPU waits (“allocator calls” in the split)".
std::string calls_text(const Insight& insight);
// "Such predictions of a training were typically 3.2 %, at most 11.7 % off in 10 checks on an NVIDIA H200."; empty without a prediction.
std::string checked_text(const Insight& insight, const ProvedPredictions& proved);
// How well the step time is known, and whether savings overlap. With `checked`, also how far predictions were off, by kind. Empty
// without a prediction.
struct PredictionsNote {
  std::string text, checked;
};
PredictionsNote predictions_note(const std::vector<Insight>& insights, const ProvedPredictions& proved);

inline constexpr const char* kTooSmall = "Would change little now";  // the heading above the insights that change little, which come last

// What a person does about it, as the page What if names its edits: "use one CUDA graph"; without such edits "choose fusion pointwise". Empty
// for a finding only.
std::string action_of(const Insight& insight);
// The insights that a person can act on, in their order: the largest saving first. Without a prediction a row has no number.
std::vector<Insight> remedies(const std::vector<Insight>& insights, double step_us);
Table remedy_table(const std::vector<Insight>& remedies, double step_us, bool with_noise = true);

}  // namespace ws::app
