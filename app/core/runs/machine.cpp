#include "app/core/runs/machine.h"

#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/devices/devices.h"
#include "profiling/base/json_input.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

std::string value_of(const char* path, std::string_view key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(line.find(separator) + 1);
    std::erase(value, '"');
    return value.substr(std::min(value.size(), value.find_first_not_of(" \t")));
  }
  return "";
}

}  // namespace

nlohmann::json machine_json() {
  const DeviceInfo& device = device_info();
  utsname kernel{};
  uname(&kernel);
  const bool gpu = device.cuda;
  return {{"cpu", value_of("/proc/cpuinfo", "model name", ':')},
          {"cpu_threads", device.cpu_threads},
          {"gpu", gpu ? nlohmann::json(device.name) : nlohmann::json()},
          {"driver", gpu ? nlohmann::json(device.driver) : nlohmann::json()},
          {"runtime", gpu ? nlohmann::json(device.runtime) : nlohmann::json()},
          {"compute", gpu ? nlohmann::json(device.compute) : nlohmann::json()},
          {"system", value_of("/etc/os-release", "PRETTY_NAME", '=') + ", Linux " + kernel.release},
          {"warpsight", version()}};
}

std::optional<prof::DeviceLimits> card_limits(const std::string& device, const std::string& machine) {
  const auto json = parse_json_or_null(machine);
  if (json.is_object() && json.contains("compute") && json["compute"].is_string())
    if (const auto known = prof::limits_of_card(device, json["compute"].get<std::string>())) return known;
  if (const auto known = prof::limits_of_card(device)) return known;
  const bool here = device_info().cuda && device_info().name == device;
  return here ? prof::limits_of_card(device, device_info().compute) : std::nullopt;
}

}  // namespace ws::app
