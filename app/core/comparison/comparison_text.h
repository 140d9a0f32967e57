// The text of a comparison. The window, the command line and reports use the same words.
#pragma once
#include <string>

#include "app/core/comparison/comparison.h"
#include "profiling/base/table.h"

namespace ws::app {

inline constexpr const char* kWithinNoise = "within noise";
// "better", "within noise", "equal"; "not judged" if neither value is better; why there is no interval: "too few steps".
const char* verdict_text(const MeasureDelta& delta);
std::string choice_text(const std::string& value);  // "none" for a choice that is empty, such as no network
std::string no_interval_text(const MeasureDelta& delta);  // "no interval: too few steps"
bool is_quiet(Verdict verdict);             // no difference: equal or within noise
// True if the noise is so large that even a large difference would not be seen: nobody is "as fast".
bool noise_hides_all(const MeasureValue& a, const MeasureValue& b);
std::string ratio_text(double ratio);  // "2.30×" and "145×": three significant digits
// How the candidate's step time differs, in the words of all views: "21.7 % more time", "2.30× faster", each with `than`
// after it (" per step"), and " (no interval: too few steps)" where it is. "within noise"; empty if a step time is unknown.
std::string pace_text(const MeasureValue& baseline, const MeasureValue& candidate, const std::string& than);
// The words of the gate: "slower by 2.30 %", "no difference beyond 2.0 %", "cannot tell".
std::string headline_of(GateVerdict verdict, double change, double limit);
// "slower by 2.30 % (+1.90 % to +2.70 %)", "cannot tell: the noise is not known"
std::string judged_text(const StepVerdict& judged);
std::string percent_change_text(double percent);              // "−42.1 %"; "12.3 times" beyond ten times
// "B takes 21.7 % more time per step", "B is as fast as A: within noise", "Too much noise to compare A and B".
std::string speed_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
// "B reaches 97.1 % test accuracy, A 93.4 %"; empty if accuracy and loss are unknown for one of the runs.
std::string result_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
// The main answer first: the result if data, model or training differ, the time if execution differs.
std::string answer_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
// "kernel", "op", "line"; "layer" where both runs are of a network that is known, "module" for recorded programs.
std::string group_word(const Comparison& comparison, prof::GroupBy by);
Table delta_rows(const std::vector<prof::KernelDelta>& kernels);
std::string to_text(const Comparison& comparison);
std::string to_text(const Comparison& comparison, prof::GroupBy by);  // only the table by op, module or line
std::string to_json(const Comparison& comparison);

}  // namespace ws::app
