// Epochs, batches, evaluation, control and checkpoints over any executor.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/passes/compile.h"
#include "engine/executor/executor.h"

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

// Shared between the training thread and whoever steers it; every function may be called from any thread.
class TrainControl {
 public:
  void pause();
  void resume();
  void step_once();  // while paused: one more step
  void stop();
  // Takes effect at the next step; throws SpecError when the field cannot change in mid-run.
  void change(std::string key, std::string value);
  bool paused() const;
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }
  // Runs on the training thread between two steps, e.g. to read weights or predict.
  void ask(std::function<void(Executor&)> question);

 private:
  friend class Trainer;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false}, attention_{false};
  bool paused_ = false;
  int single_steps_ = 0;
  std::vector<std::pair<std::string, std::string>> changes_;
  std::vector<std::function<void(Executor&)>> questions_;
};

struct TrainOptions {
  std::string checkpoint;   // written here at epochs' ends (at most once a second) and at the end; empty: none
  std::string resume_from;  // continue exactly from this checkpoint
  double progress_every_s = 1.0 / 30;
};

// Trains to the end, a stop, a target or a failure; never throws for what happens during the run: the summary says it.
Summary train(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
              const TrainOptions& options = {});

double learning_rate(const TrainSpec& spec, int64_t step, int64_t steps_per_epoch);
TrainState first_state(const Model& model, const RunSpec& spec);  // before any step
std::vector<uint32_t> epoch_order(const TrainSpec& spec, int64_t rows, int64_t epoch);

struct Checkpoint {
  RunSpec spec;
  TrainState state;
  int64_t epoch = 0, row = 0;  // where in the epoch it stands
  double wall_s = 0;
  double epoch_loss = 0, epoch_correct = 0;  // sums over the rows of the running epoch
};
void save_checkpoint(const Checkpoint&, const std::string& path);  // temporary name, fsync, rename
Checkpoint load_checkpoint(const std::string& path);
Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name);  // name: for the messages

}  // namespace ws
