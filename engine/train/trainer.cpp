#include "engine/train/trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include "engine/devices/devices.h"
#include "engine/own_kernels/kernel_versions.h"
#include "engine/passes/memory_need.h"
#include "engine/train/checkpoint.h"
#include "engine/train/schedule.h"
#include "engine/train/train_clock.h"
#include "profiling/base/clock.h"

namespace ws {
constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

// Gives the executor chunks of steps, collects the results, and handles control requests between two chunks.
class Trainer {
 public:
  Trainer(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
          const TrainOptions& options)
      : spec_(spec), data_(data), control_(control), sink_(sink), options_(options) {}
  Summary run();

 private:
  void prepare();
  std::string out_of_memory_text() const;
  TrainState continue_from(Checkpoint checkpoint);  // returns the state to continue from
  void open_executor(const TrainState& state);
  void compile_plans();

  void bind_plans();
  void train_epochs();
  void begin_epoch();
  void run_chunk();
  void bind(const Plan& plan);
  void take_notes();
  void pace();
  void end_epoch();
  bool test_due(int64_t epochs) const;  // true if a test is due after this many epochs
  int64_t whole_batches_ahead() const;

  void collect(int64_t steps);
  void add(const StepResult& result);
  void flush_epochs();
  void report_progress(bool now);

  bool handle_requests();
  void wait_while_paused();
  void answer_requests(std::unique_lock<std::mutex>& lock);
  void apply_changes(const std::vector<std::pair<std::string, std::string>>& changes);
  std::string try_switch(const RunSpec& next, const std::vector<FieldChange>& differences);
  void replace_executor(const TrainState& state);
  AllocatorCalls all_calls() const;
  void keep_counts();
  void settle();

  void test(EpochResult* into);
  void save(bool last);
  void close();
  void count_up();

  int64_t rows_of(int64_t step) const {
    return (step + 1) % steps_per_epoch_ ? batch_ : rows_ - (steps_per_epoch_ - 1) * batch_;
  }
  int64_t total_steps() const { return spec_.train.epochs * steps_per_epoch_; }

  RunSpec spec_;
  const data::Dataset& data_;
  TrainControl& control_;
  TrainSink& sink_;
  const TrainOptions& options_;

  Model model_;
  std::unique_ptr<Executor> executor_;
  CompiledPlan full_, tail_;  // for a full batch, and for the remaining rows at the end of an epoch
  const Plan* bound_ = nullptr;
  int64_t rows_ = 0, batch_ = 0, steps_per_epoch_ = 0;
  std::vector<uint32_t> order_;
  bool order_given_ = false;

  int64_t step_ = 0, epoch_ = 0, row_ = 0;  // position of the work given to the executor
  int64_t first_step_ = 0, seen_ = 0;       // first step of this session; steps whose results have arrived
  int64_t chunk_ = 1;
  bool single_ = false, ended_ = false;
  RunStatus status_ = RunStatus::Finished;

  std::vector<StepResult> fresh_;
  std::vector<EpochResult> complete_;  // epochs with all results that are not reported yet
  double epoch_loss_ = 0, epoch_correct_ = 0, last_loss_ = kNotANumber, last_finished_s_ = 0;
  std::optional<Evaluation> last_test_;
  int64_t last_test_step_ = -1;

