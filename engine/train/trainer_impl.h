// The trainer's inside: what the loop (trainer.cpp) and the steering (trainer_steering.cpp) share.
#pragma once
#include <limits>

#include "engine/train/train_clock.h"
#include "engine/train/trainer.h"

namespace ws {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

class Trainer {
 public:
  Trainer(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
          const TrainOptions& options)
      : spec_(spec), data_(data), control_(control), sink_(sink), options_(options) {}
  Summary run();

 private:
  void prepare();
  std::string told_out_of_memory() const;
  TrainState continue_from(Checkpoint checkpoint);  // where to go on
  void open_executor(const TrainState& state);
  void compile_plans();

  void train_epochs();
  void begin_epoch();
  void run_chunk();
  void bind(const Plan& plan);
  void take_notes();
  void pace();
  void end_epoch();
  bool test_due(int64_t epochs) const;  // after so many
  int64_t whole_batches_ahead() const;

  void collect(int64_t steps);
  void add(const StepResult& result);
  void flush_epochs();
  void report_progress(bool now);

  bool heed();
  void attend();
  void answer_requests(std::unique_lock<std::mutex>& lock);
  void apply_changes(const std::vector<std::pair<std::string, std::string>>& changes);
  std::string try_switch(const RunSpec& next, const std::vector<FieldChange>& differences);
  void replace_executor(const TrainState& state);
  void keep_counts();
  void settle();

  void test(EpochResult* into);
  void save(bool last);
  void close();
  void count_up();

  int64_t rows_of(int64_t step) const {
    return (step + 1) % steps_per_epoch_ ? batch_ : rows_ - (steps_per_epoch_ - 1) * batch_;
  }
  int64_t graph_unit() const { return spec_.exec.launch == Launch::Graph ? spec_.exec.graph_steps : 1; }
  int64_t total_steps() const { return spec_.train.epochs * steps_per_epoch_; }

  RunSpec spec_;
  const data::Dataset& data_;
  TrainControl& control_;
  TrainSink& sink_;
  const TrainOptions& options_;

  Model model_;
  std::unique_ptr<Executor> executor_;
  CompiledPlan full_, tail_;  // for a whole batch, and for the rows left over at an epoch's end
  const Plan* bound_ = nullptr;
  int64_t rows_ = 0, batch_ = 0, steps_per_epoch_ = 0;
  std::vector<uint32_t> order_;
  bool order_given_ = false;

  int64_t step_ = 0, epoch_ = 0, row_ = 0;  // what has been handed to the executor
  int64_t first_step_ = 0, seen_ = 0;       // where this session began; steps whose results have arrived
  int64_t chunk_ = 1;
  bool single_ = false, ended_ = false;
  RunStatus status_ = RunStatus::Finished;

  std::vector<StepResult> fresh_;
  std::vector<EpochResult> complete_;  // epochs whose results have all arrived and that were not yet reported
  double epoch_loss_ = 0, epoch_correct_ = 0, last_loss_ = kNotANumber, last_finished_s_ = 0;
  std::optional<Evaluation> last_test_;
  int64_t last_test_step_ = -1;

  TrainClock clock_;
  double warm_s_ = 0, paced_s_ = 0, progress_s_ = -1, saved_at_ = 0;
  int64_t warm_steps_ = 0, paced_steps_ = 0, progress_steps_ = 0;
  AllocatorCalls earlier_calls_;  // of executors that a change replaced
  int64_t earlier_peak_ = 0;
  std::string save_problem_;
  Summary summary_;
};

}  // namespace ws
