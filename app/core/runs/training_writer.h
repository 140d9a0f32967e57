// Keeps the figures of one training and writes its run file, if one is wanted. It works outside the training thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "profiling/analysis/pace.h"
#include "profiling/collectors/collector.h"
#include "profiling/formats/join_ranks.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

class TrainingWriter {
 public:
  TrainingWriter(const std::string& title, const RunSpec& spec);
  // The run belongs to one rank, and its file will be joined with the files of the other ranks. Call it before open().
  void keep_rank(const LaunchedRank& self, int64_t origin_ns) { prof::keep_origin(summary_, self, origin_ns); }
  // Keeps the versions and texts of a person's kernels in the plan. They are part of the run.
  void keep_kernels(const Plan& plan);
  // Writes the run file from now on; `found` is as for RunFileWriter. Throws Failure.
  void open(const std::string& path, const std::optional<FoundFile>& found = {});
  void close() { file_.reset(); }  // keeps only the figures

  void add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs,
           const std::vector<Change>& changes);
  void add(prof::TraceBatch batch);
  void progress(const Progress& progress);
  void flush_if_due();
  void flush();  // writes what was added since the last one
  // Call after everything else. The cost of tracing and the lost records go into the file too.
  void finish(const Summary& summary, const prof::CollectorStatus& traced);
  const prof::RunSummary& summary() const { return summary_; }

 private:
  void add_window();
  void count_calls(prof::StepWindow& window);
  void take_step_time(const RunSpec& spec);

  prof::RunSummary summary_;
  RunSpec spec_;  // with the changes so far
  std::optional<prof::RunFileWriter> file_;
  prof::Trace recent_;  // the newest spans
  prof::PaceLog losses_;
  int64_t steady_since_ = 0;
  double steps_per_epoch_ = 0;
  int64_t tested_ = 0;  // the step of the last test
  Progress progress_;
  Progress counted_;  // progress at the last window
  double allocations_each_ = 0, frees_each_ = 0;
  prof::TimeNs window_end_ = 0;
};

}  // namespace ws::app
