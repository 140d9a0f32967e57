// Sums the driver's allocator calls of a run, as counted by callbacks: exact sums by op and over the steps, in bounded
// memory.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "profiling/base/table.h"
#include "profiling/trace/trace_batch.h"

namespace ws::prof {

struct CallSums {
  uint64_t allocations = 0, frees = 0, bytes = 0;  // device memory and pinned host memory
  int64_t ns = 0;                                  // host time spent in the calls
  uint64_t calls() const { return allocations + frees; }
  void add(const CallSums& more);
};
CallSums sums_of(const StepAllocations& counted);

class AllocatorHistory {
 public:
  struct OpCalls {
    CallSums all, in_steps;
  };

  void take(const StepAllocations& counted);
  void take(const std::vector<StepAllocations>& counted) {
    for (const StepAllocations& one : counted) take(one);
  }
  bool empty() const { return all_.calls() == 0; }
  const CallSums& all() const { return all_; }
  const CallSums& in_steps() const { return in_steps_; }  // the rest: setup, evaluations, the end
  const std::map<OpTag, OpCalls>& by_op() const { return by_op_; }
  // Entry i sums steps_each() steps, beginning with step i * steps_each(). Steps after the last entry made no calls.
  const std::vector<CallSums>& by_step() const { return by_step_; }
  int64_t steps_each() const { return steps_each_; }

 private:
  void widen();

  CallSums all_, in_steps_;
  std::map<OpTag, OpCalls> by_op_;
  std::vector<CallSums> by_step_;
  int64_t steps_each_ = 1;
};

// By op, the most expensive first. Means are over the `steps` steps of the run.
Table allocator_rows(const Trace& trace, const AllocatorHistory& calls, int64_t steps);
// Two tables: by op, and over the `steps` steps of the run. Empty if there were no calls.
std::string allocator_text(const Trace& trace, const AllocatorHistory& calls, int64_t steps);

}  // namespace ws::prof
