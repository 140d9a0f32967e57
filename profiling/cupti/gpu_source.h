// CUPTI as the GPU side of a collector.
#pragma once
#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuSource cupti_gpu_source();  // empty when built without CUDA

}  // namespace ws::prof
