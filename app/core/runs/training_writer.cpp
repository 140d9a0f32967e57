#include "app/core/runs/training_writer.h"

#include <algorithm>
#include <cmath>

#include "app/core/runs/machine.h"
#include "app/core/runs/run_name.h"
#include "app/core/runs/run_ceilings.h"
#include "app/core/runs/change_marks.h"
#include "engine/devices/devices.h"
#include "engine/own_kernels/kernel_versions.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/analysis/steps_of_run.h"
#include "profiling/base/clock.h"
#include "profiling/recording/record_keys.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

constexpr prof::TimeNs kWindow = 1'000'000'000;  // 1 s; each window gets one time split
constexpr size_t kRecentBytes = 32u << 20;

prof::RunSummary first_summary(const std::string& title, const RunSpec& spec) {
  prof::RunSummary s;
  s.name = title.empty() ? run_name(spec) : title;
  s.preset = spec.name;
  s.created = prof::utc_text();
  s.spec = spec_text(spec);
  s.machine = machine_json().dump();
  if (wants_cuda(spec) || !device_info().cuda) s.device = device_info().name;
  keep_ceilings(s);
  return s;
}

// Returns the step marks in a time range, in order.
std::vector<prof::Span> marks_in(const prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end) {
  std::vector<prof::Span> marks;
  for (const prof::Track& track : prof::tracks_of_steps(trace)) {
    if (track.kind != prof::TrackKind::Steps) continue;
    prof::each_span(track, begin, end, [&](const prof::Span& span) {
      if (span.span_kind() == prof::SpanKind::Step) marks.push_back(span);
    });
  }
  prof::order_by_start(marks);
  return marks;
}

int64_t step_of(const prof::Span& mark) { return std::max<int64_t>(int64_t{mark.step} - 1, 0); }

// A mark may stand for many steps of one graph. The distance between marks shows how many.
int64_t steps_in(const std::vector<prof::Span>& marks) {
  const auto count = static_cast<int64_t>(marks.size());
  const int64_t apart = step_of(marks.back()) - step_of(marks.front());
  return count > 1 && apart > 0 ? apart + apart / (count - 1) : count;
}

}  // namespace

TrainingWriter::TrainingWriter(const std::string& title, const RunSpec& spec)
    : summary_(first_summary(title, spec)), spec_(spec) {}

void TrainingWriter::keep_kernels(const Plan& plan) {
  if (plan.spec.exec.kernels == spec_.exec.kernels) return;
  spec_.exec.kernels = plan.spec.exec.kernels;
  summary_.spec = spec_text(spec_);
  for (const own::KernelChoice& choice : own::kernel_choices(spec_.exec.kernels))
    for (const Op& op : plan.ops)
      if (op.own && op.own.file == choice.file && own::version_of(op.own.text) == choice.version)
        summary_.extra[prof::kSourceKey + choice.name()] = op.own.text;
}

void TrainingWriter::open(const std::string& path, const std::optional<FoundFile>& found) { file_.emplace(path, summary_, "", found); }

void TrainingWriter::add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs,
                         const std::vector<Change>& changes) {
  for (const Change& c : changes) {
    const prof::ChangeMark mark = mark_of(c, progress_.elapsed_s);
    set_field(spec_, c.key, c.to);
    if (prof::steady_since({mark}) > 0) steady_since_ = c.step, losses_.clear();
    if (file_) file_->add(mark);
  }
  for (const StepResult& r : steps) {
    if (r.step >= steady_since_) losses_.add({static_cast<double>(r.step), r.finished_s});
    summary_.train_loss = static_cast<double>(r.loss);
    if (file_)
      file_->add(prof::Metric{r.step, r.finished_s, static_cast<double>(r.loss), static_cast<double>(r.accuracy)});
  }
  for (const EpochResult& e : epochs) {
    if (!e.test) continue;
    tested_ = e.step;
    summary_.test_loss = e.test->loss, summary_.final_accuracy = e.test->accuracy;
    if (file_)
      file_->add(prof::Evaluation{e.step, static_cast<double>(e.epoch), e.wall_s, e.test->loss, e.test->accuracy});
  }
}

void TrainingWriter::add(prof::TraceBatch batch) {
  if (file_) {
    prof::append(recent_, prof::TraceBatch(batch));
    file_->add(std::move(batch));
  } else {
    prof::append(recent_, std::move(batch));
  }
  if (recent_.last_time() - std::max(window_end_, recent_.first_time()) >= kWindow) add_window();
}

