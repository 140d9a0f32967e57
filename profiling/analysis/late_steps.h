// The steps in which a rank comes late: which of them return regularly, and by how much. Knows nothing of ranks and
// collectives, only how late somebody was in each step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ws::prof {

// One rank at one collective, in µs by step: how much later it comes than the other ranks. NaN: not known.
using StepDelays = std::vector<double>;

struct LateSteps {
  double late_us = 0;  // median
  size_t count = 0;    // 0: no late steps
  int every = 0;       // in every n-th step; 0: without a pattern
};

// The usual spread of the lateness of all ranks. Rare late steps do not count. Of two ranks each causes half of the
// spread.
double usual_spread(const std::vector<StepDelays>& of_ranks);

// Mean lateness of one of two ranks that comes later than the other one as a rule, or 0. What it varies by spreads the lists of
// both, so that its spread does not tell.
double systematic_lateness(const StepDelays& late);

inline constexpr double kSigmasOfLate = 5;  // a late step is late by so many spreads

// Late by more than the usual spread and the error of the clocks: the steps that return regularly, even among larger
// delays of other steps, and the steps without a pattern; at most one of each. `numbers`: of the steps, rising.
std::vector<LateSteps> late_steps(const StepDelays& late, std::span<const int64_t> numbers, double spread,
                                  double clock_error);

}  // namespace ws::prof
