// For tests that need a GPU.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/devices/devices.h"
#include "engine/executor/executor.h"

#define NEEDS_GPU() \
  if (!ws::device_info().cuda) GTEST_SKIP() << ws::device_info().why_not

namespace ws::test {

// Under a tool that makes each launch some hundred times slower (tests/gpu/sanitize says so).
inline bool slow_gpu() {
  static const bool slow = std::getenv("WARPSIGHT_SLOW_GPU") != nullptr;
  return slow;
}

// All combinations of choices are run, on a slow GPU each seventh: no choice has a multiple of seven values, so
// each value of each choice still has its turn.
class Combinations {
 public:
  bool leave_out() { return slow_gpu() && count_++ % 7 != 0; }

 private:
  int count_ = 0;
};

}  // namespace ws::test
