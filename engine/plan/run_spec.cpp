#include "engine/plan/run_spec.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"

namespace ws {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string range_text(const Field& f) {
  if (f.least == f.most) return "";
  const bool open = f.most >= 1e12;
  const std::string low = number_text(f.least), high = number_text(f.most);
  if (open) return (f.above_least ? " > " : " ≥ ") + low;
  return f.above_least ? " > " + low + " and at most " + high : " from " + low + " to " + high;
}

std::string choices_text(const Field& f) {
  std::string text = "one of";
  for (size_t i = 0; i < f.values.size(); ++i) text += (i ? ", " : " ") + std::string(f.values[i].name);
  return text;
}

// A word that people write for 0.
std::string_view word_of_zero(const Field& f) { return f.key == "exec.gpus" ? "all" : ""; }

std::string expected(const Field& f) {
  switch (f.kind) {
    case FieldKind::Choice:
      return choices_text(f);
    case FieldKind::Integer:
      return "a whole number" + range_text(f) + (word_of_zero(f).empty() ? "" : ", or " + std::string(word_of_zero(f)));
    case FieldKind::Number:
      return "a number" + range_text(f);
    case FieldKind::Flag:
      return "true or false";
    case FieldKind::Text:
      return "text";
    case FieldKind::IntegerList:
      return "a list of whole numbers" + range_text(f);
  }
  return "";
}

bool in_range(const Field& f, double value) {
  if (!std::isfinite(value)) return false;
  if (f.least == f.most) return true;
  return (f.above_least ? value > f.least : value >= f.least) && value <= f.most;
}

bool is_whole(const json& v) {
  return v.is_number_integer() || (v.is_number() && std::floor(v.get<double>()) == v.get<double>());
}

bool is_choice(const Field& f, const json& v) {
  return v.is_string() &&
         std::ranges::any_of(f.values, [&](const FieldValue& x) { return x.name == v.get_ref<const std::string&>(); });
}

bool acceptable(const Field& f, const json& v) {
  switch (f.kind) {
    case FieldKind::Choice:
      return is_choice(f, v);
    case FieldKind::Integer:
      return v.is_number() && in_range(f, v.get<double>()) && is_whole(v);
    case FieldKind::Number:
      return v.is_number() && in_range(f, v.get<double>());
    case FieldKind::Flag:
      return v.is_boolean();
    case FieldKind::Text:
      return v.is_string();
    case FieldKind::IntegerList:
      return v.is_array() && v.size() <= 1000 && std::ranges::all_of(v, [&](const json& x) {
               return x.is_number() && in_range(f, x.get<double>()) && is_whole(x);
             });
  }
  return false;
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

json json_of_text(const Field& f, std::string_view text) {
  if (f.kind == FieldKind::Choice || f.kind == FieldKind::Text) return std::string(text);
  std::string source(text);
  if (f.kind == FieldKind::IntegerList && !source.starts_with('[')) source = "[" + source + "]";
  json value = parse_json_or_null(source);
  return value.is_null() ? json(std::string(text)) : value;
}

// Choices of earlier versions. Files may still have them.
bool is_gone(std::string_view key) { return key == "exec.streams"; }

void read_section(RunSpec& spec, const std::string& section, const json& object) {
  if (!object.is_object()) throw SpecError(section + ": expected an object, got " + shown(object));
  for (const auto& [key, value] : object.items())
    if (const std::string whole = section + "." + key; !is_gone(whole)) set_field(spec, whole, value);
}

bool is_list_of_text(const json& value) {
  return value.is_array() && std::ranges::all_of(value, [](const json& item) { return item.is_string(); });
}

// A network may also be a list of its layers.
json joined_layers(const json& list) {
  std::string text;
  for (const json& layer : list) text += (text.empty() ? "" : " | ") + layer.get<std::string>();
  return text;
}

}  // namespace

void set_field(RunSpec& spec, std::string_view key, const json& value) {
  const Field& f = field(key);
  if (key == "model.layers" && is_list_of_text(value)) return f.set(spec, joined_layers(value));
  if (!word_of_zero(f).empty() && value == json(std::string(word_of_zero(f)))) return f.set(spec, json(0));
  if (!acceptable(f, value)) throw SpecError(std::string(key) + ": expected " + expected(f) + ", got " + shown(value));
  f.set(spec, value);
}

void set_field(RunSpec& spec, std::string_view key, std::string_view value) {
  set_field(spec, key, json_of_text(field(key), value));
}

std::string field_text(const RunSpec& spec, std::string_view key) {
  const json value = field(key).get(spec);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const json& item : value) text += (text.empty() ? "" : ",") + item.dump();
  return text;
}

json to_json(const RunSpec& spec) {
  json out = {{"name", spec.name}};
  for (const Field& f : fields()) {
    const auto dot = f.key.find('.');
    out[std::string(f.key.substr(0, dot))][std::string(f.key.substr(dot + 1))] = f.get(spec);
  }
  return out;
}

RunSpec spec_from_json(const json& object) {
  if (!object.is_object()) throw SpecError("run description: expected an object, got " + shown(object));
  RunSpec spec;
  for (const auto& [key, value] : object.items()) {
    if (key == "name" || key == "title" || key == "text") {
      if (!value.is_string()) throw SpecError(key + ": expected text, got " + shown(value));
      if (key == "name") spec.name = value.get<std::string>();
    } else if (key == "data" || key == "model" || key == "train" || key == "exec") {
      read_section(spec, key, value);
    } else {
      throw SpecError(key + ": there is no such section; expected data, model, train or exec");
    }
  }
  return spec;
}

std::string spec_text(const RunSpec& spec, int indent) {
  return to_json(spec).dump(indent, ' ', false, json::error_handler_t::replace);
}

RunSpec parse_spec(std::string_view text) {
  json object;
  try {
    object = parse_json(text, "run description");
  } catch (const Failure& problem) {
    throw SpecError(problem.what());
  }
  return spec_from_json(object);
}

RunSpec load_spec(const std::string& path_or_preset) {
  for (const Preset& preset : presets())
    if (preset.name == path_or_preset) {
      RunSpec spec = spec_from_json(read_json(preset.path));
      spec.name = preset.name;
      return spec;
    }
  std::error_code error;
  if (!fs::exists(path_or_preset, error)) {
    std::string names;
    for (const Preset& preset : presets()) names += (names.empty() ? "" : ", ") + preset.name;
    throw NoSuchSpec(path_or_preset + ": neither a file nor a preset; presets are " + names);
  }
  try {
    return spec_from_json(read_json(path_or_preset));
  } catch (const SpecError& problem) {
    throw SpecError(path_or_preset + ": " + problem.what());
  }
}

std::vector<Preset> presets() {
  std::vector<Preset> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(resources_folder() / "presets", error)) {
    if (entry.path().extension() != ".json") continue;
    try {
      const json file = read_json(entry.path());
      const JsonInput preset(file, entry.path().string());
      const std::string name = entry.path().stem();
      all.push_back({name, preset.at("title").text(name), preset.at("text").text(), entry.path()});
    } catch (const Failure&) {  // skip a file that cannot be read
    }
  }
  std::ranges::sort(all, {}, &Preset::name);
  return all;
}

std::vector<FieldChange> diff(const RunSpec& from, const RunSpec& to) {
  std::vector<FieldChange> changes;
  for (const Field& f : fields()) {
    const std::string before = field_text(from, f.key), after = field_text(to, f.key);
    if (before != after) changes.push_back({std::string(f.key), before, after});
  }
  return changes;
}

}  // namespace ws
