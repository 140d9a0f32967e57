// An experiment: one run description and the choices to vary. Every combination is trained, or its steps are timed;
// repeats are shuffled.
// Results go to a folder as they arrive, so a killed experiment continues where it stopped. No Qt here.
#pragma once
#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/devices/devices.h"
#include "engine/train/trainer.h"
#include "profiling/base/ownership.h"

namespace ws::app {

using Setting = std::pair<std::string, std::string>;  // field key, value as --set takes it

struct ExperimentAxis {
  std::string key;
  std::vector<std::string> values;
};

// A step of a ladder: what changes compared with the rung before.
struct ExperimentRung {
  std::string label;
  std::vector<Setting> set;
};

// Training: whole trainings with tests, each with its run file. Steps: only the time of the training step.
enum class TrialMeasure : uint8_t { Training, Steps };

struct ExperimentSpec {
  std::string name, title, text, expect;  // expect: the expected result in one sentence
  std::string look_at = "us_per_step";    // the main measure; also first_loss, test_accuracy …
  RunSpec base;
  std::vector<ExperimentAxis> axes;    // all combinations of their values
  std::vector<ExperimentRung> ladder;  // or steps in order, each adds to the ones before
  TrialMeasure measure = TrialMeasure::Training;
  int repeats = 3;
  uint64_t seed = 1;  // shuffles the order
};

struct Trial {
  int index = 0;
  std::string label;  // "caching · off"
  std::vector<Setting> set;
  RunSpec spec;
  std::string skipped;   // why it cannot run here; empty if it can
  std::string identity;  // hash of what is trained, independent of its index; results are stored under it
};

struct TrialRun {
  int trial = 0, repeat = 0;
  std::string status, message, file;  // file: its .wsrun, relative to the folder
  std::string device;                 // where it ran
  std::string identity;               // identity of its trial
  double us_per_step = 0, samples_per_s = 0, wall_s = 0, first_loss = 0, final_loss = 0, test_accuracy = 0;
  int64_t steps = 0, peak_bytes = 0;
  double allocator_calls_per_step = 0;

  bool failed() const { return status == "failed"; }
};

struct TrialResult {
  Trial trial;
  std::vector<TrialRun> runs;
  double us_per_step = 0, low = 0, high = 0;  // median, least, most
  double first_loss = 0, final_loss = 0, test_accuracy = 0, allocator_calls_per_step = 0, samples_per_s = 0;
  int64_t peak_bytes = 0;
};

struct ExperimentResult {
  ExperimentSpec spec;
  std::vector<TrialResult> trials;
  std::string device;
  bool complete = false;
};

struct ExperimentInfo {
  std::string name, title, text, path;  // title: the problem of a file that cannot be read
};
std::vector<ExperimentInfo> shipped_experiments();
ExperimentSpec load_experiment(const std::string& path_or_name);  // throws Failure naming the key
ExperimentSpec experiment_from_json(const nlohmann::json& json);
// All values of some choices of one run description, or that alone without an axis. An axis is "KEY", which must have a list of values, or
// "KEY=VALUE,VALUE". Throws SpecError naming the key.
ExperimentSpec experiment_of(const RunSpec& base, const std::vector<std::string>& axes);
nlohmann::json to_json(const ExperimentSpec& spec);

std::vector<Trial> trials_of(const ExperimentSpec& spec, bool cuda);
// Returns (trial, repeat) pairs in running order. They are shuffled so that a drift of the
// machine affects all trials alike.
std::vector<std::pair<int, int>> run_order(const ExperimentSpec& spec, const std::vector<Trial>& trials);

class ExperimentSink {
 public:
  virtual ~ExperimentSink() = default;
  virtual void begins(const Trial&, int /*repeat*/, int /*done*/, int /*of*/) {}
  virtual void ended(const TrialRun&) {}
  // Called after each training. Returns false after a GPU fault in this process: all further trainings would fail.
  virtual bool goes_on() const { return !gpu_lost(); }
};

// The folder of an experiment's results, created and claimed. Throws Failure if another process has it, or if a file in
// it cannot be written. A folder that stays empty is removed again.
class ExperimentFolder {
 public:
  explicit ExperimentFolder(const std::string& path);
  ~ExperimentFolder();

 private:
  std::string path_;
  std::optional<Ownership> owned_;
};

// Runs the trials that have no result in `folder`/results.jsonl, and repeats failed ones. Results of trials with
// other choices are ignored. A stop keeps the results so far.
ExperimentResult run_experiment(const ExperimentSpec& spec, const std::string& folder, const std::atomic<bool>& cancel,
                                ExperimentSink& sink, bool retry_failed = true);
// Lines of results.jsonl in a folder; empty if there is none.
std::vector<std::string> result_rows(const std::string& folder);
// `cuda`: the machine that runs it has a GPU.
ExperimentResult read_experiment(const std::string& folder, bool cuda = device_info().cuda);

// Returns sentences on the best and the worst choice by the main measure. Empty without results.
std::string measured_text(const ExperimentResult& result);
std::string experiment_table(const ExperimentResult& result);  // readable text
std::string experiment_csv(const ExperimentResult& result);
nlohmann::json to_json(const ExperimentResult& result);

}  // namespace ws::app
