// The figures of a run of the window, for comparisons and predictions.
#pragma once
#include "app/core/comparison/compared_run.h"
#include "app/workspace/run.h"
#include "profiling/causes/step_causes.h"

namespace ws::app {

ComparedRun compared_run(const Run& run);
std::string program_of(const Run& run);  // of a recorded program; empty if unknown
prof::StepSample sample_of(const Run& run);  // its newest complete steps; the median is its step time
// For predictions; of at most so many spans, so that the window does not wait. Throws Failure if there is nothing to replay.
prof::StepCauses causes_of(const Run& run, size_t most_spans);

}  // namespace ws::app
