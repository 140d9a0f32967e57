// Compares the multiprocessors that work inside the same kernel: how long each part takes on them, and which one ends a
// part later than the others.
#pragma once
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

// A part of a kernel: an op of the plan, a wait, or a range that a program named. Times are those of a step, in µs.
struct InnerPhase {
  std::string name;
  Meaning meaning = Meaning::Other;
  size_t multiprocessors = 0;              // that have this part
  double least = 0, median = 0, most = 0;  // over the multiprocessors, each with its mean
  std::string slowest;                     // "multiprocessor 17"
};

struct LateMultiprocessor {
  std::string name;  // "multiprocessor 17"
  std::string phase;
  double late_us = 0;  // median over the steps in which it is late: it ends so much after the median
  double share = 0;    // of the steps in which it is late
  double cost_us = 0;  // mean of a step: it ends so much after the last of the others
};

struct MultiprocessorReport {
  size_t multiprocessors = 0;
  size_t steps = 0;                      // compared: the newest ones. Of a kernel without steps inside, its launches
  double step_us = 0;                    // median, from the first begin to the last end
  std::vector<InnerPhase> phases;        // in the order of their begin
  std::vector<LateMultiprocessor> late;  // the most expensive first
  bool any() const { return multiprocessors > 0; }
};

// Empty if no kernel of the trace has lanes inside.
MultiprocessorReport multiprocessor_report(const Trace& trace);

// "multiprocessor 17 ends forward 0.40 µs later than the median in 90 % of the steps: costs 0.31 µs a step"
std::string late_text(const LateMultiprocessor& late);
std::string to_text(const MultiprocessorReport& report);  // for `stats --by multiprocessor`
std::string to_json(const MultiprocessorReport& report);

}  // namespace ws::prof
