#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "app/core/experiments/experiment.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"

namespace ws::app {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string as_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string required_text(const json& object, const char* key) {
  if (!object.contains(key)) return "";
  if (!object[key].is_string()) throw Failure(std::string("experiment.") + key + ": expected text");
  return object[key].get<std::string>();
}

std::vector<Setting> read_settings(const json& object, const std::string& where) {
  if (!object.is_object()) throw Failure(where + ": expected an object of choices");
  std::vector<Setting> set;
  for (const auto& [key, value] : object.items()) {
    field(key);
    set.emplace_back(key, as_text(value));
  }
  return set;
}

ExperimentAxis read_axis(const std::string& key, const json& values) {
  field(key);
  if (!values.is_array() || values.empty()) throw Failure("experiment.axes." + key + ": expected a list of values");
  ExperimentAxis axis{key, {}};
  for (const json& value : values) axis.values.push_back(as_text(value));
  return axis;
}

void apply_settings(RunSpec& spec, const std::vector<Setting>& set) {
  for (const auto& [key, value] : set) set_field(spec, key, value);
}

fs::path experiments_folder() { return resources_folder() / "experiments"; }

json read_json(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw Failure(path.string() + ": cannot be opened");
  json object = json::parse(in, nullptr, false);
  if (object.is_discarded()) throw Failure(path.string() + ": not valid JSON");
  return object;
}

// All combinations, the last axis fastest.
void combine(const ExperimentSpec& spec, size_t axis, std::vector<Setting>& chosen, std::vector<Trial>& out) {
  if (axis == spec.axes.size()) {
    Trial trial;
    for (const auto& [key, value] : chosen) trial.label += (trial.label.empty() ? "" : " · ") + value;
    trial.set = chosen;
    out.push_back(std::move(trial));
    return;
  }
  for (const std::string& value : spec.axes[axis].values) {
    chosen.emplace_back(spec.axes[axis].key, value);
    combine(spec, axis + 1, chosen, out);
    chosen.pop_back();
  }
}

// Of what a trial trains, data set included, and of nothing that the machine decides: results of another machine are
// read here too. A file of data counts with its size, so that a longer one is another data set.
std::string identity_of(RunSpec spec) {
  spec.name.clear();
  std::string text = ws::to_json(spec).dump();
  std::error_code none;
  if (!spec.data.path.empty() && fs::is_regular_file(spec.data.path, none))
    text += std::to_string(fs::file_size(spec.data.path, none));
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return formatted("{:016x}", hash);
}

bool sets(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings, [key](const Setting& s) { return s.first == key; });
}

std::vector<Trial> ladder_trials(const ExperimentSpec& spec) {
  std::vector<Trial> trials;
  std::vector<Setting> all;
  for (const ExperimentRung& rung : spec.ladder) {
    all.insert(all.end(), rung.set.begin(), rung.set.end());
    trials.push_back({0, rung.label, all, {}, ""});
  }
  return trials;
}

}  // namespace

ExperimentSpec experiment_from_json(const json& object) {
  if (!object.is_object()) throw Failure("experiment: expected an object");
  ExperimentSpec spec;
  for (const auto& [key, value] : object.items())
    if (key != "name" && key != "title" && key != "text" && key != "expect" && key != "preset" && key != "spec" &&
        key != "set" && key != "axes" && key != "ladder" && key != "repeats" && key != "seed" && key != "look_at")
      throw Failure("experiment." + key + ": there is no such key");
  spec.name = required_text(object, "name");
  spec.title = required_text(object, "title");
  spec.text = required_text(object, "text");
  spec.expect = required_text(object, "expect");
  if (object.contains("look_at")) spec.look_at = required_text(object, "look_at");
  if (spec.look_at != "us_per_step" && spec.look_at != "samples_per_s" && spec.look_at != "first_loss" &&
      spec.look_at != "test_accuracy")
    throw Failure("experiment.look_at: us_per_step, samples_per_s, first_loss or test_accuracy, not " + spec.look_at);
  if (object.contains("preset")) spec.base = load_spec(required_text(object, "preset"));
  if (object.contains("spec")) spec.base = spec_from_json(object["spec"]);
  if (object.contains("set")) apply_settings(spec.base, read_settings(object["set"], "experiment.set"));
  if (object.contains("axes"))
    for (const auto& [key, values] : object["axes"].items()) spec.axes.push_back(read_axis(key, values));
  if (object.contains("ladder"))
    for (const json& rung : object["ladder"])
      spec.ladder.push_back(
          {required_text(rung, "label"), read_settings(rung.value("set", json::object()), "experiment.ladder")});
  if (spec.axes.empty() == spec.ladder.empty()) throw Failure("experiment: name either axes or a ladder");
  spec.repeats = std::clamp(object.value("repeats", 3), 1, 1000);
  spec.seed = object.value("seed", uint64_t{1});
  return spec;
}

