// A span with what most tests of traces need.
#pragma once
#include "profiling/trace/trace.h"

namespace ws::prof {

inline Span span_of(TimeNs start, uint64_t duration, Meaning meaning = Meaning::Matrix, uint32_t name = 0) {
  Span span;
  span.start = start;
  span.duration = duration;
  span.meaning = static_cast<uint8_t>(meaning);
  span.name = NameId{name};
  return span;
}

}  // namespace ws::prof
