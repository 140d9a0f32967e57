// A run of the window as others are compared with it.
#pragma once
#include "app/core/comparison/compared_run.h"
#include "app/workspace/run.h"

namespace ws::app {

ComparedRun compared_run(const Run& run);
prof::StepSample sample_of(const Run& run);  // its newest whole steps only

}  // namespace ws::app
