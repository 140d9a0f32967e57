// When each buffer of a plan is in use.
#pragma once
#include <vector>

#include "engine/plan/plan.h"

namespace ws {

// First and last op (index into plan.ops) at which a Temp or Batch buffer is in use.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const Plan& plan);
int64_t live_lower_bound(const Plan& plan);  // the largest sum of bytes alive at one op

}  // namespace ws
