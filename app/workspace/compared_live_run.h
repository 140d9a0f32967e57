// The figures of a run of the window, for comparisons and predictions.
#pragma once
#include "app/core/comparison/compared_run.h"
#include "app/workspace/run.h"
#include "profiling/causes/step_causes.h"

namespace ws::app {

ComparedRun compared_run(const Run& run);
std::string program_of(const Run& run);  // of a recorded program; empty if unknown
prof::StepSample sample_of(const Run& run);  // its newest complete steps; the median is its step time
prof::StepCausesFacts causes_facts(const Run& run);
// For predictions. The newest spans only, so that the window waits less than 0.1 s. Throws Failure if there is nothing to replay.
prof::StepCauses causes_of(const Run& run);

}  // namespace ws::app
