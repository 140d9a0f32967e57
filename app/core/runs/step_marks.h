// Where the steps of a run stand in time.
#pragma once
#include "engine/plan/run_spec.h"
#include "profiling/analysis/gpu_steps.h"

namespace ws::app {

// The steps as the GPU ran them if the host ran ahead of it, else nothing. `ours`: the choices of a run of ours.
prof::GpuSteps steps_on_gpu(const prof::Trace& trace, const RunSpec* ours);

}  // namespace ws::app
