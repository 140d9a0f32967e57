// Times training steps on an executor alone: without tests, without recording, without a window.
#pragma once
#include <string>

#include "engine/executor/executor.h"

namespace ws::app {

struct StepTimes {
  double us = 0;  // mean of the stretch that was timed
  int64_t steps = 0, batch = 0;
  std::string device;
};

// Warms up, then times steps for about `seconds`. Throws Failure if the choices cannot run here.
StepTimes time_steps(const RunSpec& spec, const data::Dataset& data, double seconds = 0.3);

}  // namespace ws::app
