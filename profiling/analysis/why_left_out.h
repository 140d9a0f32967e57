// Which steps of a run its figures do not count, and why.
#pragma once
#include <string>

#include "profiling/analysis/steps_of_run.h"

namespace ws::prof {

// "; the first 2 and the last are left out": behind a number of steps. Empty if all steps count.
std::string left_out_steps(const StepSample& sample);
// "Left out: the first step (warm-up) and the last step (no next step marks the end)." Empty if all steps count.
std::string why_left_out(const StepSample& sample);

}  // namespace ws::prof
