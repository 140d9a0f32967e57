// How a run takes in what the collectors gathered: bounded history, and where the time of a step went.
#include <algorithm>
#include <array>

#include "app/session/run.h"
#include "app/session/run_reader.h"

namespace ws::app {
namespace {

using prof::Meaning;
using prof::TimeNs;
using prof::TrackKind;

constexpr size_t kHistoryBytes = 384u << 20;  // older spans are drawn from their sums
constexpr int64_t kSplitSteps = 200;          // the newest steps, so that a change in mid-run shows
constexpr size_t kFetchBlocks = 64;

struct Edge { TimeNs time; Meaning meaning; int change; };

bool has_spans(const prof::Trace& trace, TrackKind kind) {
  return std::any_of(trace.tracks().begin(), trace.tracks().end(), [kind](const prof::Track& t) { return t.kind == kind && t.spans > 0; });
}

struct Window { TimeNs begin = 0, end = 0; int64_t steps = 0; };

// The newest whole steps that are in memory.
Window newest_steps(const prof::Trace& trace) {
  Window window;
  for (const prof::Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Steps) continue;
    for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && window.steps < kSplitSteps; ++block)
      for (auto span = block->spans.rbegin(); span != block->spans.rend() && window.steps < kSplitSteps; ++span) {
        if (window.steps++ == 0) window.end = span->end();
        window.begin = span->start;
      }
    if (window.steps > 0) return window;
  }
  return window;
}

void add_edges(const prof::Track& track, const Window& window, std::vector<Edge>& edges) {
  for (auto block = track.blocks.rbegin(); block != track.blocks.rend() && block->last >= window.begin; ++block)
    for (const prof::Span& span : block->spans) {
      const TimeNs from = std::max(span.start, window.begin), to = std::min(span.end(), window.end);
      if (from >= to) continue;
      edges.push_back({from, span.span_meaning(), 1});
      edges.push_back({to, span.span_meaning(), -1});
    }
}

// Which of several things at one moment the time is counted for: work of the device first, then what the host did meanwhile.
constexpr Meaning kPriority[] = {Meaning::Matrix, Meaning::Pointwise, Meaning::Loss, Meaning::Optimizer, Meaning::Copy,
                                 Meaning::Allocation, Meaning::Sync, Meaning::Launch, Meaning::Other};

Meaning counted_for(const std::array<int, prof::kMeanings>& open) {
  for (Meaning meaning : kPriority)
    if (open[static_cast<size_t>(meaning)] > 0) return meaning;
  return Meaning::Idle;
}

}  // namespace

StepSplit split_of(const prof::Trace& trace) {
  const Window window = newest_steps(trace);
  if (window.steps == 0 || window.end <= window.begin) return {};
  const bool gpu = has_spans(trace, TrackKind::Stream);
  std::vector<Edge> edges;
  for (const prof::Track& track : trace.tracks()) {
    const bool device = track.kind == TrackKind::Stream || track.kind == TrackKind::Copies || track.kind == TrackKind::Api;
    if (gpu ? device : track.kind == TrackKind::CpuThread) add_edges(track, window, edges);
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
  std::array<int, prof::kMeanings> open{};
  std::array<TimeNs, prof::kMeanings> sums{};
  TimeNs at = window.begin;
  for (const Edge& edge : edges) {
    sums[static_cast<size_t>(counted_for(open))] += edge.time - at;
    at = edge.time;
    open[static_cast<size_t>(edge.meaning)] += edge.change;
  }
  sums[static_cast<size_t>(counted_for(open))] += window.end - at;
  StepSplit split;
  split.steps = window.steps;
  const double per_step = 1e-3 / static_cast<double>(window.steps);
  for (size_t i = 0; i < prof::kMeanings; ++i)
    if (sums[i] > 0) split.parts.push_back({static_cast<Meaning>(i), {}, static_cast<double>(sums[i]) * per_step});
  split.wall_us = static_cast<double>(window.end - window.begin) * per_step;
  return split;
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
