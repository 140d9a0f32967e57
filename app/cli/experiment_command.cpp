#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/help.h"
#include "app/cli/interrupt.h"
#include "app/cli/remote_watch.h"
#include "app/core/report/experiment_figure.h"
#include "app/core/report/report.h"
#include "app/core/experiments/experiment.h"
#include "app/core/remote/job_request.h"
#include "engine/devices/devices.h"
#include "profiling/base/failure.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"
#include "profiling/base/safe_text.h"
#include "profiling/base/whole_file.h"

namespace ws::cli {
namespace {

using namespace ws::app;

constexpr const char* kAnew = "WARPSIGHT_STARTED_ANEW";

bool started_anew() { return std::getenv(kAnew) != nullptr; }

// Starts the same command in a new process image, with the same arguments and process id. A driver needs this after a fault on
// the GPU.
[[noreturn]] void start_anew() {
  setenv(kAnew, "1", 1);
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  throw Failure(std::string("The program could not restart: ") + std::strerror(errno));
}

struct ExperimentArguments {
  SpecArguments spec;  // its source: an experiment, or with `vary` a run description
  std::vector<std::string> vary;
  std::string folder, measure;
  int repeats = 0;
  bool json = false, list = false;
  RemoteArguments remote;
};

class Narrate final : public ExperimentSink {
 public:
  void begins(const Trial& trial, int repeat, int done, int of) override {
    std::fprintf(stderr, "%d of %d: %s, repeat %d\n", done + 1, of, printable(trial.label).c_str(), repeat + 1);
  }
  void ended(const TrialRun& run) override {
    if (run.failed())
      std::fprintf(stderr, "  failed: %s\n", printable(run.message).c_str());
    else if (std::isnan(run.test_accuracy))
      std::fprintf(stderr, "  %.1f µs per step\n", run.us_per_step);
    else
      std::fprintf(stderr, "  %.1f µs per step, test accuracy %.2f %%\n", run.us_per_step, 100 * run.test_accuracy);
  }
};

int list_shipped() {
  for (const ExperimentInfo& info : shipped_experiments())
    std::printf("  %-18s %s\n", printable(info.name).c_str(), printable(info.title).c_str());
  return kDone;
}

// A shipped experiment or a file with axes or a ladder; otherwise a preset or a run description. Throws UsageError if it is none.
bool is_experiment(const std::string& source) {
  std::string names;
  for (const ExperimentInfo& info : shipped_experiments()) {
    if (info.name == source) return true;
    names += (names.empty() ? "" : ", ") + info.name;
  }
  if (std::ranges::any_of(presets(), [&](const Preset& preset) { return preset.name == source; })) return false;
  if (!std::filesystem::exists(source))
    throw UsageError("experiment: " + source + " is not a file, a preset or a shipped experiment (" + names + ")");
  const nlohmann::json file = read_json(source);
  return !file.is_object() || file.contains("axes") || file.contains("ladder");
}

int exit_code(const ExperimentResult& result) {
  size_t failed = 0;
  for (const TrialResult& trial : result.trials)
    failed += static_cast<size_t>(std::ranges::count_if(trial.runs, &TrialRun::failed));
  if (failed == 0) return kDone;
  std::fprintf(stderr, "%zu trainings failed. Start the experiment again to repeat them.\n", failed);
  return kFailed;
}

ExperimentSpec varied(const ExperimentArguments& a) try {
  return experiment_of(a.spec.asked(), a.vary);
} catch (const SpecError& problem) {
  throw UsageError(std::string("--vary ") + problem.what());
}

// The experiment that was named, or the one that the options describe.
ExperimentSpec asked_experiment(const ExperimentArguments& a) {
  const std::string& source = a.spec.source;
  if (source.empty()) throw UsageError("experiment: name an experiment or a file; --list shows the shipped ones");
  const bool experiment = a.vary.empty() && is_experiment(source);
  if (experiment && !a.spec.overrides.empty()) throw UsageError("--set: an experiment has its own settings; name a preset, or --vary one");
  ExperimentSpec spec = experiment ? load_experiment(source) : varied(a);
  if (!a.measure.empty()) spec.measure = a.measure == "steps" ? TrialMeasure::Steps : TrialMeasure::Training;
  if (a.repeats > 0) spec.repeats = a.repeats;
  return spec;
}

// Times without --out leave nothing behind, and are taken anew each time.
class StepsFolder {
 public:
  StepsFolder() : path_((temporary_folder() / ("warpsight-steps-" + std::to_string(getpid()))).string()) {}
  ~StepsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string folder_for(const ExperimentArguments& a, const ExperimentSpec& spec) {
  return a.folder.empty() ? "experiment-" + file_name_of(spec.name) : a.folder;
}

void print_result(const ExperimentArguments& a, const ExperimentResult& result) {
  if (a.json) return void(std::printf("%s\n", versioned(to_json(result)).dump().c_str()));
  const auto sentence = [](const char* head, const std::string& text) { return text.empty() ? "" : wrapped(head + text, 0, 0) + "\n"; };
  print_table(result.spec.title + "\n" + result.device + "\n\n" + experiment_table(result) +
              (result.complete ? "" : "\nNot complete: start it again to go on.\n") + "\n" +
              sentence("Expected: ", result.spec.expect) + sentence("Measured: ", measured_text(result)));
}

bool has_gpu(RemoteLink& link) {
  const nlohmann::json hello = link.ask({{"do", "hello"}});
  return !JsonInput(hello, "").required("machine").required("gpu").is_null();
}

// Shows an experiment on another machine until it ends or is left. Copies the results here, if a folder is named: the
// table, the chart, and each training's result and run file.
int watch_experiment(const ExperimentArguments& a, RemoteRun& run, const std::string& folder, ProgressLine& line) {
  const RemoteOutcome end = watch(run, line, {.at_interrupt = a.remote.at_interrupt});
  if (end.left) return kDone;
  if (folder.empty()) return end.exit_status.value_or(kFailed);
  for (const std::string& file : end.files) {
    if (!is_plain_name(file)) throw Failure("The other machine named a file that does not belong to an experiment.");
    fetch(run, {{"run", run.name()}, {"folder", "results"}, {"file", file}}, folder + "/" + file, line);
  }
  if (!result_rows(folder).empty()) print_result(a, read_experiment(folder, has_gpu(run.link())));
  line.say("kept in " + folder);
  return end.exit_status.value_or(kFailed);
}

int run_experiment_there(ExperimentArguments a, const ExperimentSpec& spec) {
  RemoteLink link(a.remote.address());
  const std::string name = RemoteRun::new_name(spec.name);
  const std::string folder = folder_for(a, spec);
  const ExperimentFolder owned(folder);
  RemoteRun::start(link, name, experiment_request(spec.title, to_json(spec), result_rows(folder)));
  RemoteRun run(link, name, false);
  ProgressLine line(stderr);
  line.say("runs on " + link.address().place() + " as " + name);
  return watch_experiment(a, run, folder, line);
}

int run_experiment(const ExperimentArguments& a) {
  if (a.list) return list_shipped();
  const ExperimentSpec spec = asked_experiment(a);
  if (!a.remote.on.empty()) return run_experiment_there(a, spec);
  std::optional<StepsFolder> passing;
  if (spec.measure == TrialMeasure::Steps && a.folder.empty()) passing.emplace();
  const std::string folder = passing ? passing->path() : folder_for(a, spec);
  CancelOnInterrupt interrupt;
  Narrate narrate;
  const ExperimentResult result = run_experiment(spec, folder, interrupt.cancel, narrate, !started_anew());
  if (!result.complete && gpu_lost() && !interrupt.cancel) {
    std::fprintf(stderr, "This process lost the GPU by a fault. A new process goes on.\n");
    start_anew();
  }
  prof::write_whole(folder + "/table.csv", experiment_csv(result));
  prof::write_whole(folder + "/chart.svg", to_svg(experiment_figure(result)) + "\n");
  print_result(a, result);
  return exit_code(result);
}

}  // namespace

int attach_experiment(const AttachedJob& job) {
  ExperimentArguments a;
  a.remote = job.remote;
  std::optional<ExperimentFolder> owned;
  if (!job.folder.empty()) owned.emplace(job.folder);
  ProgressLine line(stderr);
  return watch_experiment(a, job.run, job.folder, line);
}

Run add_experiment(CLI::App& program) {
  auto arguments = std::make_shared<ExperimentArguments>();
  CLI::App& command =
      *program.add_subcommand("experiment", "train every combination of some settings, or time its steps, and compare the results");
  arguments->spec.add_to(command, false);
  command.get_option("RUN")->description("a shipped experiment (--list) or its JSON file; or a preset or a run description, which --vary varies");
  command
      .add_option("--vary", arguments->vary,
                  "all values of a setting, or the ones named (KEY=VALUE,VALUE); can be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false);
  command.add_option("--measure", arguments->measure, "training: whole trainings with tests; steps: only the time of the training step")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"training", "steps"}))
      ->default_str("as the experiment says");
  command
      .add_option("--out", arguments->folder,
                  "write the results into this folder; if it has results, the experiment continues")
      ->type_name("FOLDER");
  command.add_option("--repeats", arguments->repeats, "number of trainings of each combination")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->default_str("as the experiment says");
  arguments->remote.add_to(command);
  command.add_flag("--json", arguments->json, "print the result as one JSON object");
  command.add_flag("--list", arguments->list, "list the shipped experiments");
  command.footer(
      "Examples:\n  warpsight experiment allocator-ladder\n  warpsight experiment mnist --vary exec.fusion --measure steps\n  warpsight experiment mnist --set exec.launch=graph --measure steps");
  return [arguments] { return run_experiment(*arguments); };
}

}  // namespace ws::cli
