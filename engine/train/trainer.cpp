// The training loop: hands the executor chunks of steps, collects what comes back, and heeds the control between two
// chunks.
#include <algorithm>
#include <array>
#include <new>

#include "engine/passes/memory_need.h"
#include "engine/train/trainer_impl.h"

namespace ws {
namespace {

constexpr double kChunkSeconds = 0.008;     // how long a chunk should keep the host, so that a person is heeded at once
constexpr int64_t kLongestChunk = 1024;     // steps
constexpr double kCheckpointSeconds = 1.0;  // least time between two checkpoints during a run

// What must be as it was when a checkpoint is continued.
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
    summary_.message = told_out_of_memory();
  } catch (const std::exception& problem) {
    summary_.status = RunStatus::Failed;
    summary_.message = problem.what();
  }
  clock_.stop();
  count_up();
  sink_.finished(summary_);
  return summary_;
}

// The host's memory; the GPU's has a sentence of its own. To find what would fit takes memory, too.
std::string Trainer::told_out_of_memory() const {
  constexpr const char* kBriefly = "There is not enough memory for this model and data set.";
  if (model_.parameters.empty()) return kBriefly;
  try {
    const MemoryUse use = executor_ ? executor_->memory() : MemoryUse{};
    const int64_t ours = wants_cuda(spec_) ? 0 : use.reserved + use.parameter_bytes;
    return told_no_host_memory(spec_, model_, data_, room_for(spec_).host_bytes + ours);
  } catch (const std::exception&) {
    return kBriefly;
  }
}

void Trainer::prepare() {
  if (const auto reason = why_invalid(spec_, device_info().cuda)) throw Failure(*reason);
  rows_ = data_.train.rows;
  if (rows_ <= 0) throw Failure("the data set " + data_.name + " has no training rows");
  batch_ = spec_.train.batch == 0 ? rows_ : std::min(spec_.train.batch, rows_);
  steps_per_epoch_ = (rows_ + batch_ - 1) / batch_;
  model_ = make_model(spec_.model, data_.features, data_.outputs);
  if (const auto reason = why_no_room(spec_, model_, data_, room_for(spec_))) throw Failure(*reason);
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
  executor_ = make_executor(spec_);
  executor_->load(model_, data_, spec_);
  executor_->set_state(state);
  bound_ = nullptr;
  order_given_ = false;
  chunk_ = graph_unit();
}

void Trainer::compile_plans() {
  bound_ = nullptr;
  full_ = compile(spec_, model_, batch_);
  if (rows_ % batch_) tail_ = compile(spec_, model_, rows_ % batch_);
}

void Trainer::train_epochs() {
  clock_.start();
  while (epoch_ < spec_.train.epochs && !ended_) {
    begin_epoch();
    while (row_ < rows_ && heed()) run_chunk();
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

// What the machine's libraries made of the plan is known only now: whoever shows it is told again.
void Trainer::take_notes() {
  if (add_notes(full_.plan, executor_->notes())) sink_.recompiled(full_);
}

// Whole batches that may go to the executor at once: those left in the epoch, and where an epoch is a single step, one
// for each epoch up to the next evaluation.
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
  if (!order_given_) begin_epoch();  // a change in mid-epoch made a new executor
  executor_->run(step_, row_, rates);
  step_ += count;
  row_ = std::min(rows_, row_ + count * batch_);
  if (steps_per_epoch_ == 1) epoch_ += count - 1;  // the last of them ends where every epoch does
  pace();
  report_progress(false);
}

// Sizes the next chunk by the speed seen, and waits where the device has fallen more than a chunk behind: the queue in
// front of it stays short enough for a pause to be felt at once, and yet never runs dry.
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
  chunk_ = std::max(graph_unit(), chunk_ / graph_unit() * graph_unit());
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

// What is known by now, and for certain the results of the first `steps` steps of the run.
void Trainer::collect(int64_t steps) {
  fresh_.clear();
  if (steps >= step_)
    executor_->results(fresh_, true);
  else
    executor_->catch_up(fresh_, steps);
  if (fresh_.empty()) return;
  // Restated on the training clock: the newest result was seen now, the others as long before it as the executor says.
  const double shift = clock_.seconds() - fresh_.back().finished_s;
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
  p.calls = executor_->allocator_calls();
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

// A checkpoint that cannot be written does not stop the training; only the last one decides.
void Trainer::save(bool last) {
  if (options_.checkpoint.empty() || step_ == first_step_) return;  // nothing new: what is there already stays
  if (!last && clock_.seconds() - saved_at_ < kCheckpointSeconds) return;
  clock_.stop();
  collect(step_);
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
  summary_.message = save_problem_;
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

Summary train(const RunSpec& spec, const data::Dataset& data, TrainControl& control, TrainSink& sink,
              const TrainOptions& options) {
  return Trainer(spec, data, control, sink, options).run();
}

}  // namespace ws
