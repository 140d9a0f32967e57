// The folder that a run leaves behind: metrics.csv, summary.json and the checkpoint.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/train/trainer.h"
#include "profiling/base/ownership.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// The figures as the run file has them; not-a-number becomes null.
nlohmann::json summary_json(const Summary& summary, const prof::RunSummary& account);

class TrainingFolder {
 public:
  // Makes and owns the folder and touches nothing in it: what an earlier run left stays until begin(). Going on from a
  // checkpoint at `keep_steps`, the rows up to it stay. Throws Failure.
  TrainingFolder(const std::string& folder, int64_t steps_per_epoch, int64_t keep_steps);
  // A folder that was not there before: NAME, or NAME-2 and so on.
  static std::string make_new(const std::string& name);
  static std::string checkpoint_path(const std::string& folder) { return folder + "/checkpoint.wsck"; }

  // Before the first step: a checkpoint of an earlier run does not belong to the rows that come now. A table that cannot
  // be written is said before the training.
  void begin();
  // In the order in which they came; an epoch's test values go to the row of its last step.
  void add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs);
  // Writes what is left; throws Failure when the disk took less than that. A run without a step leaves nothing.
  void finish(const Summary& summary, const prof::RunSummary& account);

 private:
  struct Row {
    StepResult result;
    int64_t epoch = 0;
    std::optional<Evaluation> test;
  };
  void open();
  void write(const Row& row);
  void keep_rows() const;
  bool has_summary_of(int64_t steps) const;
  bool ends_epoch(const Row& row) const { return (row.result.step + 1) % steps_per_epoch_ == 0; }
  void write_summary(const Summary& summary, const prof::RunSummary& account) const;

  std::string folder_, metrics_path_;
  int64_t steps_per_epoch_, keep_steps_;
  bool made_ = false;  // the folder was not there before
  std::unique_ptr<Ownership> owned_;
  std::ofstream metrics_;
  std::vector<Row> held_;  // may still get test values
};

}  // namespace ws::app
