// How many ranks share the batches of a run, and how exact their common clock is.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::app {

class Run;

int rank_count(const Run& run);  // from its trace, else from its choices; 1: it has no ranks

int memory_rank(const prof::Trace& trace);  // whose allocations it keeps: of the lowest rank; -1: it has no ranks

prof::TimeNs clock_error(const Run& run);  // of its ranks; 0: not known

}  // namespace ws::app
