// Where the time of a step comes from: computed when a run ends, and kept in its file.
#pragma once
#include "profiling/analysis/pace.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// From the sampled steps. A run without them, or of which only the host's marks were traced: from stretches between its
// losses. A run with too few of these: the mean of the whole run, which has no spread; 0: not known.
StepTime step_time(const StepSample& sample, const std::vector<Pace>& losses, double whole_run_us);
// The one that is kept with the run, else computed. The sample begins at steady_since() too.
StepTime step_time(const RunData& run, const StepSample& sample);

// The first step that ran with the last choices of execution. Steps before it say nothing of the run as it is now.
int64_t steady_since(const std::vector<ChangeMark>& marks);

// True if the steps of a run differ so much that something else used the machine. Its interval then is the spread.
bool machine_busy(const StepTime& time);

}  // namespace ws::prof
