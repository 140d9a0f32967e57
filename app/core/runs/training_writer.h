// Writes one run into its run file, away from the training thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "profiling/collectors/collector.h"
#include "profiling/run_file/run_file.h"

namespace ws::app {

class TrainingWriter {
 public:
  TrainingWriter(const std::string& path, const std::string& title, const RunSpec& spec);  // throws Failure

  void add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs,
           const std::vector<Change>& changes);
  void add(prof::TraceBatch batch);
  void progress(const Progress& progress);
  void flush_if_due();
  // After the last of everything. What tracing cost and lost goes into the file too.
  void finish(const Summary& summary, const prof::CollectorStatus& traced);

 private:
  void add_window();

  prof::RunSummary summary_;
  prof::RunFileWriter writer_;
  prof::Trace recent_;  // since the last window
  Progress progress_;
  AllocatorCalls counted_;
  prof::TimeNs window_end_ = 0;
};

}  // namespace ws::app
