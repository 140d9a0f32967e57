// Places losses on the clock of a trace. The time of a loss counts only training: it begins later than the trace and
// excludes pauses and evaluations. So its step determines the position.
#pragma once
#include <vector>

#include "profiling/trace/run_data.h"

namespace ws::prof {

class ScalarTimes {
 public:
  explicit ScalarTimes(const RunData& run);
  // The end of the step. If the step was not traced: the end of a traced step plus the training time between the two.
  TimeNs at(int64_t step, double wall_s) const;

 private:
  struct Known {
    int64_t step;
    TimeNs end;
    double wall_s;
  };
  std::vector<Known> known_;  // sorted by step
};

}  // namespace ws::prof
