// How a run takes in what the collectors gathered: bounded history, and where the time of a step went.
#include <algorithm>

#include "app/workspace/run.h"
#include "app/workspace/run_loader.h"
#include "profiling/analysis/step_sample.h"
#include "profiling/trace/lod.h"

namespace ws::app {
namespace {

using prof::TimeNs;

constexpr size_t kSplitSteps = 200;  // the newest steps, so that a change in mid-run shows
constexpr size_t kFetchBlocks = 64;

}  // namespace

StepSplit split_from(const prof::MeaningTimes& times, TimeNs wall, int64_t steps) {
  StepSplit split;
  const double per_step = 1e-3 / static_cast<double>(steps);
  prof::MeaningTimes sums = times;
  // Waiting for the next launch and waiting for anything else are one hatched part in the window.
  sums[static_cast<size_t>(prof::Meaning::Idle)] += sums[static_cast<size_t>(prof::Meaning::Launch)];
  sums[static_cast<size_t>(prof::Meaning::Launch)] = 0;
  for (size_t i = 0; i < prof::kMeanings; ++i)
    if (sums[i] > 0)
      split.parts.push_back({static_cast<prof::Meaning>(i), {}, static_cast<double>(sums[i]) * per_step});
  split.steps = steps;
  split.wall_us = static_cast<double>(wall) * per_step;
  return split;
}

StepSplit split_of(const prof::Trace& marks, const prof::Trace& trace, TimeNs until, double steps_per_epoch) {
  const prof::StepSample sample = prof::sample_steps(marks, trace, steps_per_epoch, {until, kSplitSteps});
  const prof::Breakdown& parts = sample.parts;
  if (parts.steps == 0 || parts.wall() <= 0) return {};
  StepSplit split = split_from(parts.times, parts.wall(), parts.steps);
  split.kernels = sample.kernels_per_step, split.allocations = sample.allocations_per_step;
  const TimeNs busy = parts.kernels() + parts.times[static_cast<size_t>(prof::Meaning::Copy)];
  split.busy = static_cast<double>(busy) / static_cast<double>(parts.wall());
  return split;
}

void Run::applyTrace(RunUpdate& update) {
  trace.backed = !path.isEmpty();
  for (prof::TraceBatch& batch : update.traces) {
    allocator_calls.take(batch.allocations);
    prof::append(trace, std::move(batch));
  }
  if (!update.traces.empty()) trace.evict(history_bytes, looked_begin_, looked_end_);
  for (const Change& change : update.changes) host_ahead_ |= change.key == "exec.launch" || change.key == "exec.sync";
  if (host_ahead_ || host_runs_ahead(spec)) {
    gpu_steps_.update(trace, arrived());
    if (update.summary) gpu_steps_.finish(trace);
  }
  if (trace.span_count() == 0 || (!split_due_.hasExpired() && !update.summary)) return;
  split = split_of(marks(), trace, update.summary ? trace.last_time() : arrived(), steps_per_epoch_);
  split_due_.setRemainingTime(300);
}

// The file of a run of this session is opened once something of it is asked for; it may still be written.
prof::RunFileReader* Run::file() {
  if (unreadable_) return nullptr;
  if (reader) return reader.get();
  if (!written_ && !path.isEmpty()) written_ = std::make_shared<prof::RunFileReader>(path.toStdString());
  return written_.get();
}

bool Run::fetch(prof::TimeNs begin, prof::TimeNs end, size_t most) {
  size_t missing = 0, all = 0;
  for (const prof::Track& track : trace.tracks()) {
    missing += prof::spans_out_of_memory(track, begin, end);
    all += prof::spans_about(track, begin, end);
  }
  if (missing == 0 || all > most) return false;
  looked_begin_ = begin, looked_end_ = end;
  try {
    prof::RunFileReader* const from = file();
    if (!from || from->fill(trace, begin, end, kFetchBlocks) == 0) return false;
    trace.evict_spans(history_bytes, begin, end);
    return true;
  } catch (const std::exception& problem) {
    log << QString::fromUtf8(problem.what());
    unreadable_ = true;  // said once
    return false;
  }
}

}  // namespace ws::app
