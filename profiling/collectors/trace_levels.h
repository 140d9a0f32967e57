// Defines what each tracing level records, and describes it in sentences.
#pragma once
#include <string>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuKinds kinds_of(TraceLevel level, bool node_window);

// How many steps of each launch write stamps, for a kernel that runs many steps.
int64_t stamped_steps(TraceLevel level);

// `gpu_refused`: why there are no GPU records; empty if there are.
std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused);
// Describes graphs that cannot be recorded as the level requires; empty if there are none.
std::string describe_exception(TraceLevel level, const GpuTracer& gpu);

}  // namespace ws::prof
