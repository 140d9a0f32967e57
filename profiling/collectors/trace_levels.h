// Describes in sentences what each tracing level records.
#pragma once
#include <string>

#include "profiling/collectors/collector.h"
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

// `gpu_refused`: why there are no GPU records; empty if there are.
std::string describe(const CollectorOptions& options, TraceLevel level, const std::string& gpu_refused);
// What was sampled so far. `refused`: why not, of the tracer.
struct XrayResult {
  size_t windows = 0;
  uint64_t samples = 0, dropped = 0, hidden = 0;
  uint32_t period = 0;  // of the newest window
};
std::string describe(const XrayWindow& window, const XrayResult& result, const std::string& refused);
// Describes graphs that cannot be recorded as the level requires; empty if there are none.
std::string describe_exception(TraceLevel level, const GpuTracer& gpu);

}  // namespace ws::prof
