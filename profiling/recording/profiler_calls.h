// Hears a program's calls of cudaProfilerStart and cudaProfilerStop at levels that do not attach CUPTI. Each of them calls the
// driver.
#pragma once

namespace ws::prof {

// Libraries that are loaded now call a wrapper from now on: through their own table of addresses, or through a pointer that
// they asked the driver for, as CUDA's runtime does before it starts the driver.
void hear_profiler_calls();

}  // namespace ws::prof
