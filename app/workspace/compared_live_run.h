// The figures of a run of the window, for a comparison.
#pragma once
#include "app/core/comparison/compared_run.h"
#include "app/workspace/run.h"

namespace ws::app {

ComparedRun compared_run(const Run& run);
prof::StepSample sample_of(const Run& run);  // only its newest complete steps

}  // namespace ws::app
