// How a run takes in what the collectors gathered: bounded history, and where the time of a step went.
#include <algorithm>

#include "app/session/run.h"
#include "app/session/run_reader.h"
#include "profiling/analysis/step_breakdown.h"

namespace ws::app {
namespace {

using prof::TimeNs;

constexpr size_t kHistoryBytes = 384u << 20;  // older spans are drawn from their sums
constexpr size_t kSplitSteps = 200;           // the newest steps, so that a change in mid-run shows
constexpr size_t kFetchBlocks = 64;
constexpr TimeNs kShortGap = 5'000;  // between two steps; longer ones are looked into

// Steps without a break between them: what stands between two epochs is no part of a step.
struct Stretch {
  TimeNs begin = 0, end = 0;
  int64_t steps = 0;
};

bool names_evaluation(const prof::Trace& trace, const prof::Span& span) {
  return trace.name(span.name).starts_with("evaluat");
}

template <class Test>
bool any_between(const prof::Track& track, TimeNs begin, TimeNs end, Test test) {
  auto block = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                    [begin](const prof::SpanBlock& b) { return b.reach <= begin; });
  for (; block != track.blocks.end() && block->first < end; ++block)
    for (const prof::Span& span : block->spans)
      if (span.start < end && span.end() > begin && test(span)) return true;
  return false;
}

// On the host an evaluation has a mark; on the GPU its kernels belong to no step.
bool evaluates_between(const prof::Trace& trace, bool on_gpu, TimeNs begin, TimeNs end) {
  for (const prof::Track& track : trace.tracks()) {
    if (!on_gpu && track.kind == prof::TrackKind::Phases &&
        any_between(track, begin, end, [&](const prof::Span& s) { return names_evaluation(trace, s); }))
      return true;
    if (on_gpu && track.kind == prof::TrackKind::Stream &&
        any_between(track, begin, end, [](const prof::Span& s) { return s.step == 0; }))
      return true;
  }
  return false;
}

std::vector<prof::Span> newest_spans(const prof::Trace& marks, TimeNs until) {
  std::vector<prof::Span> spans;
  for (const prof::Track& track : marks.tracks()) {
    if (track.kind != prof::TrackKind::Steps) continue;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && spans.size() < kSplitSteps; ++block)
      for (auto span = block->spans.rbegin(); span != block->spans.rend() && spans.size() < kSplitSteps; ++span)
        if (span->end() <= until) spans.push_back(*span);
    if (!spans.empty()) break;
  }
  std::ranges::reverse(spans);
  return spans;
}

// A span may stand for many steps, in one graph: how many, its successor's number tells. A step lasts until the next
// one begins; the last of a stretch, whose next is not known, counts only where it stands alone.
Stretch stretch_of(const std::vector<prof::Span>& spans, size_t first, size_t last) {
  if (first == last) return {spans[first].start, spans[first].end(), 1};
  const auto numbered = static_cast<int64_t>(spans[last].step) - static_cast<int64_t>(spans[first].step);
  return {spans[first].start, spans[last].start, numbered > 0 ? numbered : static_cast<int64_t>(last - first)};
}

std::vector<Stretch> newest_steps(const prof::Trace& marks, const prof::Trace& trace, TimeNs until) {
  const bool on_gpu = &marks != &trace;
  const std::vector<prof::Span> spans = newest_spans(marks, until);
  std::vector<Stretch> stretches;
  for (size_t i = 0, first = 0; i < spans.size(); ++i) {
    const bool last = i + 1 == spans.size();
    const TimeNs gap = last ? 0 : spans[i + 1].start - spans[i].end();
    const bool long_gap = gap > static_cast<TimeNs>(spans[i].duration) / 2 + kShortGap;
    if (!last && !(long_gap && evaluates_between(trace, on_gpu, spans[i].end(), spans[i + 1].start))) continue;
    stretches.push_back(stretch_of(spans, first, i));
    first = i + 1;
  }
  return stretches;
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

StepSplit split_of(const prof::Trace& marks, const prof::Trace& trace, TimeNs until) {
  prof::MeaningTimes times{};
  TimeNs wall = 0;
  int64_t steps = 0;
  for (const Stretch& stretch : newest_steps(marks, trace, until)) {
    const prof::Breakdown parts = prof::breakdown(trace, stretch.begin, stretch.end);
    for (size_t i = 0; i < prof::kMeanings; ++i) times[i] += parts.times[i];
    wall += parts.wall(), steps += stretch.steps;
  }
  return steps > 0 && wall > 0 ? split_from(times, wall, steps) : StepSplit{};
}

void Run::applyTrace(RunUpdate& update) {
  for (prof::TraceBatch& batch : update.traces) prof::append(trace, std::move(batch));
  if (!update.traces.empty()) trace.evict(kHistoryBytes);
  for (const Change& change : update.changes) host_ahead_ |= change.key == "exec.launch" || change.key == "exec.sync";
  if (host_ahead_ || host_runs_ahead(spec)) {
    gpu_steps_.update(trace, arrived());
    if (update.summary) gpu_steps_.finish(trace);
  }
  if (trace.span_count() == 0 || (!split_due_.hasExpired() && !update.summary)) return;
  split = split_of(marks(), trace, update.summary ? trace.last_time() : arrived());
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
