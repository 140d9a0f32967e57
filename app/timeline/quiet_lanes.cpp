// Finds the almost empty rows of a run and folds them into one row.
#include <algorithm>
#include <functional>
#include <map>

#include "app/timeline/lane_layout.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/waiting_threads.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::app {
namespace {

using prof::TrackKind;

struct Weight {
  size_t spans = 0;
  int64_t busy = 0;
};

Weight weight_of(const Lane& lane, const prof::Trace& trace) {
  Weight weight;
  for (size_t index : lane.tracks) {
    const prof::Track& track = trace.tracks()[index];
    weight.spans += track.spans;
    for (size_t m = 0; m < prof::kMeanings; ++m) weight.busy += track.time_of(static_cast<prof::Meaning>(m));
  }
  return weight;
}

bool has_step_numbers(const prof::Track& track) {
  return !track.blocks.empty() &&
         std::ranges::any_of(track.blocks.back().spans, [](const prof::Span& s) { return s.step > 0; });
}

bool may_be_quiet(const Lane& lane) {
  switch (lane.track_kind) {
    case TrackKind::Steps:
    case TrackKind::Phases:
    case TrackKind::Inner:
      return false;
    default:
      return true;
  }
}

// The begin of the middle step, by number: a first step that compiles takes most of the time. 0: few steps.
prof::TimeNs middle_step(const prof::Trace& trace) {
  constexpr uint32_t kFewest = 4;
  const prof::Span* last = nearest_step(trace, INT32_MAX);
  const prof::Span* middle = last && last->step >= kFewest ? nearest_step(trace, last->step / 2) : nullptr;
  return middle ? middle->start : 0;
}

bool is_samples(const Lane& lane, const prof::Trace& trace) {
  return !lane.tracks.empty() && trace.tracks()[lane.tracks[0]].kind == TrackKind::Samples;
}

bool communicates(const Lane& lane, const prof::Trace& trace) {
  return std::ranges::any_of(lane.tracks, [&](size_t track) { return trace.tracks()[track].time_of(prof::Meaning::Communication) > 0; });
}

// What one row shows of all these; ranges lie below other work. Samples of waiting threads are shown only if there is nothing else: they cover the whole time.
std::vector<size_t> tracks_of(std::vector<Lane> lanes, const prof::Trace& trace) {
  const auto samples = [&trace](const Lane& lane) { return is_samples(lane, trace); };
  if (!std::ranges::all_of(lanes, samples)) std::erase_if(lanes, samples);
  std::ranges::stable_partition(lanes, [](const Lane& lane) { return lane.track_kind == TrackKind::Phases; });
  std::vector<size_t> tracks;
  for (const Lane& lane : lanes) tracks.insert(tracks.end(), lane.tracks.begin(), lane.tracks.end());
  return tracks;
}

// The row that stands for all these, or the heading above them once the user unfolded it.
Lane row_of(const std::vector<Lane>& lanes, const LaneSource& source, const LaneSettings& settings) {
  Lane row;
  row.key = source.key + "/quiet", row.run = lanes[0].run, row.height = settings.small ? 17 : 20;
  row.title = QStringLiteral("%1 more row%2").arg(lanes.size()).arg(lanes.size() > 1 ? "s" : "");
  row.tip = QObject::tr("Rows with almost no work: streams used once, threads that wait, the profiler. A click shows or hides them.");
  row.of_rank = true, row.folded = !settings.folded.contains(row.key);
  if (row.folded) row.tracks = tracks_of(lanes, *source.trace);
  else row.kind = LaneKind::Group;
  return row;
}

}  // namespace

