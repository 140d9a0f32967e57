// Calls to the driver's allocator over the steps of a run, as counted by driver callbacks.
#pragma once
#include <vector>

#include "app/workspace/run.h"

namespace ws::app {

struct DriverPoint {
  double first;         // first step of a group of steps
  double step, wall_s;  // the end of that group
  double calls, us;     // per step of this group
};
// Allocator calls per step. A program that marks no steps gets the steps we detected. Empty if there are none.
std::vector<DriverPoint> driver_calls_over(const Run& run);
// True if only driver callbacks counted the calls of this run.
bool counted_by_driver_alone(const Run& run);

}  // namespace ws::app
