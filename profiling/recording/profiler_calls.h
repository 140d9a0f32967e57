// Records a program's calls of cudaProfilerStart and cudaProfilerStop at levels that do not attach CUPTI. Each of them calls the
// driver.
#pragma once

namespace ws::prof {

// Libraries that are loaded now call a wrapper from now on: through their own table of addresses, or through a pointer that
// they asked the driver for, as CUDA's runtime does before it starts the driver. `driver_starts`: it must not be called now.
void watch_profiler_calls(bool driver_starts);

}  // namespace ws::prof
