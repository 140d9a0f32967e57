// Returns sentences on what makes a comparison of two runs unfair.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/compared_run.h"

namespace ws::app {

std::vector<std::string> mismatches(const ComparedRun& a, const ComparedRun& b);
// True if both runs do the same work, so that their step times can be compared.
bool same_task(const RunSpec* a, const RunSpec* b);
// True if both are recordings of different programs: their figures stand side by side, and neither is better.
bool other_program(const ComparedRun& a, const ComparedRun& b);
bool same_work_a_sample(const RunSpec* a, const RunSpec* b);  // True if a sample needs the same work, with any batch

}  // namespace ws::app
