#include "app/core/kernels/exercise.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/core/kernels/kernel_plan.h"
#include "engine/devices/devices.h"
#include "engine/own_kernels/kernel_contract.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/base/failure.h"
#include "profiling/base/paths.h"
#include "profiling/base/version.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kMark = "//! ", kExerciseLine = "// Exercise ";

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

double factor(const std::string& place, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0)) throw Failure(place + ": expected a number above 0, got “" + text + "”");
  return value;
}

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

void take(Exercise& e, const std::string& key, const std::string& value, const std::string& place) {
  if (key == "title") e.title = value;
  else if (key == "preset") e.preset = value;
  else if (key == "op") e.op = value;
  else if (key == "set") e.sets.push_back(value);
  else if (key == "check") e.shapes.push_back(words_in(value));
  else if (key == "built-in") e.built_in = factor(place, value);
  else if (key == "limit") e.limit = factor(place, value);
  else if (key == "text") add_line(e.text, value);
  else if (key == "look") add_line(e.look, value);
  else if (key == "hint") e.hints.push_back(value);
  else throw Failure(place + ": there is no key “" + key + "”; the keys are title, preset, set, op, check, built-in, limit, text, look and hint");
}

void set_all(RunSpec& spec, const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const size_t equal = set.find('=');
    if (equal == set.npos) throw Failure("“" + set + "”: expected KEY=VALUE");
    set_field(spec, set.substr(0, equal), set.substr(equal + 1));
  }
}

std::vector<std::string> folders() {
  std::vector<std::string> all{(resources_folder() / "exercises").string()};
  const char* more = std::getenv("WARPSIGHT_EXERCISES");
  std::istringstream in(more ? more : "");
  for (std::string folder; std::getline(in, folder, ':');)
    if (!folder.empty()) all.push_back(folder);
  return all;
}

}  // namespace

Exercise read_exercise(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Failure(file + ": this exercise cannot be read.");
  Exercise e{.name = fs::path(file).stem()};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.starts_with(kMark)) {
      e.starter += line + "\n";
      continue;
    }
    const size_t colon = line.find(": ");
    const std::string place = file + "(" + std::to_string(number) + ")";
    if (colon == line.npos) throw Failure(place + ": expected //! KEY: VALUE");
    take(e, line.substr(kMark.size(), colon - kMark.size()), line.substr(colon + 2), place);
  }
  if (e.title.empty() || e.preset.empty() || e.op.empty() || e.starter.empty())
    throw Failure(file + ": an exercise needs a title, a preset, an op and a starter.");
  if (e.built_in == 0 && e.limit == 0) throw Failure(file + ": an exercise needs a goal: built-in, limit, or both.");
  return e;
}

std::vector<Exercise> exercises() {
  std::vector<Exercise> all;
  std::error_code error;
  for (const std::string& folder : folders())
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".cu") all.push_back(read_exercise(entry.path()));
  std::ranges::sort(all, {}, &Exercise::name);
  return all;
}

Exercise find_exercise(const std::string& wanted) {
  std::string names;
  for (const Exercise& e : exercises()) {
    if (e.name == wanted || e.name.substr(0, e.name.find('-')) == wanted) return e;
    names += (names.empty() ? "" : ", ") + e.name;
  }
  throw Failure("There is no exercise “" + wanted + "”. Choose one of: " + names + ".");
}

RunSpec spec_of(const Exercise& exercise) {
  RunSpec spec = load_spec(exercise.preset);
  set_all(spec, exercise.sets);
  return spec;
}

std::string starter_file(const Exercise& exercise) {
  const Plan plan = plan_for_kernels(spec_of(exercise));
  const own::KernelContract contract = own::contract_of(plan, own::find_op(plan, exercise.op));
  std::string text = std::string(own::kForOp) + contract.signature() + "\n" + std::string(kExerciseLine) + exercise.name + ": " + exercise.title + "\n";
  std::istringstream lines(exercise.text + "\n" + exercise.look);
  for (std::string line; std::getline(lines, line);) text += "// " + line + "\n";
  return text + exercise.starter;
}

Exercise exercise_of(const std::string& file) {
  std::istringstream lines(own::read_source({{}, file, {}}).text);
  for (std::string line; std::getline(lines, line) && (line.starts_with("//") || line.starts_with("#"));) {
    if (line.starts_with("# ")) line.replace(0, 1, "//");  // a kernel in Triton
    if (line.starts_with(kExerciseLine)) return find_exercise(line.substr(kExerciseLine.size(), line.find(':') - kExerciseLine.size()));
  }
  throw Failure(file + ": its first lines name no exercise. Begin with: warpsight exercise start NAME " + file);
}

std::vector<CheckedShape> checked_shapes_of(const Exercise& exercise) {
  std::vector<CheckedShape> shapes{{"the shapes of the exercise", spec_of(exercise)}};
  for (const auto& sets : exercise.shapes) {
    CheckedShape shape{{}, shapes.front().spec};
    set_all(shape.spec, sets);
    for (const std::string& set : sets) shape.name += (shape.name.empty() ? "" : ", ") + set.substr(set.find('.') + 1);
    shapes.push_back(shape);
  }
  return shapes;
}

ExerciseResult exercise_result(const Exercise& exercise, const std::string& file, const std::vector<ShapeResult>& results) {
  const OwnKernelSource source = own::read_source({{}, file, {}});
  ExerciseResult r{.exercise = exercise.name, .file = file, .version = own::version_of(source.text), .sentence = {}, .card = device_info().name};
  if (results.empty()) throw Failure("The check was stopped.");
  r.right = results.back().good() && results.size() == exercise.shapes.size() + 1;
  r.sentence = results.back().shape + ": " + results.back().sentence;
  const OwnKernelVerdict& measured = results.front().verdict;
  r.own_us = measured.own_us, r.built_in_us = measured.built_in_us, r.limit_us = kernel_limits(measured, spec_of(exercise).exec.precision).us();
  r.goal_us = std::max(exercise.built_in * r.built_in_us, exercise.limit * r.limit_us);  // the easier one of both
  r.reached = r.right && r.own_us > 0 && r.own_us <= r.goal_us;
  return r;
}

std::string to_json_line(const ExerciseResult& r) {
  return nlohmann::json{{"version", kJsonVersion}, {"exercise", r.exercise}, {"file", r.file}, {"kernel", r.version}, {"right", r.right}, {"reached", r.reached}, {"sentence", r.sentence},
                        {"own_us", r.own_us}, {"built_in_us", r.built_in_us}, {"limit_us", r.limit_us}, {"goal_us", r.goal_us}, {"card", r.card}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ws::app
