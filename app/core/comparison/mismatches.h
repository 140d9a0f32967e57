// What makes a comparison of two runs unfair, in sentences.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/compared_run.h"

namespace ws::app {

std::vector<std::string> mismatches(const ComparedRun& a, const ComparedRun& b);
// True if both do the same work, so that the times of their steps can be compared.
bool same_task(const RunSpec* a, const RunSpec* b);
bool same_work_a_sample(const RunSpec* a, const RunSpec* b);  // whatever the batch

}  // namespace ws::app
