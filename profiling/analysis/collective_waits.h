// The two parts of a collective on one rank: it waits until the last rank arrives, then it transfers.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/collectives.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

// When the ranks come to a collective.
struct Arrivals {
  TimeNs first = 0, last = 0;
  size_t last_rank = 0;  // index into Collectives::ranks
  size_t count = 0;      // ranks that take part
};
Arrivals arrivals(const Collectives& found, const MatchedCalls& matched, size_t match);

struct CollectiveParts {
  TimeNs wait = 0, transfer = 0;
};
CollectiveParts parts_of(const CollectiveCall& call, const Arrivals& arrivals);
// The wait of a span of a trace; nullopt as CollectiveWaits::of().
std::optional<CollectiveParts> parts_of_collective(const Trace& trace, const Track& track, const Span& span, TimeNs clock_error);
std::string parts_text(const CollectiveParts& parts);  // "waits 3.00 ms, transfers 158.0 µs"

// The parts of the collectives that touch a range of time. Uses the spans in memory. With more spans than `most` there are none.
class CollectiveWaits {
 public:
  CollectiveWaits() = default;
  static constexpr size_t kMostInView = 60'000;  // 10 ms to match on one core; more are narrower than a pixel
  CollectiveWaits(const Trace& trace, TimeRange range, TimeNs clock_error, size_t most = kMostInView);
  bool empty() const { return calls_.empty(); }
  // nullopt: the span is no collective, or the calls of other ranks are not in memory.
  std::optional<CollectiveParts> of(int rank, const Span& span) const;

 private:
  struct Known {
    TimeNs begin, end;
    CollectiveParts parts;
  };
  std::map<int, std::vector<Known>> calls_;  // by rank, sorted by begin
};

}  // namespace ws::prof
