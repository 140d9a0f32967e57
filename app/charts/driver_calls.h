// Calls to the driver's allocator over the steps of a run, as its callbacks counted them.
#pragma once
#include <vector>

#include "app/workspace/run.h"

namespace ws::app {

struct DriverPoint {
  double step, wall_s;  // the end of a stretch of steps
  double calls, us;     // of one step in it
};
// Of a program that marks no steps: the calls that were recorded, by the steps that were found. Empty without either.
std::vector<DriverPoint> driver_calls_over(const Run& run);
// Whether nobody but the driver counts this run's calls.
bool counted_by_driver_alone(const Run& run);

}  // namespace ws::app
