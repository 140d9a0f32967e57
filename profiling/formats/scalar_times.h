// Where on a trace's clock a loss belongs. A loss is timed by the seconds spent training, which begin after the trace
// does and leave pauses and evaluations out; its step tells where it was.
#pragma once
#include <vector>

#include "profiling/trace/run_data.h"

namespace ws::prof {

class ScalarTimes {
 public:
  explicit ScalarTimes(const RunData& run);
  // At the end of its step; of a step that was not traced, as long after one that was as training took.
  TimeNs at(int64_t step, double wall_s) const;

 private:
  struct Known {
    int64_t step;
    TimeNs end;
    double wall_s;
  };
  std::vector<Known> known_;  // by step
};

}  // namespace ws::prof
