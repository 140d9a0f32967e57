// Limits of a run's GPU, for occupancy.
#pragma once
#include "app/workspace/run.h"

#include "app/core/runs/machine.h"

namespace ws::app {

inline std::optional<prof::DeviceLimits> card_limits(const Run& run) {
  const std::string device = run.device.isEmpty() && run.summary ? run.summary->device : run.device.toStdString();
  return card_limits(device, run.reader ? run.reader->summary().machine : std::string());
}

}  // namespace ws::app
