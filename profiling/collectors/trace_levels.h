// What each level of tracing records, and how that is said.
#pragma once
#include <string>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuKinds kinds_of(TraceLevel level, bool node_window);

// `gpu_refused`: why there are no GPU records; empty where there are.
std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused);
// The same once some graphs cannot be recorded as the level wants; empty as long as they can.
std::string describe_exception(TraceLevel level, const GpuTracer& gpu);

}  // namespace ws::prof
