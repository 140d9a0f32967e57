// A trace of a few spans, each named by the test that needs it.
#pragma once
#include <numeric>
#include <string>

#include "profiling/analysis/step_breakdown.h"

namespace ws::prof {

struct Made {
  Trace trace;
  void add(TrackKind track, SpanKind kind, Meaning meaning, TimeNs start, TimeNs end, const char* name = "x",
           uint32_t correlation = 0, uint8_t flags = 0) {
    Span span;
    span.start = start;
    span.duration = static_cast<uint64_t>(end - start);
    span.kind = static_cast<uint8_t>(kind);
    span.meaning = static_cast<uint8_t>(meaning);
    span.name = trace.intern(name);
    span.correlation = correlation;
    span.flags = flags;
    trace.append(trace.track(track, "row " + std::to_string(static_cast<int>(track)),
                             track == TrackKind::Stream ? "GPU 0" : "CPU"),
                 span);
  }
};

inline int64_t part(const Breakdown& b, Meaning meaning) { return b.times[static_cast<size_t>(meaning)]; }
inline int64_t sum(const MeaningTimes& times) { return std::accumulate(times.begin(), times.end(), int64_t{0}); }

}  // namespace ws::prof
