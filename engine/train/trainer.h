// The training loop: epochs, batches, evaluation, control and checkpoints on any executor.
#pragma once
#include <limits>
#include <optional>
#include <string>

#include "engine/executor/executor.h"
#include "engine/passes/compile.h"
#include "engine/ranks/rank_processes.h"
#include "engine/train/train_control.h"

namespace ws {

struct EpochResult {
  int64_t epoch = 0;  // 1-based
  int64_t step = 0;   // steps done
  double wall_s = 0;  // training time without pauses and evaluation
  double train_loss = 0, train_accuracy = 0;
  std::optional<Evaluation> test;
};

struct Progress {
  int64_t epoch = 0, epochs = 0, step = 0, steps = 0;
  double elapsed_s = 0, left_s = 0, samples_per_s = 0;
  MemoryUse memory;
  AllocatorCalls calls;
  bool paused = false;
  int64_t started = 0;  // steps given to the executor, which are the steps that `calls` counts
};

struct Change {
  int64_t step = 0;  // the first step with the new value
  std::string key, from, to;
};

enum class RunStatus { Finished, Stopped, Failed, TargetReached, TimeUp };
std::string_view to_string(RunStatus);

struct Summary {
  RunStatus status = RunStatus::Finished;
  std::string message;  // one sentence if the run failed
  int64_t steps = 0, epochs = 0;
  double final_train_loss = std::numeric_limits<double>::quiet_NaN();
  double test_loss = final_train_loss, test_accuracy = final_train_loss;  // NaN: not tested
  double prepare_s = 0;                       // time before the first step: compiling and trying kernels
  double wall_s = 0;                          // training time
  double us_per_step = 0, samples_per_s = 0;  // without the first chunk, which also loads kernels and captures graphs
  int64_t peak_bytes = 0;
  AllocatorCalls calls;
  std::string device;
  RunSpec spec;
};

// The training reports here. Calls come from the training thread and must return quickly.
class TrainSink {
 public:
  virtual ~TrainSink() = default;
  virtual void started(const RunSpec&, const Model&, const CompiledPlan&, const data::Dataset&, Executor&) {}
  virtual void recompiled(const CompiledPlan&) {}
  virtual void steps(std::span<const StepResult>) {}
  virtual void epoch(const EpochResult&, Executor&) {}
  virtual void progress(const Progress&) {}
  virtual void changed(const Change&) {}
  virtual void refused(const Change&, const std::string& /*why*/) {
  }  // the change cannot run; the old choice stays
  virtual void finished(const Summary&) {}
};

struct TrainOptions {
  std::string checkpoint;   // file to write at the end and at epoch ends (at most once a second); empty: none
  std::string resume_from;  // checkpoint to continue from exactly
  double progress_every_s = 1.0 / 30;
  RankProcesses* processes = nullptr;  // the ranks are processes; null: they are threads
};

// Trains until the end, a stop, a target or a failure. A failure during the run does not throw: the summary reports it.
// In a process of another rank than 0, works for rank 0 as long: `control` and the checkpoints belong to rank 0.
Summary train(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
              const TrainOptions& options = {});

TrainState first_state(const Model& model, const RunSpec& spec);  // the state before any step

}  // namespace ws
