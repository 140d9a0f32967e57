// The time that ranges cover together, asked for any part of it. A range counts once where several overlap, and a question
// takes the same time however many ranges there are.
#pragma once
#include <cstdint>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

class CoveredTime {
 public:
  explicit CoveredTime(std::vector<TimeRange> ranges = {});
  int64_t within(TimeRange part) const;  // 0 if `part` ends before it begins

 private:
  int64_t until(TimeNs time) const;

  std::vector<TimeRange> ranges_;
  std::vector<int64_t> before_;  // covered before each range
};

}  // namespace ws::prof
