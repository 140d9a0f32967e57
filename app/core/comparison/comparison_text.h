// The words of a comparison: the same in the window, on the command line and in reports.
#pragma once
#include <string>

#include "app/core/comparison/comparison.h"

namespace ws::app {

const char* verdict_text(Verdict verdict);            // "better", "within noise"; empty: neutral
std::string percent_change_text(double percent);              // "−42.1 %"; beyond ten times "12.3 times"
// "B is 21.7 % slower per step", "B is as fast as A: within noise".
std::string speed_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
// "B reaches 97.1 % test accuracy, A 93.4 %"; empty: neither accuracy nor loss is known of both.
std::string result_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
// What was asked first: the result where data, model or training differ, the time where execution differs.
std::string answer_text(const Comparison& comparison, const std::string& a = "A", const std::string& b = "B");
std::string to_text(const Comparison& comparison);
std::string to_json(const Comparison& comparison);

}  // namespace ws::app
