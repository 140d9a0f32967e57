// The output folder of a run: metrics.csv, summary.json and the checkpoint.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/train/trainer.h"
#include "profiling/base/ownership.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

// The same figures as in the run file; NaN becomes null.
nlohmann::json summary_json(const Summary& summary, const prof::RunSummary& account);

class TrainingFolder {
 public:
  // Creates and owns the folder, but leaves its contents unchanged until begin(). When a run resumes from a
  // checkpoint at `keep_steps`, the rows up to it are kept. Throws Failure.
  TrainingFolder(const std::string& folder, int64_t steps_per_epoch, int64_t keep_steps);
  // Creates a folder that did not exist before: NAME, or NAME-2 and so on.
  static std::string make_new(const std::string& name);
  static std::string checkpoint_path(const std::string& folder) { return folder + "/checkpoint.wsck"; }

  // Call before the first step. Removes the checkpoint of an earlier run, which does not belong to the new rows.
  // Reports a table that cannot be written before the training starts.
  void begin();
  // Takes results in order. The test values of an epoch go to the row of its last step.
  void add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs);
  // Writes the rest. Throws Failure if a write failed. A run without a step leaves nothing.
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
  bool made_ = false;  // the folder did not exist before
  std::unique_ptr<Ownership> owned_;
  std::ofstream metrics_;
  std::vector<Row> held_;  // rows that may still get test values
};

}  // namespace ws::app
