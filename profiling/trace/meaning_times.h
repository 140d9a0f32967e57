// Adds up time by meaning.
#pragma once
#include <algorithm>

#include "profiling/trace/trace.h"

namespace ws::prof {

inline void add_time(MeaningTimes& times, const Span& span, int64_t sign = 1) {
  times[std::min<size_t>(span.meaning, kMeanings - 1)] += sign * static_cast<int64_t>(span.duration);
}

}  // namespace ws::prof
