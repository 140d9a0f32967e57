// Computes the time of a step when a run ends. The result is stored in its file.
#pragma once
#include "profiling/analysis/pace.h"
#include "profiling/analysis/step_finder.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// A training of ours takes equally long steps, unless something else uses the machine. Steps of other programs vary by
// themselves: they wait for data, collect garbage, save what they have.
enum class StepsOf { Training, Program };

// Uses the sampled steps. Without samples, or if only host marks were traced, it uses stretches between losses. With
// too few of these, it uses the mean of the whole run, which has no spread; 0: not known.
StepTime step_time(const StepSample& sample, const std::vector<Pace>& losses, double whole_run_us,
                   StepsOf whose = StepsOf::Training);
// Returns the step time stored with the run, or computes it. The sample also begins at steady_since().
StepTime step_time(const RunData& run, const StepSample& sample);

// Step time of a recorded program, as opening its file computes it. Where a GPU worked, it is not known if only the host's
// marks were recorded.
StepTime step_time(const FoundSteps& found, bool gpu = true);

// The first step with the final execution settings. Steps before it say nothing about the current speed.
int64_t steady_since(const std::vector<ChangeMark>& marks);

// True if step times vary so much that, in a training, something else used the machine: its interval is then the whole
// spread.
bool varies_widely(const StepTime& time);

}  // namespace ws::prof
