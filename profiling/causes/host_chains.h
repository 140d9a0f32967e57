// The work of a host as chains: what follows each other in a thread, or in threads that take turns.
#pragma once
#include <vector>

#include "profiling/causes/cause_graph.h"

namespace ws::prof {

// Adds the calls of each thread that begin in the window; without a GPU its ops or the program's ranges. Rows of chains are
// numbered from `first_row` on. A wait for the data loader is a node of its own.
void add_host_chains(std::vector<CauseNode>& nodes, const Trace& trace, TimeRange window, uint32_t first_row);

// A node without causes, of a span on a track.
CauseNode node_of(const Span& span, size_t track, int rank);

}  // namespace ws::prof
