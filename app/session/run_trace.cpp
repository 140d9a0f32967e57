// How a run takes in what the collectors gathered: bounded history, and where the time of a step went.
#include "app/session/run.h"
#include "app/session/run_reader.h"
#include "profiling/analysis/step_breakdown.h"

namespace ws::app {
namespace {

using prof::TimeNs;

constexpr size_t kHistoryBytes = 384u << 20;  // older spans are drawn from their sums
constexpr int64_t kSplitSteps = 200;          // the newest steps, so that a change in mid-run shows
constexpr size_t kFetchBlocks = 64;

struct Window {
  TimeNs begin = 0, end = 0;
  int64_t steps = 0;
};

// The newest whole steps that are in memory.
Window newest_steps(const prof::Trace& trace) {
  Window window;
  for (const prof::Track& track : trace.tracks()) {
    if (track.kind != prof::TrackKind::Steps) continue;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && window.steps < kSplitSteps; ++block)
      for (auto span = block->spans.rbegin(); span != block->spans.rend() && window.steps < kSplitSteps; ++span) {
        if (window.steps++ == 0) window.end = span->end();
        window.begin = span->start;
      }
    if (window.steps > 0) return window;
  }
  return window;
}

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

StepSplit split_of(const prof::Trace& trace) {
  const Window window = newest_steps(trace);
  if (window.steps == 0 || window.end <= window.begin) return {};
  return split_from(prof::breakdown(trace, window.begin, window.end).times, window.end - window.begin, window.steps);
}

void Run::applyTrace(RunUpdate& update) {
  for (prof::TraceBatch& batch : update.traces) prof::append(trace, std::move(batch));
  if (!update.traces.empty()) trace.evict(kHistoryBytes);
  if (trace.span_count() == 0 || (!split_due_.hasExpired() && !update.summary)) return;
  split = split_of(trace);
  split_due_.setRemainingTime(300);
}

bool Run::fetch(prof::TimeNs begin, prof::TimeNs end) {
  if (!reader) return false;
  try {
    return reader->fill(trace, begin, end, kFetchBlocks) > 0;
  } catch (const std::exception& problem) {
    log << QString::fromUtf8(problem.what());
    reader.reset();  // said once
    return false;
  }
}

}  // namespace ws::app
