// Finds when each buffer of a plan is in use, so that buffers can share memory.
#pragma once
#include <vector>

#include "engine/plan/plan.h"

namespace ws {

// First and last op (index into plan.ops) that uses a Temp or Batch buffer.
struct Lifetime {
  int first = -1, last = -1;
};
std::vector<Lifetime> lifetimes(const Plan& plan);
int64_t live_lower_bound(const Plan& plan);  // largest sum of bytes in use at one op

}  // namespace ws
