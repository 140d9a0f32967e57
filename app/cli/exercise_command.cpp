// warpsight exercise: kernels to write, with a check, hidden shapes and a goal.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/cli/commands.h"
#include "app/core/kernels/exercise.h"
#include "engine/devices/devices.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"

namespace ws::cli {
namespace {

struct ExerciseArguments {
  std::string name, file;
  bool as_json = false;
};

int list(const ExerciseArguments&) {
  for (const app::Exercise& e : app::exercises()) std::printf("%s\n", printable(formatted("{:<18} {}", e.name, e.title)).c_str());
  return kDone;
}

int start(const ExerciseArguments& a) {
  const app::Exercise exercise = app::find_exercise(a.name);
  const std::string file = a.file.empty() ? exercise.name + ".cu" : a.file;
  std::error_code error;
  if (std::filesystem::exists(file, error)) throw Failure(file + ": exists already. Choose another name, or remove it first.");
  prof::write_whole(file, app::starter_file(exercise));
  std::printf("%s\n%s\n\nwritten: %s; to check it: warpsight exercise check %s\n", exercise.title.c_str(), exercise.text.c_str(), file.c_str(), file.c_str());
  return kDone;
}

int hint(const ExerciseArguments& a) {
  for (const std::string& line : app::find_exercise(a.name).hints) std::printf("%s\n", line.c_str());
  return kDone;
}

std::string result_text(const app::ExerciseResult& r) {
  if (!r.right) return "wrong: " + r.sentence;
  std::string text = formatted("right on all shapes; yours {:.2f} µs, built in {:.2f} µs", r.own_us, r.built_in_us);
  if (r.limit_us > 0) text += formatted(", limit {:.2f} µs", r.limit_us);
  return text + formatted(". {} ({:.2f} µs)", r.reached ? "Goal reached" : "The goal is not reached", r.goal_us);
}

int check(const ExerciseArguments& a) {
  const app::Exercise exercise = app::exercise_of(a.file);
  if (!device_info().cuda) throw Failure("A check needs a GPU: " + device_info().why_not);
  const app::ExerciseResult result = app::exercise_result(exercise, a.file, app::check_kernel({exercise.op, a.file, app::checked_shapes_of(exercise)}));
  const std::string text = a.as_json ? app::to_json_line(result) : exercise.title + ": " + result_text(result);
  std::printf("%s\n", printable(text).c_str());
  return result.reached ? kDone : kFailed;
}

}  // namespace

Run add_exercise(CLI::App& program) {
  auto a = std::make_shared<ExerciseArguments>();
  using Action = int (*)(const ExerciseArguments&);
  auto chosen = std::make_shared<Action>(nullptr);
  CLI::App& exercise = *program.add_subcommand("exercise", "learn to write kernels: tasks with a check and a goal");
  exercise.require_subcommand(1);
  const auto add = [&](const char* name, const char* text, Action action) {
    CLI::App* command = exercise.add_subcommand(name, text);
    command->callback([chosen, action] { *chosen = action; });
    return command;
  };
  add("list", "the exercises", list);
  CLI::App* started = add("start", "write the starter of an exercise into a file", start);
  CLI::App* hinted = add("hint", "print its hints", hint);
  for (CLI::App* command : {started, hinted}) command->add_option("NAME", a->name, "the name or the number of the exercise")->required();
  started->add_option("FILE", a->file, "the new file");
  CLI::App* checked = add("check", "check a solution on hidden shapes, and time it", check);
  checked->add_option("FILE", a->file, "the CUDA source")->required();
  checked->add_flag("--json", a->as_json, "print one line of JSON to hand in");
  exercise.footer("Examples:\n  warpsight exercise start 1\n  warpsight exercise check 1-bias-relu.cu --json");
  return [a, chosen] { return (*chosen)(*a); };
}

}  // namespace ws::cli
