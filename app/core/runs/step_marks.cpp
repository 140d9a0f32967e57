#include "app/core/runs/step_marks.h"

namespace ws::app {

prof::GpuSteps steps_on_gpu(const prof::Trace& trace, const RunSpec* ours) {
  prof::GpuSteps steps;
  if (ours ? host_runs_ahead(*ours) : prof::host_ran_ahead(trace)) steps.finish(trace);
  return steps;
}

}  // namespace ws::app
