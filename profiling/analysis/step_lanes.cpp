#include "profiling/analysis/step_lanes.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

constexpr int kNotShown = 9;

int lane_rank(const Track& track) {
  if (times_collectives(track)) return 1;
  switch (broad_kind(track.kind)) {
    case TrackKind::Phases:
      return 0;
    case TrackKind::Stream:
      return 1;
    case TrackKind::Copies:
      return 2;
    case TrackKind::Api:
      return 3;
    case TrackKind::CpuThread:
      return 4;
    default:
      return kNotShown;
  }
}

bool shown_in_step(const Track& track, bool gpu) {
  if (track.spans == 0 || lane_rank(track) == kNotShown || broad_kind(track.kind) == TrackKind::Phases) return false;
  return track.kind != TrackKind::CpuThread || (track.depth == 0 && !gpu);
}

// Removes streams that worked only rarely, for an evaluation or an upload: they are empty in most steps.
void leave_out_quiet(std::vector<StepLane>& lanes) {
  constexpr uint64_t kQuiet = 50;
  uint64_t most = 0;
  for (const StepLane& lane : lanes)
    if (on_gpu(*lane.track)) most = std::max<uint64_t>(most, lane.track->spans);
  std::erase_if(lanes, [&](const StepLane& l) { return on_gpu(*l.track) && l.track->spans * kQuiet < most; });
}

// Evicted spans count as work: they are read from the file when they are viewed.
bool works_in(const Track& track, StepWindowNs step) {
  const auto from = std::partition_point(track.blocks.begin(), track.blocks.end(),
                                         [&](const SpanBlock& b) { return b.reach <= step.begin; });
  for (auto block = from; block != track.blocks.end() && block->first < step.end; ++block) {
    if (!block->resident()) return true;
    for (const Span& span : block->spans) {
      if (span.start >= step.end) break;
      if (span.end() > step.begin) return true;
    }
  }
  return false;
}

std::string lane_name(const Track& track) {
  if (track.depth > 0) return {};
  if (track.kind == TrackKind::Ranges) return "ranges";
  if (track.kind == TrackKind::Phases) return "phase";
  return track.kind == TrackKind::Api ? "CUDA API" : track.name;
}

// If there is only one thread, it needs no number.
void name_only_thread(std::vector<StepLane>& lanes) {
  const auto thread = [](const StepLane& lane) { return lane.track->kind == TrackKind::CpuThread; };
  if (std::ranges::count_if(lanes, thread) == 1) std::ranges::find_if(lanes, thread)->name = "CPU ops";
}

}  // namespace

std::vector<StepLane> step_lanes(const Trace& marks, const Trace& trace, StepWindowNs step,
                                 size_t most) {
  auto tracks = tracks_of_steps(trace);
  const bool gpu = std::ranges::any_of(tracks, [](const Track& t) { return t.kind == TrackKind::Stream && t.spans > 0; });
  std::vector<StepLane> lanes;
  for (const Track& track : tracks_of_steps(marks))
    if ((track.kind == TrackKind::Phases || track.kind == TrackKind::Ranges) && track.spans > 0) lanes.push_back({&marks, &track, lane_name(track)});
  for (const Track& track : tracks)
    if (shown_in_step(track, gpu)) lanes.push_back({&trace, &track, lane_name(track)});
  leave_out_quiet(lanes);
  if (step.end > step.begin) std::erase_if(lanes, [&](const StepLane& l) { return !works_in(*l.track, step); });
  std::map<std::pair<TrackKind, std::string>, uint64_t> spans;  // the rows of one stream stay together
  for (const StepLane& lane : lanes) {
    uint64_t& most_spans = spans[{lane.track->kind, lane.track->name}];
    most_spans = std::max<uint64_t>(most_spans, lane.track->spans);
  }
  std::ranges::stable_sort(lanes, {}, [&](const StepLane& l) {
    const uint64_t weight = spans[{l.track->kind, l.track->name}];
    return std::tuple(lane_rank(*l.track), ~weight, l.track->name, l.track->depth);
  });
  name_only_thread(lanes);
  // A recorded program may have many rows of nested ranges. Two of them leave space for its kernels and calls.
  constexpr std::ptrdiff_t kMostRanges = 2;
  const auto ranges = [](const StepLane& lane) { return broad_kind(lane.track->kind) == TrackKind::Phases; };
  if (const auto others = std::ranges::find_if_not(lanes, ranges); others - lanes.begin() > kMostRanges)
    lanes.erase(lanes.begin() + kMostRanges, others);
  if (lanes.size() > most) lanes.resize(most);
  return lanes;
}

}  // namespace ws::prof
