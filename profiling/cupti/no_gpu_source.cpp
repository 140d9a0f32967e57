// Stands in where CUDA is not built in.
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuTracer* gpu_tracer() { return nullptr; }
std::string gpu_tracer_library() { return ""; }
std::unique_ptr<HardwareCounters> make_hardware_counters() { return nullptr; }

}  // namespace ws::prof
