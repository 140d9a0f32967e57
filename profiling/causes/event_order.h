// The order in which a replay computes the events of a cause graph: causes before effects. Where clocks disagree, causes can
// form a circle; it is broken where its cause is known least.
#pragma once
#include <cstddef>

#include "profiling/causes/cause_graph.h"

namespace ws::prof {

// Fills graph.order. An edge that is cut points to its own event and has no lag. Returns the number of circles that were broken.
size_t order_events(CauseGraph& graph);

}  // namespace ws::prof
