#include "app/core/runs/training_writer.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "app/core/runs/machine.h"
#include "app/core/runs/run_ceilings.h"
#include "engine/devices/devices.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/base/clock.h"
#include "profiling/base/process.h"
#include "profiling/trace/span_walk.h"

namespace ws::app {
namespace {

constexpr prof::TimeNs kWindow = 1'000'000'000;  // one account of where the time went a second
constexpr size_t kRecentBytes = 64u << 20;

prof::RunSummary first_summary(const std::string& title, const RunSpec& spec) {
  prof::RunSummary s;
  s.name = title.empty() ? spec.name : title;
  s.preset = spec.name;
  s.created = prof::utc_text();
  s.spec = spec_text(spec);
  s.machine = machine_json().dump();
  if (wants_cuda(spec) || !device_info().cuda) s.device = device_info().name;
  keep_ceilings(s);
  return s;
}

// The step marks in a stretch of time, in order.
std::vector<prof::Span> marks_in(const prof::Trace& trace, prof::TimeNs begin, prof::TimeNs end) {
  std::vector<prof::Span> marks;
  for (const prof::Track& track : trace.tracks()) {
    if (track.kind != prof::TrackKind::Steps) continue;
    prof::each_span(track, begin, end, [&](const prof::Span& span) {
      if (span.span_kind() == prof::SpanKind::Step) marks.push_back(span);
    });
  }
  std::ranges::stable_sort(marks, {}, &prof::Span::start);
  return marks;
}

int64_t step_of(const prof::Span& mark) { return std::max<int64_t>(int64_t{mark.step} - 1, 0); }

// A mark may stand for the many steps of one graph: its distance to the next tells how many.
int64_t steps_in(const std::vector<prof::Span>& marks) {
  const auto count = static_cast<int64_t>(marks.size());
  const int64_t apart = step_of(marks.back()) - step_of(marks.front());
  return count > 1 && apart > 0 ? apart + apart / (count - 1) : count;
}

}  // namespace

TrainingWriter::TrainingWriter(const std::string& path, const std::string& title, const RunSpec& spec)
    : summary_(first_summary(title, spec)), writer_(path, summary_) {}

void TrainingWriter::add(const std::vector<StepResult>& steps, const std::vector<EpochResult>& epochs,
                       const std::vector<Change>& changes) {
  for (const StepResult& r : steps)
    writer_.add(prof::Metric{r.step, r.finished_s, static_cast<double>(r.loss), static_cast<double>(r.accuracy)});
  for (const EpochResult& e : epochs)
    if (e.test)
      writer_.add(prof::Evaluation{e.step, static_cast<double>(e.epoch), e.wall_s, e.test->loss, e.test->accuracy});
  for (const Change& c : changes)
    writer_.add(prof::ChangeMark{c.step, progress_.elapsed_s, c.key + ": " + c.from + " → " + c.to});
}

void TrainingWriter::add(prof::TraceBatch batch) {
  prof::append(recent_, prof::TraceBatch(batch));
  writer_.add(std::move(batch));
  if (recent_.last_time() - std::max(window_end_, recent_.first_time()) >= kWindow) add_window();
}

void TrainingWriter::add_window() {
  const auto marks = marks_in(recent_, std::max(window_end_, recent_.first_time()), recent_.last_time());
  if (marks.empty()) return;
  const prof::TimeNs begin = marks.front().start, end = marks.back().end();
  prof::StepWindow window{
      step_of(marks.front()), steps_in(marks), begin, end, prof::breakdown(recent_, begin, end).times, 0, 0};
  window.allocations = static_cast<uint64_t>(progress_.calls.allocate - counted_.allocate);
  window.frees = static_cast<uint64_t>(progress_.calls.free - counted_.free);
  counted_ = progress_.calls;
  window_end_ = window.end;
  writer_.add(window);
  recent_.evict(kRecentBytes);
}

// What a list shows of the run so far, for the case that it never ends well.
void TrainingWriter::progress(const Progress& progress) {
  progress_ = progress;
  summary_.steps = progress.step;
  summary_.wall_s = progress.elapsed_s;
  if (progress.step > 0) summary_.us_per_step = progress.elapsed_s * 1e6 / static_cast<double>(progress.step);
  summary_.peak_bytes = static_cast<uint64_t>(progress.memory.peak);
  writer_.set_summary(summary_);
}

void TrainingWriter::flush_if_due() { writer_.flush_if_due(); }

void TrainingWriter::finish(const Summary& s, const prof::CollectorStatus& traced) {
  if (recent_.span_count() > 0) add_window();
  summary_.status = to_string(s.status);
  summary_.device = s.device;
  keep_ceilings(summary_);
  summary_.spec = spec_text(s.spec);
  summary_.steps = s.steps;
  summary_.wall_s = s.wall_s;
  summary_.us_per_step = s.us_per_step;
  summary_.final_loss = std::isfinite(s.test_loss) ? s.test_loss : s.final_train_loss;
  summary_.final_accuracy = s.test_accuracy;
  summary_.peak_bytes = static_cast<uint64_t>(s.peak_bytes);
  if (s.steps > 0)
    summary_.allocator_calls_per_step =
        static_cast<double>(s.calls.allocate + s.calls.free) / static_cast<double>(s.steps);
  if (s.steps > 0)
    summary_.extra["driver_calls_per_step"] = std::to_string(
        static_cast<double>(s.calls.device_allocate + s.calls.device_free) / static_cast<double>(s.steps));
  summary_.overhead_share = traced.overhead.pairs > 0 ? traced.overhead.ratio - 1 : 0;
  summary_.overhead_spread = traced.overhead.pairs > 0 ? traced.overhead.high - traced.overhead.low : 0;
  prof::keep_status(traced, summary_.extra);
  if (!s.message.empty()) summary_.extra["message"] = s.message;
  writer_.set_summary(summary_);
  writer_.finish();
}

}  // namespace ws::app
