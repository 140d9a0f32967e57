// Describes in sentences what each tracing level records.
#pragma once
#include <string>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

// `gpu_refused`: why there are no GPU records; empty if there are.
std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused);
// Describes graphs that cannot be recorded as the level requires; empty if there are none.
std::string describe_exception(TraceLevel level, const GpuTracer& gpu);

}  // namespace ws::prof
