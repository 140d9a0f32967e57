// Which runs need their steps from the GPU.
#pragma once
#include "engine/run_spec.h"
#include "profiling/analysis/gpu_steps.h"

namespace ws::app {

using prof::arrived_until;
using prof::GpuSteps;

// Then the host's marks say nothing of the GPU's time.
inline bool host_runs_ahead(const RunSpec& spec) {
  return spec.exec.launch != Launch::Eager || spec.exec.sync == SyncPolicy::OnRead;
}

}  // namespace ws::app
