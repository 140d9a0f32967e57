// Joins the trainer and the collectors. The losses and the trace of a run go to its run file, and to an inbox that a
// window or a progress bar reads. The command line and the window share it. No Qt here.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/trainer.h"
#include "profiling/base/file_identity.h"
#include "profiling/collectors/collector.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

struct RecorderOptions {
  std::string path;  // the .wsrun to write, once the training is accepted; empty if none
  std::optional<FoundFile> found;  // the file that it may replace, as check_run_file() returns it; nullopt: any run file
  bool may_go_unkept = false;  // a failed write of the file neither stops nor fails the training
  std::string title;
  prof::CollectorOptions trace{.level = prof::TraceLevel::Off};
  bool keep_traces = true;                                      // for take(); turn off if only the file is needed
  std::function<void()> at_start;                               // before the first step, on the training thread
  std::function<void(const EpochResult&, Executor&)> at_epoch;  // at the end of each epoch, on the training thread
};

struct RunMessage {
  std::string text;      // "tracing is off: nsys is attached"
  bool problem = false;  // something is lost while the run continues: the user must know now
};

// What happened since the last take(). It is moved out under a lock that is held only for the move.
struct RunUpdate {
  std::optional<CompiledPlan> plan;  // at the start, and after a change that recompiles
  std::vector<StepResult> steps;
  std::vector<EpochResult> epochs;
  std::vector<Change> changes;
  std::optional<Progress> progress;
  std::vector<prof::TraceBatch> traces;  // in order; each goes into a Trace with prof::append
  std::optional<Summary> summary;        // set if the run has ended
  std::vector<RunMessage> messages;      // for the log
  prof::RunSummary account;              // comes with the summary: the text of the file, even if there is no file
  bool file_moved = false;               // the name of the run file belongs to another file, or to none
};

// A training run with its tracing. run() blocks the calling thread.
class TracedTraining {
 public:
  TracedTraining(RunSpec spec, RecorderOptions options, TrainOptions train = {});
  ~TracedTraining();
  Summary run(const data::Dataset& data);
  TrainControl& control();
  RunUpdate take();                              // any thread; what happened since the last call
  void set_trace_level(prof::TraceLevel level);  // any thread
  prof::CollectorStatus trace_status() const;    // any thread
  const prof::RunSummary& account() const;       // valid once run() is over
  const std::string& file_problem() const;       // valid once run() is over: why the run file is not complete; empty: it is
  bool file_moved() const;                       // any thread

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ws::app