  TrainClock clock_;
  double warm_s_ = 0, paced_s_ = 0, progress_s_ = -1, saved_at_ = 0;
  int64_t warm_steps_ = 0, paced_steps_ = 0, progress_steps_ = 0;
  AllocatorCalls earlier_calls_;  // calls of executors that a change replaced
  int64_t earlier_peak_ = 0;
  std::string save_problem_;
  Summary summary_;
};

namespace {

constexpr double kChunkSeconds = 0.008;     // host time per chunk: short enough to answer a request at once
constexpr int64_t kLongestChunk = 1024;     // steps
constexpr double kCheckpointSeconds = 1.0;  // minimum time between two checkpoints during a run

// Only these fields may differ when a checkpoint is continued.
constexpr std::array<std::string_view, 4> kMayDiffer = {"exec.", "train.epochs", "train.time_limit_s",
                                                        "train.target_accuracy"};

bool may_differ_on_resume(std::string_view key) {
  if (field(key).live) return true;
  return std::ranges::any_of(kMayDiffer, [&](std::string_view start) { return key.starts_with(start); });
}

void require_same_shapes(const TrainState& found, const Model& model, Optimizer optimizer) {
  const auto fits = [&](const std::vector<std::vector<float>>& tensors) {
    return std::ranges::equal(
        tensors, model.parameters, {}, [](const auto& t) { return static_cast<int64_t>(t.size()); },
        &Parameter::elements);
  };
  bool same = fits(found.parameters);
  for (int slot = 0; slot < 2; ++slot)
    same = same && (slot < moments_of(optimizer) ? fits(found.moments[slot]) : found.moments[slot].empty());
  if (!same) throw Failure("the checkpoint's tensors do not have the sizes of this model");
}

// Changing these makes a new plan for the same executor. Any other execution change makes a new executor.
constexpr std::array<std::string_view, 6> kPlanOnly = {"exec.allocator", "exec.sync",   "exec.fusion",
                                                        "exec.attention", "exec.layout", "exec.kernels"};

// Checks that loss and pictures suit the data, which is known only after loading.
std::optional<std::string> why_the_data_does_not_fit(const RunSpec& spec, const data::Dataset& data) {
  const ModelSpec& model = spec.model;
  const bool classes = data.task == data::Task::Classification;
  if (model.loss == LossKind::CrossEntropy && !classes)
    return "cross-entropy: " + data.name + " has numbers to predict, not classes; choose the loss mean-squared.";
  if (model.loss == LossKind::MeanSquared && classes)
    return "mean-squared: " + data.name + " has classes to predict, not numbers; choose the loss cross-entropy.";
  if (const auto reason = why_not_prepared(spec.data, input_shape(data))) return reason->text;
  return std::nullopt;
}

bool executes(const FieldChange& change) { return change.key.starts_with("exec."); }
bool needs_new_executor(const FieldChange& change) {
  return executes(change) && std::ranges::find(kPlanOnly, change.key) == kPlanOnly.end();
}

}  // namespace

TrainState first_state(const Model& model, const RunSpec& spec) {
  TrainState state;
  for (size_t i = 0; i < model.parameters.size(); ++i)
    state.parameters.push_back(initial_values(model, spec.model, static_cast<ParamId>(i), spec.train.seed));
  for (int slot = 0; slot < moments_of(spec.train.optimizer); ++slot)
    for (const auto& values : state.parameters) state.moments[slot].emplace_back(values.size(), 0.0f);
  return state;
}

Summary Trainer::run() {
  summary_.spec = spec_;
  try {
    prepare();
    train_epochs();
    close();
  } catch (const std::bad_alloc&) {
    summary_.status = RunStatus::Failed;
    summary_.message = out_of_memory_text();
  } catch (const std::exception& problem) {
    summary_.status = RunStatus::Failed;
    summary_.message = problem.what();
  }
  clock_.stop();
  count_up();
  sink_.finished(summary_);
  return summary_;
}

// Returns the message for missing host memory; the GPU has its own message. Computing it needs memory too.
std::string Trainer::out_of_memory_text() const {
  constexpr const char* kBriefly = "There was not enough memory to continue the training.";
  if (model_.parameters.empty()) return kBriefly;
  try {
    const MemoryUse use = executor_ ? executor_->memory() : MemoryUse{};
    const int64_t ours = wants_cuda(spec_) ? 0 : use.reserved + use.parameter_bytes;
    FreeMemory free = free_memory_for(spec_);
    free.host_bytes += ours;
    // There is much more memory than the run needs, so the shortage was temporary.
    if (2 * host_bytes_needed(spec_, model_, data_, free.on_gpu()) < free.host_bytes) return kBriefly;
    return out_of_memory(spec_, model_, data_, free).text;
  } catch (const std::exception&) {
    return kBriefly;
  }
}

void Trainer::prepare() {
  if (const auto reason = why_invalid(spec_, device_info().cuda)) throw Failure(reason->text);
  own::fix_versions(spec_);
  spec_.exec.gpus = options_.processes ? options_.processes->count() : ranks_of(spec_);
  rows_ = data_.train.rows;
  if (rows_ <= 0) throw Failure("the data set " + data_.name + " has no training rows");
  if (const auto reason = why_the_data_does_not_fit(spec_, data_)) throw Failure(*reason);
  batch_ = spec_.train.batch == 0 ? rows_ : std::min(spec_.train.batch, rows_);
  steps_per_epoch_ = (rows_ + batch_ - 1) / batch_;
  if (const int64_t left = rows_ % batch_, last = left ? left : batch_; last < spec_.exec.gpus)
    throw Failure("The last batch of an epoch has " + std::to_string(last) + (last == 1 ? " row" : " rows") + ", fewer than the " +
                  std::to_string(spec_.exec.gpus) + " ranks: choose another batch or fewer GPUs.");
  model_ = make_model(spec_.model, data_);
  RunSpec here = spec_;
  if (options_.processes) here.exec.gpus = options_.processes->on_this_host();
  if (const auto reason = why_it_does_not_fit(here, model_, data_, free_memory_for(spec_))) throw Failure(reason->text);
  const bool fresh = options_.resume_from.empty();
  compile_plans();
  open_executor(fresh ? first_state(model_, spec_) : continue_from(load_checkpoint(options_.resume_from)));
  sink_.started(spec_, model_, full_, data_, *executor_);
}

TrainState Trainer::continue_from(Checkpoint checkpoint) {
  for (const FieldChange& change : diff(checkpoint.spec, spec_))
    if (!may_differ_on_resume(change.key))
      throw Failure("the checkpoint was made with " + change.key + " = " + change.from + ", this run asks for " +
                    change.to);
  require_same_shapes(checkpoint.state, model_, spec_.train.optimizer);
  step_ = first_step_ = seen_ = paced_steps_ = progress_steps_ = checkpoint.state.step;
  epoch_ = checkpoint.epoch, row_ = checkpoint.row;
  if (row_ > rows_ || step_ != epoch_ * steps_per_epoch_ + (row_ + batch_ - 1) / batch_)
    throw Failure("the checkpoint's position does not fit this data set of " + std::to_string(rows_) + " rows");
  clock_.set(checkpoint.wall_s);
  warm_s_ = paced_s_ = last_finished_s_ = checkpoint.wall_s;
  epoch_loss_ = checkpoint.epoch_loss, epoch_correct_ = checkpoint.epoch_correct;
  return std::move(checkpoint.state);
}

void Trainer::open_executor(const TrainState& state) {
  executor_ = make_executor(spec_, options_.processes);
  executor_->load(model_, data_, spec_);
  executor_->set_state(state);
  bound_ = nullptr;
  order_given_ = false;
  chunk_ = steps_at_once(spec_);
}

void Trainer::compile_plans() {
  bound_ = nullptr;
  full_ = compile(spec_, model_, batch_);
  if (rows_ % batch_) tail_ = compile(spec_, model_, rows_ % batch_);
}

// Compiling kernels and trying products does not count as training time.
void Trainer::bind_plans() {
  const double begin = prof::steady_seconds();
  if (!tail_.plan.ops.empty()) bind(tail_.plan);
  bind(full_.plan);
  summary_.prepare_s = prof::steady_seconds() - begin;
}

void Trainer::train_epochs() {
  bind_plans();
  clock_.start();
  while (epoch_ < spec_.train.epochs && !ended_) {
    begin_epoch();
    while (row_ < rows_ && handle_requests()) run_chunk();
    if (row_ == rows_) end_epoch();
  }
}

void Trainer::begin_epoch() {
  const bool same_every_epoch = !spec_.train.shuffle || batch_ == rows_;
  if (order_given_ && same_every_epoch) return;
  if (order_.empty() || !same_every_epoch) order_ = epoch_order(spec_.train, rows_, epoch_);
  executor_->begin_epoch(order_);
  order_given_ = true;
}

void Trainer::bind(const Plan& plan) {
  if (bound_ == &plan) return;
  executor_->bind(plan);
  bound_ = &plan;
  if (&plan == &full_.plan) take_notes();
}

// Only binding shows what the machine's libraries made of the plan, so the sink gets the plan again.
void Trainer::take_notes() {
  if (add_notes(full_.plan, executor_->notes())) sink_.recompiled(full_);
}

// Returns how many full batches the executor may get at once: the rest of the epoch. If an epoch is a single step, it
// is one batch per epoch up to the next evaluation.
int64_t Trainer::whole_batches_ahead() const {
  if (steps_per_epoch_ > 1) return (rows_ - row_) / batch_;
  const int64_t most = std::min(chunk_, spec_.train.epochs - epoch_);
  int64_t epochs = 1;
  while (epochs < most && !test_due(epoch_ + epochs)) ++epochs;
  return epochs;
}

void Trainer::run_chunk() {
  const int64_t whole = whole_batches_ahead();
  const int64_t count = whole == 0 ? 1 : std::min(whole, single_ ? 1 : chunk_);
  bind(whole == 0 ? tail_.plan : full_.plan);
  std::vector<float> rates(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    rates[static_cast<size_t>(i)] = static_cast<float>(learning_rate(spec_.train, step_ + i, steps_per_epoch_));
  if (!order_given_) begin_epoch();  // a change during the epoch made a new executor
  executor_->run(step_, row_, rates);
  step_ += count;
  row_ = std::min(rows_, row_ + count * batch_);
  if (steps_per_epoch_ == 1) epoch_ += count - 1;  // the caller ends the last of these epochs
  pace();
  report_progress(false);
}

// Sizes the next chunk by the measured speed, and waits if the device is more than one chunk behind. So the queue is
// short enough for a fast pause and never becomes empty.
void Trainer::pace() {
  const bool first = warm_steps_ == 0;
  collect(first || single_ ? step_ : step_ - chunk_);
  if (first) {
    warm_steps_ = step_ - first_step_;
    warm_s_ = clock_.seconds();
  }
  const double now = clock_.seconds();
  if (seen_ <= paced_steps_ || now <= paced_s_) return;
  const double step_s = (now - paced_s_) / static_cast<double>(seen_ - paced_steps_);
  paced_s_ = now, paced_steps_ = seen_;
  const auto wanted = static_cast<int64_t>(kChunkSeconds / step_s);
  chunk_ = std::clamp<int64_t>(wanted, 1, std::min(kLongestChunk, 2 * chunk_));
  const int64_t unit = steps_at_once(spec_);
  chunk_ = std::max(unit, chunk_ / unit * unit);
}

bool Trainer::test_due(int64_t epochs) const {
  if (data_.test.rows == 0) return false;
  if (epochs == spec_.train.epochs) return true;
  const int64_t every = spec_.train.eval_every > 0 ? spec_.train.eval_every : spec_.train.target_accuracy > 0 ? 1 : 0;
  return every > 0 && epochs % every == 0;
}

void Trainer::end_epoch() {
  ++epoch_;
  row_ = 0;
  if (test_due(epoch_)) {
    collect(step_);
    test(complete_.empty() ? nullptr : &complete_.back());
    const double target = spec_.train.target_accuracy;
    if (target > 0 && last_test_->accuracy >= target) {
      status_ = RunStatus::TargetReached;
      ended_ = true;
    }
  }
  flush_epochs();
  save(false);
}

// Collects the results known now, and waits for the results of the first `steps` steps of the run.
void Trainer::collect(int64_t steps) {
  fresh_.clear();
  if (steps >= step_)
    executor_->results(fresh_, true);
  else
    executor_->catch_up(fresh_, steps);
  if (fresh_.empty()) return;
  const double shift = clock_.seconds() - prof::steady_seconds();  // offset to the training clock
  for (StepResult& result : fresh_) {
    result.finished_s = last_finished_s_ = std::max(last_finished_s_, result.finished_s + shift);
    add(result);
  }
  sink_.steps(fresh_);
}

void Trainer::add(const StepResult& result) {
  const double rows = static_cast<double>(rows_of(result.step));
  seen_ = result.step + 1;
  last_loss_ = result.loss;
  epoch_loss_ += rows * static_cast<double>(result.loss);
  epoch_correct_ += rows * static_cast<double>(result.accuracy);
  if (seen_ % steps_per_epoch_ != 0) return;
  const double all = static_cast<double>(rows_);
  complete_.push_back(
      {seen_ / steps_per_epoch_, seen_, result.finished_s, epoch_loss_ / all, epoch_correct_ / all, {}});
  epoch_loss_ = epoch_correct_ = 0;
}

void Trainer::flush_epochs() {
  for (const EpochResult& result : complete_) sink_.epoch(result, *executor_);
  complete_.clear();
}

void Trainer::report_progress(bool now) {
  const double elapsed = clock_.seconds();
  if (!now && elapsed - progress_s_ < options_.progress_every_s) return;
  Progress p{std::min(epoch_ + 1, spec_.train.epochs), spec_.train.epochs, seen_, total_steps(), elapsed};
  const double span = elapsed - progress_s_;
  const double rate = progress_s_ >= 0 && span > 0 ? static_cast<double>(seen_ - progress_steps_) / span : 0;
  p.samples_per_s = rate * static_cast<double>(rows_) / static_cast<double>(steps_per_epoch_);
  const double mean_s = seen_ > first_step_ ? elapsed / static_cast<double>(seen_) : 0;
  p.left_s = mean_s * static_cast<double>(p.steps - seen_);
  p.memory = executor_->memory();
  p.memory.peak = std::max(p.memory.peak, earlier_peak_);
  p.calls = all_calls();
  p.started = step_;
  p.paused = now && control_.paused();
  sink_.progress(p);
  progress_s_ = elapsed, progress_steps_ = seen_;
}

void Trainer::test(EpochResult* into) {
  clock_.stop();
  last_test_ = executor_->evaluate(Part::Test);
  last_test_step_ = step_;
  if (into) into->test = last_test_;
  clock_.start();
}

// A checkpoint that cannot be written does not stop the training. Only the last one counts.
void Trainer::save(bool last) {
  if (options_.checkpoint.empty() || step_ == first_step_) return;  // nothing new: the existing file stays
  if (!last && clock_.seconds() - saved_at_ < kCheckpointSeconds) return;
  collect(step_);
  clock_.stop();
  Checkpoint c{spec_, executor_->state(), epoch_, row_, clock_.seconds(), epoch_loss_, epoch_correct_};
  c.state.step = step_;
  try {
    save_checkpoint(c, options_.checkpoint);
    save_problem_.clear();
  } catch (const Failure& problem) {
    save_problem_ = problem.what();
  }
  saved_at_ = clock_.seconds();
  clock_.start();
}

void Trainer::close() {
  collect(step_);
  clock_.stop();
  if (data_.test.rows > 0 && last_test_step_ != step_) test(nullptr);
  clock_.stop();
  flush_epochs();
  report_progress(true);
  save(true);
  clock_.stop();
  summary_.status = save_problem_.empty() ? status_ : RunStatus::Failed;
  if (!save_problem_.empty()) summary_.message = "The model is not saved: " + save_problem_;
}

void Trainer::count_up() {
  summary_.spec = spec_;
  summary_.steps = seen_;
  summary_.epochs = steps_per_epoch_ ? seen_ / steps_per_epoch_ : 0;
  summary_.final_train_loss = last_loss_;
  summary_.test_loss = last_test_ ? last_test_->loss : kNotANumber;
  summary_.test_accuracy = last_test_ ? last_test_->accuracy : kNotANumber;
  summary_.wall_s = clock_.seconds();
  const int64_t steady = seen_ - first_step_ - warm_steps_;
  const double seconds = last_finished_s_ - warm_s_;
  if (steady > 0 && seconds > 0) {
    summary_.us_per_step = seconds * 1e6 / static_cast<double>(steady);
    summary_.samples_per_s =
        static_cast<double>(steady) * static_cast<double>(rows_) / static_cast<double>(steps_per_epoch_) / seconds;
  }
  if (executor_) summary_.device = executor_->device_name();
  keep_counts();
  summary_.calls = earlier_calls_;
  summary_.peak_bytes = earlier_peak_;
}

// Returns false if the run should end here.
bool Trainer::handle_requests() {
  if (control_.attention_.exchange(false)) wait_while_paused();
  const double limit = spec_.train.time_limit_s;
  if (control_.stopping()) {
    status_ = RunStatus::Stopped;
    ended_ = true;
  } else if (limit > 0 && clock_.seconds() >= limit) {
    status_ = RunStatus::TimeUp;
    ended_ = true;
  }
  return !ended_;
}

void Trainer::wait_while_paused() {
  clock_.stop();
  std::unique_lock lock(control_.mutex_);
  bool settled = false;
  for (;;) {
    answer_requests(lock);
    single_ = false;
    if (!control_.paused_ || control_.stopping()) break;
    if (control_.single_steps_ > 0) {
      --control_.single_steps_;
      single_ = control_.attention_ = true;
      break;
    }
    if (!std::exchange(settled, true)) {
      lock.unlock();
      settle();
      lock.lock();
      continue;  // a request may have arrived meanwhile
    }
    if (control_.changes_.empty() && control_.questions_.empty()) control_.wake_.wait(lock);
  }
  lock.unlock();
  clock_.start();
}

// The lock is held on entry and on return, and released during the work.
void Trainer::answer_requests(std::unique_lock<std::mutex>& lock) {
  const auto changes = std::exchange(control_.changes_, {});
  const auto questions = std::exchange(control_.questions_, {});
  if (changes.empty() && questions.empty()) return;
  lock.unlock();
  if (!changes.empty()) apply_changes(changes);
  for (const auto& question : questions) question(*executor_);
  lock.lock();
}

// While paused: reports everything that is known.
void Trainer::settle() {
  collect(step_);
  flush_epochs();
  report_progress(true);
}

void Trainer::apply_changes(const std::vector<std::pair<std::string, std::string>>& changes) {
  RunSpec next = spec_;
  for (const auto& [key, value] : changes) set_field(next, key, value);
  std::string unreadable;
  try {
    own::fix_versions(next);  // a saved change of a kernel is a change of the run
  } catch (const Failure& problem) {
    unreadable = problem.what();
  }
  const auto differences = diff(spec_, next);
  if (differences.empty()) return;
  collect(step_);
  const std::string refusal = unreadable.empty() ? try_switch(next, differences) : unreadable;
  for (const FieldChange& c : differences) {
    const Change change{step_, c.key, c.from, c.to};
    if (refusal.empty())
      sink_.changed(change);
    else
      sink_.refused(change, refusal);
  }
}

// Returns why it restored the old choices, or an empty string if the new ones run.
std::string Trainer::try_switch(const RunSpec& next, const std::vector<FieldChange>& differences) {
  if (auto reason = why_invalid(next, device_info().cuda)) return reason->text;
  const RunSpec before = std::exchange(spec_, next);
  if (std::ranges::none_of(differences, executes)) return {};
  const TrainState state = executor_->state();
  try {
    compile_plans();
    if (std::ranges::any_of(differences, needs_new_executor)) replace_executor(state);
    bind(full_.plan);
    sink_.recompiled(full_);
    return {};
  } catch (const Failure& problem) {
    spec_ = before;
    compile_plans();
    replace_executor(state);
    return problem.what();
  }
}

void Trainer::replace_executor(const TrainState& state) {
  keep_counts();
  executor_.reset();  // free its memory before the next executor allocates
  open_executor(state);
}

// Sums the calls of every executor of the run.
AllocatorCalls Trainer::all_calls() const {
  AllocatorCalls all = earlier_calls_;
  if (executor_) all += executor_->allocator_calls();
  return all;
}

void Trainer::keep_counts() {
  if (!executor_) return;
  earlier_calls_ = all_calls();
  earlier_peak_ = std::max(earlier_peak_, executor_->memory().peak);
}

std::string_view to_string(RunStatus status) {
  constexpr std::string_view kNames[] = {"finished", "stopped", "failed", "target-reached", "time-up"};
  return kNames[static_cast<size_t>(status)];
}

namespace {

Summary work_for_rank_0(const RunSpec& spec, const data::Dataset& data, TrainSink& sink, RankProcesses& processes) {
  RankWorker worker(
      processes, data, [&](const RankRequest& request) { return prepare_rank(request, processes); },
      [&](const CompiledPlan& plan, const Model& model, Executor& executor) {
        sink.started(worker.spec(), model, plan, data, executor);
      });
  Summary summary;
  try {
    summary.status = static_cast<RunStatus>(std::stoi(worker.run()));
  } catch (const std::exception& problem) {
    summary.status = RunStatus::Failed;
    summary.message = problem.what();
  }
  summary.spec = worker.steps() > 0 ? worker.spec() : spec;
  summary.steps = worker.steps();
  summary.peak_bytes = worker.use().memory.peak;
  summary.calls = worker.use().calls;
  summary.device = worker.device();
  sink.finished(summary);
  return summary;
}

}  // namespace

Summary train(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
              const TrainOptions& options) {
  RankProcesses* processes = options.processes;
  if (processes && processes->rank() > 0) return work_for_rank_0(spec, data, sink, *processes);
  const Summary summary = Trainer(spec, data, control, sink, options).run();
  if (processes && summary.status == RunStatus::Failed) processes->abandon(summary.message);
  if (processes) processes->end(std::to_string(static_cast<int>(summary.status)));
  return summary;
}

}  // namespace ws
