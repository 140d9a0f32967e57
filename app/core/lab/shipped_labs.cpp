#include "app/core/lab/shipped_labs.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"

namespace ws::app {
namespace {

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::vector<ShippedLab> shipped_labs() {
  std::vector<ShippedLab> all;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(resources_folder() / "lab", none)) {
    if (entry.path().extension() != ".json") continue;
    try {
      const std::string name = entry.path().stem().string();
      const std::string title = text_in(read_lab_file(entry.path().string()), "title");
      all.push_back({name, title.empty() ? name : title, entry.path().string()});
    } catch (const Failure&) {  // a file that cannot be read is not offered
    }
  }
  std::ranges::sort(all, {}, &ShippedLab::name);
  return all;
}

nlohmann::json read_lab_file(const std::string& path) {
  nlohmann::json object = read_json(path);
  if (!object.is_object()) throw Failure(path + ": expected one JSON object with the settings of a sweep");
  return object;
}

std::optional<lab::LabResult> measured_lab(const ShippedLab& shipped) {
  const auto file = resources_folder() / "lab" / "measured" / (shipped.name + ".json");
  if (!std::filesystem::exists(file)) return std::nullopt;
  try {
    lab::LabResult result = lab::lab_result_from_json(read_lab_file(file.string()));
    result.spec = lab::lab_spec_from_json(read_lab_file(shipped.path));
    for (lab::LabPoint& point : result.points)
      point.flops = lab::flops_of(result.spec, point.size), point.bytes = lab::bytes_of(result.spec, point.size);
    return result;
  } catch (const Failure&) {  // a file that cannot be read is not shown
    return std::nullopt;
  }
}

std::string lab_page(const nlohmann::json& object) {
  const std::string text = text_in(object, "text"), measured = text_in(object, "measured");
  return text + (text.empty() || measured.empty() ? "" : "\n\n") + measured;
}

}  // namespace ws::app
