#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "app/core/experiments/experiment.h"
#include "profiling/base/budget.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/text.h"

namespace ws::app {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string as_text(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::vector<Setting> read_settings(const JsonInput& object) {
  std::vector<Setting> set;
  for (const auto& [key, value] : object.entries()) {
    field(key);
    set.emplace_back(key, as_text(value.value()));
  }
  return set;
}

ExperimentAxis read_axis(const std::string& key, const JsonInput& values) {
  field(key);
  ExperimentAxis axis{key, {}};
  for (const JsonInput& value : values.items()) axis.values.push_back(as_text(value.value()));
  if (axis.values.empty()) values.refuse("a list of values");
  return axis;
}

void apply_settings(RunSpec& spec, const std::vector<Setting>& set) {
  for (const auto& [key, value] : set) set_field(spec, key, value);
}

fs::path experiments_folder() { return resources_folder() / "experiments"; }

// Most bytes of a trial: each key once, with its value as a setting, in the label and in the run description, where a
// list of numbers takes four times its text.
uint64_t bytes_of_a_trial(const ExperimentSpec& spec) {
  std::map<std::string, size_t> longest;
  for (const ExperimentAxis& axis : spec.axes)
    for (const std::string& value : axis.values) longest[axis.key] = std::max(longest[axis.key], value.size());
  for (const ExperimentRung& rung : spec.ladder)
    for (const auto& [key, value] : rung.set) longest[key] = std::max(longest[key], value.size());
  uint64_t bytes = sizeof(Trial) + 4 * spec_text(spec.base).size();
  for (const auto& [key, size] : longest) bytes += sizeof(Setting) + key.size() + 6 * size;
  return bytes;
}

// Throws Failure before the trials take memory. The limit is low because each combination is a training.
void must_be_few(const ExperimentSpec& spec) {
  constexpr double kMost = 10'000;
  double trials = spec.ladder.empty() ? 1 : static_cast<double>(spec.ladder.size());
  for (const ExperimentAxis& axis : spec.axes) trials *= static_cast<double>(axis.values.size());
  if (trials > kMost) {
    char count[32];
    std::snprintf(count, sizeof count, "%.6g", trials);
    throw Failure(std::string(spec.ladder.empty() ? "experiment.axes: " : "experiment.ladder: ") + count +
                  " combinations; at most 10,000 can be trained");
  }
  const uint64_t each = bytes_of_a_trial(spec) + static_cast<uint64_t>(spec.repeats) * sizeof(std::pair<int, int>);
  const Budget budget;
  if (!budget.has(static_cast<uint64_t>(trials) * each)) throw Failure("experiment: " + budget.spent_text());
}

// Creates all combinations. The last axis changes fastest.
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

// Hash of what a trial trains, including the data set, but without anything that depends on the machine: results of
// another machine are read here too. The size of a data file counts, so that a longer file is another data set.
std::string identity_of(RunSpec spec, TrialMeasure measure) {
  spec.name.clear();
  std::string text = spec_text(spec) + (measure == TrialMeasure::Steps ? " steps" : "");
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
    for (const Setting& setting : rung.set) {
      std::erase_if(all, [&setting](const Setting& before) { return before.first == setting.first; });
      all.push_back(setting);
    }
    trials.push_back({0, rung.label, all, {}, ""});
  }
  return trials;
}

}  // namespace

