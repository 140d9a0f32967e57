// The gate: is B slower than A by more than a limit?
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/core/gate/clock_lock.h"
#include "app/core/gate/gate.h"
#include "app/core/runs/recorded_once.h"
#include "profiling/base/clock.h"
#include "profiling/base/paths.h"
#include "profiling/base/temporary_folder.h"
#include "profiling/base/text.h"
#include "profiling/base/whole_file.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/run_file/run_file.h"

namespace ws::cli {
namespace {

struct GateArguments {
  std::vector<std::string> words;
  std::string at_most = "2%", figure, unit, markdown;
  double timeout_s = 600;
  size_t pairs = app::GateOptions().most_pairs;
  bool json = false, why = true, lock_clocks = false;
};

using Side = std::vector<std::string>;

std::pair<Side, Side> sides_of(const std::vector<std::string>& words) {
  const auto middle = std::ranges::find(words, "--");
  std::pair<Side, Side> sides{{words.begin(), middle}, {middle == words.end() ? middle : middle + 1, words.end()}};
  if (middle == words.end() && words.size() == 2) sides = {{words[0]}, {words[1]}};
  if (sides.first.empty() || sides.second.empty() || std::ranges::find(sides.second, "--") != sides.second.end())
    throw UsageError("Name two sides with -- between them, for example: warpsight gate --at-most 2% -- ./old -- ./new, or warpsight gate a.wsrun b.wsrun");
  return sides;
}

bool are_run_files(const Side& side) {
  return std::ranges::all_of(side, [](const std::string& word) { return word.ends_with(".wsrun"); });
}

// A preset or a file with choices, and what --set takes: trained by this program, which prints the time of a step.
bool is_spec(const Side& side) {
  return side[0].ends_with(".json") || std::ranges::any_of(presets(), [&](const Preset& preset) { return preset.name == side[0]; });
}

app::GateProgram program_of(const Side& side, const GateArguments& a) {
  if (!is_spec(side)) return {side, a.timeout_s, a.figure};
  Side command{program_file().string(), "experiment", side[0], "--measure", "steps", "--json", "--repeats", "3"};
  command.insert(command.end(), side.begin() + 1, side.end());
  return {command, a.timeout_s, "\"us_per_step\":([0-9.e+]+)"};
}

std::vector<double> step_times(const Side& files) {
  std::vector<double> times;
  for (const std::string& file : files) {
    const prof::RunSummary summary = prof::read_run_summary(file);
    if (!summary.step_time.known()) throw Failure(file + ": the run has no step time.");
    times.push_back(summary.step_time.us.value);
  }
  return times;
}

std::string name_of(const Side& side) {
  std::string name;
  for (const std::string& word : side) name += (name.empty() ? "" : " ") + word;
  return name;
}

// One recorded run of a side.
prof::RunData recorded(const Side& side) {
  if (are_run_files(side)) return prof::import_ranks({side[0]});
  if (!is_spec(side)) return app::recorded_once(side, name_of(side));
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "run.wsrun").string();
  std::vector<std::string> command{program_file().string(), "train", side[0], "--no-output", "--json", "--trace", "full", "--run", file};
  command.insert(command.end(), side.begin() + 1, side.end());
  command.insert(command.end(), {"--set", "train.time_limit_s=0.5"});
  if (const app::GateMeasurement ran = app::run_program({command}); !ran.failure.empty()) throw Failure(name_of(side) + ": " + ran.failure);
  return prof::import_ranks({file});
}

app::GateReasons reasons_of(const Side& a, const Side& b) try {
  return app::reasons_of(recorded(a), recorded(b));
} catch (const Failure& failure) {
  return {.missing = std::string("unknown: ") + failure.what()};
}

void print_progress(const GateState& state) {
  if (state.pairs % 3 == 0 || state.decided)
    std::fprintf(stderr, "%zu pairs: %s\n", state.pairs, state.used > 0 ? (signed_fixed(100 * state.change, 2) + " %").c_str() : "the machine is busy");
}

app::GateResult result_of(const GateArguments& a, const Side& first, const Side& second) {
  const double limit = percent_of("--at-most", a.at_most) / 100;
  if (a.lock_clocks && are_run_files(first)) throw UsageError("--lock-clocks is for programs: run files are measured already.");
  if (are_run_files(first) != are_run_files(second)) throw UsageError("Compare run files with run files, or programs with programs.");
  app::GateResult result;
  if (are_run_files(first)) {
    result = app::judge_measured(step_times(first), step_times(second), limit);
    result.unit = "µs per step";
  } else {
    if (!a.figure.empty()) app::check_figure(a.figure);
    const app::GateProgram programs[] = {program_of(first, a), program_of(second, a)};
    std::optional<app::ClockLock> clocks;  // until both have run
    if (a.lock_clocks) clocks.emplace();
    app::GateOptions options{.limit = limit, .most_pairs = a.pairs};
    result = app::run_gate(options, [&](bool b) { return app::run_program(programs[b]); }, prof::steady_seconds, a.json ? app::Watch{} : print_progress);
    if (clocks) result.clocks = clocks->text();
    result.unit = is_spec(first) ? "µs per step" : !a.figure.empty() ? a.unit : "s";
  }
  result.name_a = name_of(first), result.name_b = name_of(second);
  if (a.why) app::explain(result, [&] { return reasons_of(first, second); });
  return result;
}

int gate(const GateArguments& a) {
  const auto [first, second] = sides_of(a.words);
  const app::GateResult result = result_of(a, first, second);
  if (!a.markdown.empty()) prof::write_whole(a.markdown, app::to_markdown(result));
  if (a.json)
    std::printf("%s\n", app::to_json(result).c_str());
  else
    print_table(app::to_text(result));
  switch (app::end_of(result)) {
    case app::GateEnd::WithinLimit:
      return kDone;
    case app::GateEnd::CannotTell:
      return kCannotTell;
    case app::GateEnd::Slower:
    case app::GateEnd::Failed:
      break;
  }
  return kFailed;
}

}  // namespace