// Some rows are empty most of the time: streams used only for preparation, a thread with two calls, the profiler
// itself. They share one row at the bottom until the user unfolds it.
void fold_quiet_lanes(std::vector<Lane>& lanes, const LaneSource& source, const LaneSettings& settings) {
  constexpr size_t kOfSteps = 50, kOfBusiest = 20, kOfStream = 10, kOfPreparation = 2;
  constexpr int kShownDepth = 2;
  const prof::Trace& trace = *source.trace;
  std::map<TrackKind, Weight> busiest;
  size_t steps = 0;
  for (const Lane& lane : lanes) {
    if (lane.gpu_steps) continue;
    const Weight weight = weight_of(lane, trace);
    Weight& most = busiest[lane.track_kind];
    most = {std::max(most.spans, weight.spans), std::max(most.busy, weight.busy)};
    if (lane.track_kind == TrackKind::Steps) steps = std::max(steps, weight.spans);
  }
  const auto numbered = [&](const Lane& lane) {
    return std::ranges::any_of(lane.tracks, [&](size_t track) { return has_step_numbers(trace.tracks()[track]); });
  };
  const bool any_numbered = std::ranges::any_of(
      lanes, [&](const Lane& lane) { return lane.track_kind == TrackKind::Stream && numbered(lane); });
  // Threads that share steps do not number them all: then the work of a stream must tell.
  const bool others_numbered = std::ranges::any_of(trace.tracks(), [](const prof::Track& track) {
    return track.kind == TrackKind::Stream && has_step_numbers(track);
  });
  const prof::TimeNs middle = middle_step(trace);
  const bool gpu = prof::used_gpu(trace);
  const bool ranges = std::ranges::any_of(trace.tracks(), [](const prof::Track& track) { return track.kind == TrackKind::Ranges && track.spans > 0; });
  const auto quiet = [&](const Lane& lane) {
    if (lane.gpu_steps) return false;
    // Deeply nested ranges of the first steps, such as a compiler's.
    if (std::ranges::all_of(lane.tracks, [&](size_t track) {
          return trace.tracks()[track].kind == TrackKind::Ranges && trace.tracks()[track].last_start < middle;
        }))
      return !lane.tracks.empty();
    // Beside a GPU's rows, ranges inside of ranges take height until the user asks for them.
    if (gpu && !lane.tracks.empty() && std::ranges::all_of(lane.tracks, [&](size_t track) {
          return trace.tracks()[track].kind == TrackKind::Ranges && trace.tracks()[track].depth > kShownDepth;
        }))
      return true;
    if (lane.track_kind == TrackKind::Phases) return source.gpu_steps != nullptr;
    if (!may_be_quiet(lane)) return false;
    if (lane.track_kind == TrackKind::Overhead) return true;
    if (any_numbered && lane.track_kind == TrackKind::Stream && !numbered(lane)) return true;  // took part in no step
    const Weight own = weight_of(lane, trace), most = busiest[lane.track_kind];
    if (others_numbered && !any_numbered && lane.track_kind == TrackKind::Stream && !communicates(lane, trace) &&
        own.spans * kOfPreparation < most.spans && own.busy * static_cast<int64_t>(kOfPreparation) < most.busy)
      return true;
    if (own.spans * kOfSteps < steps) return true;
    // Beside the ranges of a program, its stacks repeat where it is.
    if (is_samples(lane, trace)) return (gpu && ranges) || prof::mostly_waits(trace, trace.tracks()[lane.tracks[0]]);
    // Waits of a stream, or the second row of a thread: fewer than one in two steps shows nothing about a step.
    if (lane.track_kind == TrackKind::Other && own.spans * kOfStream < busiest[TrackKind::Stream].spans) return true;
    if (lane.track_kind == TrackKind::CpuThread && own.spans * 2 < steps) return true;
    return own.spans * kOfBusiest < most.spans && own.busy * static_cast<int64_t>(kOfBusiest) < most.busy;
  };
  const auto folded = std::ranges::stable_partition(lanes, std::not_fn(quiet));
  if (folded.empty()) return;
  const std::vector<Lane> rows(folded.begin(), folded.end());
  Lane row = row_of(rows, source, settings);
  if (row.folded) lanes.erase(folded.begin(), folded.end()), lanes.push_back(std::move(row));
  else lanes.insert(folded.begin(), std::move(row));
}

}  // namespace ws::app
