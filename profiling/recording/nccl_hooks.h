// Level collectives: every call of NCCL that a library makes through its own table of addresses, or through a pointer that it
// got from dlsym(), goes through a wrapper, which has NcclTimer time it. NCCL's own ranges say what a call does (NcclCalls).
#pragma once
#include <string_view>

#include "profiling/collectors/gpu_tracer.h"

namespace ws::prof {

GpuSource nccl_source();  // instead of CUPTI
// Catches programs that look NCCL's functions up by dlsym() from now on.
void watch_nccl();

// A range of NCCL begins on this thread. `moves`: it is a call that moves data. Redirects the calls of libraries that were
// loaded since the last time, and notes a call that no wrapper sees. Does nothing at other levels.
void nccl_range_begins(std::string_view function, bool moves);

}  // namespace ws::prof
