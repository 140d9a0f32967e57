#include "app/workspace/last_seconds.h"

#include <QFileInfo>
#include <map>

#include "app/core/runs/change_marks.h"
#include "app/workspace/run_loader.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/base/clock.h"

namespace ws::app {
namespace {

prof::RunSummary summary_of_kept(const Run& run, double seconds, TimeRange range) {
  prof::RunSummary s;
  s.name = (run.title + QObject::tr(" · last %1 s").arg(seconds)).toStdString();
  s.preset = run.spec.name;
  s.device = run.device.toStdString();
  s.created = prof::utc_text();
  s.status = run.summary ? to_string(run.summary->status) : to_string(RunStatus::Stopped);
  s.origin = run.origin == RunOrigin::Imported ? "record" : "run";
  if (s.origin == "run") s.spec = spec_text(run.spec);
  s.step_time = run.step_time;
  s.us_per_step = std::max(0.0, run.meanUs());
  s.tracing_cost = run.tracing_cost;
  s.train_loss = run.trainLoss(), s.test_loss = run.testLoss(), s.final_accuracy = run.testAccuracy();
  if (run.peakBytes() > 0) s.peak_bytes = static_cast<uint64_t>(run.peakBytes());
  if (run.summary)
    s.steps = run.summary->steps, s.wall_s = run.summary->wall_s;
  else if (run.progress)
    s.steps = run.progress->step, s.wall_s = run.progress->elapsed_s;
  if (!run.meters.empty()) s.allocator_calls_per_step = run.meters.back().allocate + run.meters.back().free;
  std::vector<TimeMark> marks;
  for (const TimeMark& mark : run.time_marks)
    if (range.contains(mark.time)) marks.push_back(mark);
  if (!marks.empty()) s.extra["time_marks"] = marks_text(marks);
  return s;
}

// Also copies the blocks held at the begin of the range. Without them, the memory of an arena would look empty.
void copy_range(const prof::Trace& from, TimeRange range, prof::Trace& to) {
  using Kind = prof::MemoryAction;
  std::map<std::pair<bool, uint64_t>, prof::MemoryEvent> held;  // reserved from the device, or allocated from it
  for (const prof::MemoryEvent& event : from.memory()) {
    if (event.time >= range.begin) break;
    const std::pair key(event.kind == Kind::Reserve || event.kind == Kind::Release, event.address);
    if (event.kind == Kind::Reserve || event.kind == Kind::Allocate)
      held[key] = event;
    else
      held.erase(key);
  }
  for (auto& [key, event] : held) {
    event.time = range.begin;
    to.append_memory(event);
  }
  copy_trace(from, range, to);
}

double seconds_trained(const Run& run, int64_t until_step) {
  const auto at = std::ranges::lower_bound(run.steps, static_cast<double>(until_step), {}, &StepPoint::step);
  if (at != run.steps.end()) return at->wall_s;
  return run.steps.empty() ? 0 : run.steps.back().wall_s;
}

}  // namespace

// Keeps all losses: they are small, and the last ones alone would tell little.
KeptSeconds last_seconds(const Run& run, double seconds) {
  KeptSeconds kept;
  const prof::TimeNs end = run.trace.last_time() + 1;
  kept.range = {end - static_cast<prof::TimeNs>(seconds * 1e9), end};
  kept.data.summary = summary_of_kept(run, seconds, kept.range);
  for (const StepPoint& p : run.steps)
    kept.data.metrics.push_back(
        {static_cast<int64_t>(p.step), p.wall_s, static_cast<double>(p.loss), static_cast<double>(p.accuracy)});
  for (const EvalPoint& p : run.evals)
    kept.data.evaluations.push_back({static_cast<int64_t>(p.step), p.epoch, p.wall_s, p.loss, p.accuracy});
  for (const Change& change : run.changes) {
    const double at = seconds_trained(run, change.step);
    kept.data.marks.push_back(change.to.empty() ? prof::ChangeMark{change.step, at, change.key} : mark_of(change, at));
  }
  // Memory may have only a part of an ended run. A live run has its newest spans in memory.
  if (!run.live() && QFileInfo::exists(run.path))
    kept.file = run.path;
  else
    copy_range(run.trace, kept.range, kept.data.trace);
  return kept;
}

prof::RunData with_spans(KeptSeconds&& kept) {
  if (!kept.file.isEmpty()) {
    prof::RunFileReader reader(kept.file.toStdString());
    prof::Trace all = reader.trace();
    reader.fill(all, kept.range.begin, kept.range.end);
    copy_range(all, kept.range, kept.data.trace);
  }
  return std::move(kept.data);
}

}  // namespace ws::app
