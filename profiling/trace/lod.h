// Reduces a track to at most one rectangle per pixel column: the cost grows with the pixels, not with the events. Pure
// functions.
#pragma once
#include <cstdint>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

struct LodRect {
  float x0, x1;        // pixels from the left edge of the range
  Span span;           // the span itself; for a folded group the first one, or the one that reaches past the column
  uint32_t count = 1;  // spans folded into this rectangle
  float busy = 1;      // share of the rectangle's time that is covered
  Meaning meaning;     // the one with the greatest share; allocation wins ties
};

// Each rectangle belongs to the column in which it starts. Evicted blocks are drawn from their sums.
std::vector<LodRect> lod(const Track& track, TimeNs begin, TimeNs end, int pixels);

// Minimum and maximum of a counter for each pixel column that has points.
struct LodPoint {
  float x;
  double min, max, last;
};
std::vector<LodPoint> lod(const CounterTrack& counter, TimeNs begin, TimeNs end, int pixels);

// True if every span that touches the range is in memory. The functions below see only spans in memory.
bool in_memory(const Track& track, TimeNs begin, TimeNs end);
size_t spans_out_of_memory(const Track& track, TimeNs begin, TimeNs end);  // in the blocks that touch the range
size_t spans_about(const Track& track, TimeNs begin, TimeNs end);          // in memory or evicted

const Span* next_named(const Track& track, NameId name, TimeNs after);  // the first with start > after
const Span* previous_named(const Track& track, NameId name, TimeNs before);

struct RangeSum {
  NameId name;
  Meaning meaning;
  uint64_t count;
  int64_t total_ns;
};
std::vector<RangeSum> sum_by_name(const Track& track, TimeNs begin, TimeNs end);  // clipped to the range, largest first

class NameSums {
 public:
  void add(const Span& span, TimeNs begin, TimeNs end);  // counts only the part inside the range
  std::vector<RangeSum> largest_first() const;

 private:
  std::unordered_map<uint32_t, RangeSum> sums_;
};

}  // namespace ws::prof
