// Joins the trainer and the collectors: one run's losses and trace go to its run file and to an inbox that a window or
// a progress bar empties. No Qt in here: the command-line program and the window share it.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "profiling/collectors/collector.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

struct RecorderOptions {
  std::string path;  // the .wsrun to write; empty: none
  bool may_go_unkept = false;  // a file that cannot be written neither stops the training nor makes it a failure
  std::string title;
  prof::CollectorOptions trace{.level = prof::TraceLevel::Off};
  bool keep_traces = true;                                      // for take(); off when only the file is wanted
  std::function<void()> at_start;                               // before the first step, on the training thread
  std::function<void(const EpochResult&, Executor&)> at_epoch;  // at each one's end, on the training thread
};

struct RunMessage {
  std::string text;      // "tracing is off: nsys is attached"
  bool problem = false;  // something is lost while the run goes on: a person must know now
};

// What happened since the last take(); moved out under a lock held only for the move.
struct RunUpdate {
  std::optional<CompiledPlan> plan;  // at the start, and after a change that recompiles
  std::vector<StepResult> steps;
  std::vector<EpochResult> epochs;
  std::vector<Change> changes;
  std::optional<Progress> progress;
  std::vector<prof::TraceBatch> traces;  // in order; each goes into a Trace with prof::append
  std::optional<Summary> summary;        // the run has ended
  std::vector<RunMessage> messages;      // for the log
  prof::RunSummary account;              // with the summary: what its file says, with or without a file
};

// A training run with its tracing; run() blocks on the thread that calls it.
class TracedTraining {
 public:
  TracedTraining(RunSpec spec, RecorderOptions options, TrainOptions train = {});
  ~TracedTraining();
  Summary run(const data::Dataset& data);
  TrainControl& control();
  RunUpdate take();                              // any thread
  void set_trace_level(prof::TraceLevel level);  // any thread
  prof::CollectorStatus trace_status() const;    // any thread
  const prof::RunSummary& account() const;       // once run() is over

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ws::app
