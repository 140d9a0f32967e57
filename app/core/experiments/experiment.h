// A question asked of the machine: one run description, axes or rungs to vary, every combination trained, repeats
// shuffled. Results go to a folder as they come, so that a killed experiment goes on where it was. No Qt in here.
#pragma once
#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/devices/devices.h"
#include "engine/train/trainer.h"

namespace ws::app {

using Setting = std::pair<std::string, std::string>;  // field key, value as --set takes it

struct ExperimentAxis {
  std::string key;
  std::vector<std::string> values;
};

// A step of a ladder: what changes with respect to the rung before it.
struct ExperimentRung {
  std::string label;
  std::vector<Setting> set;
};

struct ExperimentSpec {
  std::string name, title, text, expect;  // expect: what should come out, in a sentence
  std::string look_at = "us_per_step";    // the measure that tells the story: also first_loss, test_accuracy …
  RunSpec base;
  std::vector<ExperimentAxis> axes;    // all combinations of their values
  std::vector<ExperimentRung> ladder;  // or one after another, each on top of the ones before
  int repeats = 3;
  uint64_t seed = 1;  // of the order
};

struct Trial {
  int index = 0;
  std::string label;  // "caching · off"
  std::vector<Setting> set;
  RunSpec spec;
  std::string skipped;   // why it cannot run here; empty: it can
  std::string identity;  // of what is asked for, whatever its place among the others: results are kept under it
};

struct TrialRun {
  int trial = 0, repeat = 0;
  std::string status, message, file;  // file: its .wsrun, relative to the folder
  std::string device;                 // it ran on
  std::string identity;               // of the trial
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
  std::string name, title, text, path;
};
std::vector<ExperimentInfo> shipped_experiments();
ExperimentSpec load_experiment(const std::string& path_or_name);  // throws Failure naming the key
ExperimentSpec experiment_from_json(const nlohmann::json& json);
nlohmann::json to_json(const ExperimentSpec& spec);

std::vector<Trial> trials_of(const ExperimentSpec& spec, bool cuda);
// (trial, repeat) pairs in the order they run: shuffled, so that a drift of the machine falls on all alike.
std::vector<std::pair<int, int>> run_order(const ExperimentSpec& spec, const std::vector<Trial>& trials);

class ExperimentSink {
 public:
  virtual ~ExperimentSink() = default;
  virtual void begins(const Trial&, int /*repeat*/, int /*done*/, int /*of*/) {}
  virtual void ended(const TrialRun&) {}
  // Asked after each training. No where a fault has taken the GPU from this process: all that is left would fail.
  virtual bool goes_on() const { return !gpu_lost(); }
};

// Runs what is not yet in `folder`/results.jsonl, and what failed there; results of trials that were asked for
// differently count for nothing.
// A stop keeps what is there.
ExperimentResult run_experiment(const ExperimentSpec& spec, const std::string& folder, const std::atomic<bool>& cancel,
                                ExperimentSink& sink, bool retry_failed = true);
ExperimentResult read_experiment(const std::string& folder);

// What came out, in sentences: the best and the worst choice by the measure that tells the story. Empty without
// results.
std::string measured_text(const ExperimentResult& result);
std::string experiment_table(const ExperimentResult& result);  // readable text
std::string experiment_csv(const ExperimentResult& result);
nlohmann::json to_json(const ExperimentResult& result);

}  // namespace ws::app
