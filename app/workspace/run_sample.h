// The newest whole steps of a run of the window: what it is compared by.
#pragma once
#include "app/workspace/run.h"
#include "profiling/analysis/step_sample.h"

namespace ws::app {

using prof::step_window;
using prof::StepWindowNs;
using prof::work_key;
using RunSample = prof::StepSample;

inline RunSample sample_of(const Run& run) { return prof::sample_steps(run.marks(), run.trace, run.stepsPerEpoch()); }

}  // namespace ws::app
