#include "app/core/runs/run_name.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "app/core/runs/data_shape.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/base/text.h"

namespace ws::app {
namespace {

constexpr size_t kMostNamed = 3;
constexpr size_t kLongName = 80;  // bytes: a longer name gets fewer changes

std::string words_of(std::string_view key, const std::string& value) {
  const bool zero_is_all = key == "data.limit" || key == "train.batch";
  return value.empty() ? "none" : zero_is_all && value == "0" ? "all" : value;
}

// A value that does not explain itself stands with its label.
bool explains_itself(const FieldChange& change) {
  return field(change.key).kind == FieldKind::Choice && change.to != "off" && change.from != "off";
}

std::string label_of(const FieldChange& change) { return std::string(field(change.key).label); }

// What the name says already, or what belongs to the machine.
bool is_named(const FieldChange& change) {
  static const std::set<std::string_view> named = {"data.name", "data.path", "model.hidden", "model.layers", "model.kind", "exec.device"};
  return named.contains(change.key);
}

std::vector<FieldChange> unnamed_changes(const RunSpec& spec) {
  std::vector<FieldChange> changes = diff(plain_choices(spec), spec);
  std::erase_if(changes, [&](const FieldChange& change) { return is_named(change) || !relevant(spec, change.key); });
  const auto in_execution = [](const FieldChange& change) { return change.key.starts_with("exec."); };
  std::ranges::stable_partition(changes, in_execution);  // what costs time comes first
  return changes;
}

std::string with_more(const std::vector<std::string>& parts, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, parts.size()); ++i) text += (i ? ", " : "") + parts[i];
  return parts.size() > most ? text + " + " + std::to_string(parts.size() - most) + " more" : text;
}

// Keeps the first layers that fit. A block is not cut in two.
std::string first_layers(const std::string& layers) {
  constexpr size_t kMost = 36;
  if (layers.size() <= kMost) return layers;
  size_t end = 0;
  int depth = 0;
  for (size_t i = 0; i < kMost; ++i) {
    if (layers[i] == '|' && depth == 0) end = i;
    depth += layers[i] == '(' ? 1 : layers[i] == ')' ? -1 : 0;
  }
  return end > 0 ? layers.substr(0, end) + "| …" : prof::shortened(layers, kMost);
}

}  // namespace

std::string data_label(const data::DataSpec& spec) {
  if (spec.name == "mnist") return "MNIST";
  if (spec.name == "fashion-mnist") return "Fashion-MNIST";
  if (spec.name == "xor") return "XOR";
  if (spec.name == "cifar-10") return "CIFAR-10";
  if (!spec.path.empty() && data::source_of(spec.name) != data::Source::None) {
    const std::filesystem::path path(spec.path);
    return (path.has_filename() ? path : path.parent_path()).filename().string();
  }
  std::string name = spec.name;
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

std::string network_label(const RunSpec& spec) {
  if (spec.model.kind == ModelKind::Linear) return "y = wx + b";
  if (!spec.model.layers.empty()) return first_layers(spec.model.layers);
  const DataShape shape = data_shape(spec.data);
  std::string text;
  if (shape.features() > 0) text = std::to_string(shape.features());
  for (const int64_t width : spec.model.hidden) text += (text.empty() ? "" : "-") + std::to_string(width);
  if (shape.outputs > 0) text += (text.empty() ? "" : "-") + std::to_string(shape.outputs);
  return text;
}

// Read once: a run of every size asks for it whenever it is drawn.
const RunSpec& plain_choices(const RunSpec& spec) {
  static std::mutex mutex;
  static std::map<std::string, RunSpec> plain;
  const std::lock_guard lock(mutex);
  const std::string key = spec.data.name + "\n" + spec.model.layers;
  if (const auto known = plain.find(key); known != plain.end()) return known->second;
  RunSpec found;
  found.data.name = spec.data.name;
  for (const Preset& preset : presets())
    if (preset.name == spec.data.name) found = load_spec(preset.path);
  if (!spec.model.layers.empty())  // the preset of this network, if there is one
    for (const Preset& preset : presets())
      if (RunSpec same = load_spec(preset.path); same.data.name == spec.data.name && same.model.layers == spec.model.layers) {
        found = std::move(same);
        break;
      }
  return plain.emplace(key, std::move(found)).first->second;
}

std::string value_label(const FieldChange& change) {
  const std::string value = words_of(change.key, change.to);
  if (change.key == "train.epochs") return value + (value == "1" ? " epoch" : " epochs");
  if (change.key == "data.limit") return (value == "all" ? value : count_text(std::stod(value))) + " rows";
  if (change.key == "model.activation" && change.to == "none") return "no activation";
  if (change.key == "exec.kernels" && !change.to.empty()) return value;  // "fc1=my.cu"
  return explains_itself(change) ? value : label_of(change) + " " + value;
}

std::string change_label(const FieldChange& change) {
  const std::string values = words_of(change.key, change.from) + " → " + words_of(change.key, change.to);
  if (change.key == "data.limit") return change.from == "0" || change.to == "0" ? value_label(change) : values + " rows";
  return explains_itself(change) ? values : label_of(change) + " " + values;
}

std::string changes_label(const RunSpec& before, const RunSpec& spec, size_t most) {
  std::vector<std::string> parts;
  for (const FieldChange& change : diff(before, spec)) parts.push_back(change_label(change));
  return with_more(parts, most);
}

std::string run_name(const RunSpec& spec) {
  std::vector<std::string> parts;
  for (const FieldChange& change : unnamed_changes(spec)) parts.push_back(value_label(change));
  const std::string network = network_label(spec), start = data_label(spec.data) + (network.empty() ? "" : " " + network);
  if (parts.empty()) return start;
  std::string name;
  for (size_t most = kMostNamed; most > 0 && (name.empty() || name.size() > kLongName); --most)
    name = start + " · " + with_more(parts, most);
  return name;
}

}  // namespace ws::app
