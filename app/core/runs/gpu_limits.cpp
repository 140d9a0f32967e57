#include "app/core/runs/gpu_limits.h"

#include <nlohmann/json.hpp>

#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"

namespace ws::app {

std::optional<prof::DeviceLimits> card_limits(const std::string& device, const std::string& machine) {
  const auto json = parse_json_or_null(machine);
  if (json.is_object() && json.contains("compute") && json["compute"].is_string())
    if (const auto known = prof::limits_of_card(device, json["compute"].get<std::string>())) return known;
  if (const auto known = prof::limits_of_card(device)) return known;
  const bool here = device_info().cuda && device_info().name == device;
  return here ? prof::limits_of_card(device, device_info().compute) : std::nullopt;
}

}  // namespace ws::app
