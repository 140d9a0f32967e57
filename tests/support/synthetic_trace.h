// Traces that look like a small network's training, for tests and benchmarks of the window only.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::test {

enum class StepStyle { GraphArena, EagerDirect, Persistent };

// Appends `steps` steps from step `first` on, after what the trace already holds.
void add_steps(prof::Trace& trace, StepStyle style, int64_t first, int64_t steps);

// `spans` spans on one stream and as many calls, with the history held under `budget` bytes (0: all in memory).
void add_many_spans(prof::Trace& trace, size_t spans, size_t budget);

}  // namespace ws::test