void TrainingWriter::add_window() {
  const auto marks = marks_in(recent_, std::max(window_end_, recent_.first_time()), recent_.last_time());
  if (marks.empty()) return;
  const prof::TimeNs begin = marks.front().start, end = marks.back().end();
  prof::StepWindow window{
      step_of(marks.front()), steps_in(marks), begin, end, prof::breakdown(recent_, begin, end).times, 0, 0};
  count_calls(window);
  window_end_ = window.end;
  if (file_) file_->add(window);
  recent_.evict(kRecentBytes);
  take_step_time(spec_);
}

// Marks and counters do not end at the same step, so the counts are given per step.
void TrainingWriter::count_calls(prof::StepWindow& window) {
  if (const auto steps = static_cast<double>(progress_.started - counted_.started); steps > 0) {
    allocations_each_ = static_cast<double>(progress_.calls.allocate - counted_.calls.allocate) / steps;
    frees_each_ = static_cast<double>(progress_.calls.free - counted_.calls.free) / steps;
  }
  counted_ = progress_;
  const auto of = [&](double each) { return static_cast<uint64_t>(std::llround(each * static_cast<double>(window.steps))); };
  window.allocations = of(allocations_each_), window.frees = of(frees_each_);
}

void TrainingWriter::take_step_time(const RunSpec& spec) {
  const auto steps = prof::StepsOfRun::of(recent_, {.per_epoch = steps_per_epoch_, .since = steady_since_, .host_ahead = host_runs_ahead(spec)});
  summary_.step_time = prof::step_time(steps.sample({.lengths_only = true}), losses_.seen(), summary_.us_per_step);
}

// Writes what a list shows of the run so far, in case the run never ends properly.
void TrainingWriter::progress(const Progress& progress) {
  progress_ = progress;
  if (progress.epochs > 0) steps_per_epoch_ = static_cast<double>(progress.steps) / static_cast<double>(progress.epochs);
  summary_.steps = progress.step;
  summary_.steps_per_epoch = steps_per_epoch_;
  summary_.wall_s = progress.elapsed_s;
  if (progress.step > 0) summary_.us_per_step = progress.elapsed_s * 1e6 / static_cast<double>(progress.step);
  summary_.peak_bytes = static_cast<uint64_t>(progress.memory.peak);
  if (file_) file_->set_summary(summary_);
}

void TrainingWriter::flush() {
  if (file_) file_->flush();
}

void TrainingWriter::flush_if_due() {
  if (file_) file_->flush_if_due();
}

void TrainingWriter::finish(const Summary& s, const prof::CollectorStatus& traced) {
  if (recent_.span_count() > 0) add_window();
  summary_.status = to_string(s.status);
  summary_.device = s.device;
  keep_ceilings(summary_);
  summary_.spec = spec_text(s.spec);
  summary_.steps = s.steps;
  summary_.wall_s = s.wall_s;
  summary_.us_per_step = s.us_per_step;
  take_step_time(s.spec);
  summary_.train_loss = s.final_train_loss;
  summary_.test_loss = s.test_loss;
  summary_.final_accuracy = s.test_accuracy;
  if (file_ && std::isfinite(s.test_loss) && tested_ < s.steps)  // in the middle of an epoch
    file_->add(prof::Evaluation{s.steps, static_cast<double>(s.steps) / std::max(1.0, steps_per_epoch_), s.wall_s,
                                s.test_loss, s.test_accuracy});
  summary_.peak_bytes = static_cast<uint64_t>(s.peak_bytes);
  if (s.steps > 0)
    summary_.allocator_calls_per_step =
        static_cast<double>(s.calls.allocate + s.calls.free) / static_cast<double>(s.steps);
  if (s.steps > 0)
    summary_.extra["driver_calls_per_step"] = std::to_string(
        static_cast<double>(s.calls.device_allocate + s.calls.device_free) / static_cast<double>(s.steps));
  summary_.tracing_cost = traced.tracing_cost;
  prof::keep_status(traced, summary_.extra);
  if (!s.message.empty()) summary_.extra["message"] = s.message;
  if (!file_) return;
  file_->set_summary(summary_);
  file_->finish();
}

}  // namespace ws::app
