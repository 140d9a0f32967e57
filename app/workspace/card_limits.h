// Limits of a run's GPU, for occupancy.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>

#include "app/workspace/run.h"
#include "engine/devices/devices.h"
#include "profiling/analysis/occupancy.h"
#include "profiling/base/json_input.h"

namespace ws::app {

// For a GPU that is not known by name, uses what this machine reports about its own.
inline std::optional<prof::DeviceLimits> card_limits(const std::string& device) {
  if (const auto known = prof::limits_of_card(device)) return known;
  const bool here = device_info().cuda && device_info().name == device;
  return here ? prof::limits_of_card(device, device_info().compute) : std::nullopt;
}

// Also uses what the recording machine reported about its GPU.
inline std::optional<prof::DeviceLimits> card_limits(const Run& run) {
  const std::string device = run.device.isEmpty() && run.summary ? run.summary->device : run.device.toStdString();
  if (run.reader) {
    const auto machine = parse_json_or_null(run.reader->summary().machine);
    if (machine.is_object() && machine.contains("compute") && machine["compute"].is_string())
      if (const auto known = prof::limits_of_card(device, machine["compute"].get<std::string>())) return known;
  }
  return card_limits(device);
}

}  // namespace ws::app