ExperimentSpec experiment_from_json(const json& object) {
  const JsonInput input(object, "experiment");
  for (const auto& [key, value] : input.entries())
    if (key != "name" && key != "title" && key != "text" && key != "expect" && key != "preset" && key != "spec" &&
        key != "set" && key != "axes" && key != "ladder" && key != "repeats" && key != "seed" && key != "look_at" && key != "measure")
      throw Failure(value.path() + ": there is no such key");
  ExperimentSpec spec;
  spec.name = input.at("name").text();
  spec.title = input.at("title").text();
  spec.text = input.at("text").text();
  spec.expect = input.at("expect").text();
  spec.look_at = input.at("look_at").text(spec.look_at);
  if (spec.look_at != "us_per_step" && spec.look_at != "samples_per_s" && spec.look_at != "first_loss" &&
      spec.look_at != "test_accuracy")
    input.at("look_at").refuse("us_per_step, samples_per_s, first_loss or test_accuracy");
  const std::string measure = input.at("measure").text("training");
  if (measure != "training" && measure != "steps") input.at("measure").refuse("training or steps");
  spec.measure = measure == "steps" ? TrialMeasure::Steps : TrialMeasure::Training;
  if (const JsonInput preset = input.at("preset"); preset.there()) spec.base = load_spec(preset.text());
  if (const JsonInput base = input.at("spec"); base.there()) spec.base = spec_from_json(base.value());
  apply_settings(spec.base, read_settings(input.at("set")));
  for (const auto& [key, values] : input.at("axes").entries()) spec.axes.push_back(read_axis(key, values));
  for (const JsonInput& rung : input.at("ladder").items())
    spec.ladder.push_back({rung.at("label").text(), read_settings(rung.at("set"))});
  const bool described = input.at("preset").there() || input.at("spec").there();
  if (spec.axes.empty() == spec.ladder.empty() && !(described && spec.axes.empty()))
    throw Failure("experiment: name either axes or a ladder");
  spec.repeats = static_cast<int>(input.at("repeats").whole(3, 1, 1000));
  must_be_few(spec);
  spec.seed = static_cast<uint64_t>(input.at("seed").whole(1, 0));
  return spec;
}

ExperimentSpec experiment_of(const RunSpec& base, const std::vector<std::string>& axes) {
  ExperimentSpec spec{.name = base.name, .base = base};
  for (const std::string& text : axes) {
    const size_t equals = text.find('=');
    ExperimentAxis axis{text.substr(0, equals), {}};
    const Field& varied = field(axis.key);
    if (equals != text.npos)
      for (size_t at = equals; at != text.npos; at = text.find(',', at + 1))
        axis.values.push_back(text.substr(at + 1, text.find(',', at + 1) - at - 1));
    else if (varied.kind == FieldKind::Choice)
      for (const FieldValue& value : varied.values) axis.values.emplace_back(value.name);
    else
      throw SpecError(axis.key + ": has no list of values; name some: " + axis.key + "=VALUE,VALUE");
    RunSpec tried = base;
    for (const std::string& value : axis.values) set_field(tried, axis.key, value);
    spec.name += " by " + axis.key;
    spec.axes.push_back(std::move(axis));
  }
  spec.title = spec.name;
  must_be_few(spec);
  return spec;
}

json to_json(const ExperimentSpec& spec) {
  json out = {{"name", spec.name},       {"title", spec.title},     {"text", spec.text},
              {"expect", spec.expect},   {"look_at", spec.look_at}, {"spec", ws::to_json(spec.base)},
              {"repeats", spec.repeats}, {"seed", spec.seed}};
  if (spec.measure == TrialMeasure::Steps) out["measure"] = "steps";
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
    try {
      const json object = read_json(entry.path());
      const JsonInput input(object, entry.path().string());
      all.push_back({entry.path().stem(), input.at("title").text(), input.at("text").text(), entry.path()});
    } catch (const Failure& problem) {
      all.push_back({entry.path().stem(), problem.what(), "", entry.path()});
    }
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
  must_be_few(spec);
  std::vector<Trial> trials;
  std::vector<Setting> chosen;
  if (spec.ladder.empty())
    combine(spec, 0, chosen, trials);
  else
    trials = ladder_trials(spec);
  for (size_t i = 0; i < trials.size(); ++i) {
    Trial& trial = trials[i];
    trial.index = static_cast<int>(i);
    if (trial.label.empty()) trial.label = spec.name;  // nothing is varied
    trial.spec = spec.base;
    apply_settings(trial.spec, trial.set);
    trial.identity = identity_of(trial.spec, spec.measure);
    trial.spec = spec.base;
    // Without a GPU no loader copies anything. The base's loader is replaced, and a rung that sets
    // it is skipped with the reason.
    if (!cuda) trial.spec.exec.loader = Loader::Resident;
    apply_settings(trial.spec, trial.set);
    trial.skipped = why_invalid(trial.spec, cuda).value_or(Refusal()).text;
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
