// Samples hardware counters with CUPTI's PM sampling.
#pragma once
#include <memory>

#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

std::unique_ptr<HardwareCounters> make_hardware_counters();

}  // namespace ws::prof