json to_json(const ExperimentSpec& spec) {
  json out = {{"name", spec.name},       {"title", spec.title},     {"text", spec.text},
              {"expect", spec.expect},   {"look_at", spec.look_at}, {"spec", ws::to_json(spec.base)},
              {"repeats", spec.repeats}, {"seed", spec.seed}};
  for (const ExperimentAxis& axis : spec.axes) out["axes"][axis.key] = axis.values;
  for (const ExperimentRung& rung : spec.ladder) {
    json set = json::object();
    for (const auto& [key, value] : rung.set) set[key] = value;
    out["ladder"].push_back({{"label", rung.label}, {"set", set}});
  }
  return out;
}

std::vector<ExperimentInfo> shipped_experiments() {
  std::vector<ExperimentInfo> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(experiments_folder(), error)) {
    if (entry.path().extension() != ".json") continue;
    const json object = read_json(entry.path());
    all.push_back({entry.path().stem(), object.value("title", ""), object.value("text", ""), entry.path()});
  }
  std::ranges::sort(all, {}, &ExperimentInfo::name);
  return all;
}

ExperimentSpec load_experiment(const std::string& path_or_name) {
  const fs::path shipped = experiments_folder() / (path_or_name + ".json");
  const fs::path path = fs::exists(shipped) ? shipped : fs::path(path_or_name);
  ExperimentSpec spec = experiment_from_json(read_json(path));
  if (spec.name.empty()) spec.name = path.stem();
  return spec;
}

std::vector<Trial> trials_of(const ExperimentSpec& spec, bool cuda) {
  std::vector<Trial> trials;
  std::vector<Setting> chosen;
  if (spec.ladder.empty())
    combine(spec, 0, chosen, trials);
  else
    trials = ladder_trials(spec);
  for (size_t i = 0; i < trials.size(); ++i) {
    Trial& trial = trials[i];
    trial.index = static_cast<int>(i);
    trial.spec = spec.base;
    apply_settings(trial.spec, trial.set);
    trial.identity = identity_of(trial.spec);
    trial.spec = spec.base;
    // Without a GPU no loader copies anything: what the base asks for is left out, and a rung about it says so.
    if (!cuda) trial.spec.exec.loader = Loader::Resident;
    apply_settings(trial.spec, trial.set);
    trial.skipped = why_invalid(trial.spec, cuda).value_or("");
    if (!cuda && !spec.ladder.empty() && sets(spec.ladder[i].set, "exec.loader"))
      trial.skipped = "the CPU reads batches where they are, nothing is copied.";
  }
  return trials;
}

std::vector<std::pair<int, int>> run_order(const ExperimentSpec& spec, const std::vector<Trial>& trials) {
  std::vector<std::pair<int, int>> order;
  std::mt19937_64 rng(spec.seed);
  for (int repeat = 0; repeat < spec.repeats; ++repeat) {
    const auto first = static_cast<std::ptrdiff_t>(order.size());
    for (const Trial& trial : trials)
      if (trial.skipped.empty()) order.emplace_back(trial.index, repeat);
    std::shuffle(order.begin() + first, order.end(), rng);
  }
  return order;
}

}  // namespace ws::app