double percent_of(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  if (end == text.c_str() || (rest != "%" && !rest.empty()) || !(value >= 0) || value > 1000)
    throw UsageError(option + ": expected a percentage from 0 to 1000, such as 2%, not " + text);
  return value;
}

Run add_gate(CLI::App& program) {
  auto arguments = std::make_shared<GateArguments>();
  CLI::App& command = *program.add_subcommand("gate", "is B slower than A? runs both in turn until the answer is sure");
  command.add_option("SIDES", arguments->words, "two programs, two presets or files of settings with options, or two lists of run files; -- before and between them")
      ->required()
      ->expected(2, 10'000);
  command.add_option("--at-most", arguments->at_most, "how much slower B may be")->type_name("PERCENT")->capture_default_str();
  command.add_option("--figure", arguments->figure, "a regular expression with one group: the number that a program prints, instead of its wall time")->type_name("EXPRESSION");
  command.add_option("--unit", arguments->unit, "the unit of this number")->type_name("TEXT");
  command.add_option("--pairs", arguments->pairs, "most pairs to run")->type_name("N")->check(CLI::Range(9, 10'000))->capture_default_str();
  command.add_option("--timeout", arguments->timeout_s, "most seconds for one run of a program")->type_name("S")->check(CLI::Range(0.1, 1e6))->capture_default_str();
  command.add_option("--markdown", arguments->markdown, "write a table for a pull request to this file")->type_name("FILE");
  command.add_flag("--why,!--no-why", arguments->why, "record a run of each: what carries the difference, and whether their kernels differ (default)");
  command.add_flag("--lock-clocks", arguments->lock_clocks, "lock the clocks of all GPUs while the programs run, at their application clock, where that is allowed");
  command.add_flag("--json", arguments->json, "print one JSON object");
  command.footer(
      wrapped("Both run in pairs, in an order drawn by lot. Pairs are left out while other programs use a quarter of the processors or compute on the same GPU. "
              "Exit codes: 0 not slower by more than the limit, 1 slower or a program failed, 2 wrong usage, 3 cannot tell.", 0, 0) +
      "\n\nExamples:\n"
      "  warpsight gate --at-most 2% -- ./old -- ./new\n"
      "  warpsight gate --figure \"step ([0-9.]+) us\" -- python3 old.py -- python3 new.py\n"
      "  warpsight gate -- mnist --set exec.fusion=off -- mnist\n"
      "  warpsight gate -- before*.wsrun -- after*.wsrun");
  return [arguments] { return gate(*arguments); };
}

}  // namespace ws::cli
