#include "profiling/trace/span_order.h"

#include <algorithm>

namespace ws::prof {

void order_by_start(std::vector<Span>& spans) { std::ranges::stable_sort(spans, {}, &Span::start); }

}  // namespace ws::prof
