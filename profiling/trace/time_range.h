// A half-open stretch of time.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::prof {

struct TimeRange {
  TimeNs begin = 0, end = 0;
  TimeNs length() const { return end - begin; }
  bool contains(TimeNs t) const { return t >= begin && t < end; }
  bool operator==(const TimeRange&) const = default;
};

}  // namespace ws::prof
