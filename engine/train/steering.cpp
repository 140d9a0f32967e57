// How a run heeds the control: pause, single step, stop, questions, and changes of the choices in mid-run.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/train/trainer_impl.h"

namespace ws {
namespace {

// A change of these is a new plan for the same executor; any other execution choice makes a new executor.
constexpr std::array<std::string_view, 3> kPlanOnly = {"exec.allocator", "exec.sync", "exec.fusion"};

bool executes(const FieldChange& change) { return change.key.starts_with("exec."); }
bool needs_new_executor(const FieldChange& change) {
  return executes(change) && std::ranges::find(kPlanOnly, change.key) == kPlanOnly.end();
}

}  // namespace

// False when the run should end here.
bool Trainer::heed() {
  if (control_.attention_.exchange(false)) attend();
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

void Trainer::attend() {
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
      continue;  // something may have come in meanwhile
    }
    if (control_.changes_.empty() && control_.questions_.empty()) control_.wake_.wait(lock);
  }
  lock.unlock();
  clock_.start();
}

// Called and returns with the lock held; lets go of it while working.
void Trainer::answer_requests(std::unique_lock<std::mutex>& lock) {
  const auto changes = std::exchange(control_.changes_, {});
  const auto questions = std::exchange(control_.questions_, {});
  if (changes.empty() && questions.empty()) return;
  lock.unlock();
  if (!changes.empty()) apply_changes(changes);
  for (const auto& question : questions) question(*executor_);
  lock.lock();
}

// Paused: everything that is known is shown.
void Trainer::settle() {
  collect(step_);
  flush_epochs();
  report_progress(true);
}

void Trainer::apply_changes(const std::vector<std::pair<std::string, std::string>>& changes) {
  RunSpec next = spec_;
  for (const auto& [key, value] : changes) set_field(next, key, value);
  const auto differences = diff(spec_, next);
  if (differences.empty()) return;
  collect(step_);
  const std::string refusal = try_switch(next, differences);
  for (const FieldChange& c : differences) {
    const Change change{step_, c.key, c.from, c.to};
    if (refusal.empty())
      sink_.changed(change);
    else
      sink_.refused(change, refusal);
  }
}

// Returns why it went back to the old choices; empty when the new ones run.
std::string Trainer::try_switch(const RunSpec& next, const std::vector<FieldChange>& differences) {
  if (auto reason = why_invalid(next, device_info().cuda)) return *reason;
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
  executor_.reset();  // its memory goes back before the next one asks for its own
  open_executor(state);
}

// So that the summary counts over every executor of the run.
void Trainer::keep_counts() {
  if (!executor_) return;
  const AllocatorCalls calls = executor_->allocator_calls();
  earlier_calls_.allocate += calls.allocate;
  earlier_calls_.free += calls.free;
  earlier_calls_.device_allocate += calls.device_allocate;
  earlier_calls_.device_free += calls.device_free;
  earlier_peak_ = std::max(earlier_peak_, executor_->memory().peak);
}

}  // namespace ws
