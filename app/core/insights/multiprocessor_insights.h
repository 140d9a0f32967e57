// Advice from the inside of kernels: a multiprocessor that ends a part late in most steps. No Qt here.
#pragma once
#include "app/core/insights/insight_rules.h"
#include "profiling/analysis/multiprocessors.h"

namespace ws::app {

// The most expensive one. Its place is not set: see bar_of().
std::optional<Insight> late_multiprocessor(const prof::MultiprocessorReport& report);

}  // namespace ws::app
