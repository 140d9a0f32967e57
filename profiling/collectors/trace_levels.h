// What each level of tracing records, and how that is said.
#pragma once
#include <string>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuKinds kinds_of(TraceLevel level, bool node_window);

// How many steps of each launch of a kernel that runs many of them say what happens inside.
int64_t stamped_steps(TraceLevel level);

// `gpu_refused`: why there are no GPU records; empty where there are.
std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused);
// The same once some graphs cannot be recorded as the level wants; empty as long as they can.
std::string describe_exception(TraceLevel level, const GpuTracer& gpu);

}  // namespace ws::prof
