// Epochs, batches, evaluation, control and checkpoints over any executor.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "engine/executor/executor.h"
#include "engine/passes/compile.h"
#include "engine/train/train_control.h"

namespace ws {

struct EpochResult {
  int64_t epoch = 0;  // 1-based
  int64_t step = 0;   // steps done
  double wall_s = 0;  // training time, pauses and evaluation excluded
  double train_loss = 0, train_accuracy = 0;
  std::optional<Evaluation> test;
};

struct Progress {
  int64_t epoch = 0, epochs = 0, step = 0, steps = 0;
  double elapsed_s = 0, left_s = 0, samples_per_s = 0;
  MemoryUse memory;
  AllocatorCalls calls;
  bool paused = false;
  int64_t started = 0;  // steps given to the executor: those that `calls` counts
};

struct Change {
  int64_t step = 0;  // the first step that runs with it
  std::string key, from, to;
};

enum class RunStatus { Finished, Stopped, Failed, TargetReached, TimeUp };
std::string_view to_string(RunStatus);

struct Summary {
  RunStatus status = RunStatus::Finished;
  std::string message;  // when failed: one sentence
  int64_t steps = 0, epochs = 0;
  double final_train_loss = 0;
  double test_loss = 0, test_accuracy = 0;
  double prepare_s = 0;                       // before the first step: kernels compiled and tried
  double wall_s = 0;                          // spent training
  double us_per_step = 0, samples_per_s = 0;  // without the first chunk, which also loads kernels and captures graphs
  int64_t peak_bytes = 0;
  AllocatorCalls calls;
  std::string device;
  RunSpec spec;
};

// Called on the training thread; each call returns quickly.
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
  }  // a change that cannot run; the old choice goes on
  virtual void finished(const Summary&) {}
};

struct TrainOptions {
  std::string checkpoint;   // written here at epochs' ends (at most once a second) and at the end; empty: none
  std::string resume_from;  // continue exactly from this checkpoint
  double progress_every_s = 1.0 / 30;
};

// Trains to the end, a stop, a target or a failure; never throws for what happens during the run: the summary says it.
Summary train(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
              const TrainOptions& options = {});

TrainState first_state(const Model& model, const RunSpec& spec);  // before any step

}  // namespace ws
