// Finds the steps of a run in time.
#pragma once
#include "engine/plan/run_spec.h"
#include "profiling/analysis/gpu_steps.h"

namespace ws::app {

// Returns the steps as the GPU ran them if the host ran ahead, otherwise none. `ours`: the choices if the run is ours.
prof::GpuSteps steps_on_gpu(const prof::Trace& trace, const RunSpec* ours);

}  // namespace ws::app
