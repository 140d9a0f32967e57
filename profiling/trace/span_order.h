// Spans in the order of their start.
#pragma once
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

void order_by_start(std::vector<Span>& spans);  // equal starts keep their order

}  // namespace ws::prof
