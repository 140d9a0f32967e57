#include "app/core/page/page_parts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "app/core/page/lane_columns.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/memory_curves.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/trace/lod.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/thread_names.h"
#include "profiling/trace/track_names.h"

namespace ws::app {
namespace {

using Json = nlohmann::ordered_json;
using prof::TrackKind;

// The order of the window: the steps, then the GPU, then the host. If the GPU has steps of its own, the host keeps its own, too.
enum class Floor { Marks, Gpu, Host };
struct Lane {
  const prof::Trace* trace;
  const prof::Track* track;
  bool own_steps;  // a row of the steps as the GPU ran them
  Floor floor = Floor::Marks;
};

const char* kind_name(TrackKind kind) {
  switch (prof::broad_kind(kind)) {
    case TrackKind::Steps: return "steps";
    case TrackKind::Phases: return "phases";
    case TrackKind::Stream: return "stream";
    case TrackKind::Copies: return "copies";
    case TrackKind::GraphLaunches: return "graphs";
    case TrackKind::Api: return "api";
    case TrackKind::CpuThread: return "thread";
    case TrackKind::Overhead: return "overhead";
    case TrackKind::Inner: return "inside";
    default: break;
  }
  return "other";
}

Floor floor_of(const Lane& lane, bool gpu_steps, const std::set<std::string>& gpu_groups) {
  const TrackKind kind = lane.track->kind;
  const bool marks = kind == TrackKind::Steps || kind == TrackKind::Phases || kind == TrackKind::ProgramSteps;
  if (lane.own_steps || (marks && !gpu_steps)) return Floor::Marks;
  return kind == TrackKind::Inner || prof::on_gpu(*lane.track) || gpu_groups.contains(lane.track->group) ? Floor::Gpu : Floor::Host;
}

int place_of(TrackKind kind) {
  constexpr TrackKind kOrder[] = {TrackKind::Steps, TrackKind::Phases, TrackKind::Stream, TrackKind::Copies, TrackKind::GraphLaunches,
                                  TrackKind::Inner, TrackKind::Api,    TrackKind::CpuThread, TrackKind::Other, TrackKind::Overhead};
  return static_cast<int>(std::ranges::find(kOrder, prof::broad_kind(kind)) - kOrder);
}

std::vector<Lane> lanes_of(const prof::Trace& trace, const prof::StepsOfRun& steps) {
  std::vector<Lane> lanes;
  std::set<std::string> gpu_groups;
  if (steps.on_gpu())
    for (const prof::Track& track : steps.marks().tracks())
      if (track.spans > 0) lanes.push_back({&steps.marks(), &track, true});
  for (const prof::Track& track : trace.tracks()) {
    if (track.spans > 0) lanes.push_back({&trace, &track, false});
    if (prof::on_gpu(track)) gpu_groups.insert(track.group);
  }
  for (Lane& lane : lanes) lane.floor = floor_of(lane, steps.on_gpu(), gpu_groups);
  std::ranges::stable_sort(lanes, {}, [](const Lane& lane) {
    const prof::Track& t = *lane.track;
    const std::string group = lane.floor == Floor::Marks ? "" : t.group;
    return std::tuple(t.rank, lane.floor, group, place_of(t.kind), prof::number_in(t.name, 0), t.name, t.depth);
  });
  return lanes;
}

Json lane_json(const Lane& lane, const prof::ThreadNames& threads, prof::TimeNs begin, prof::TimeNs end) {
  constexpr size_t kFewSpans = 400;  // drawn at once without an overview
  const prof::Track& track = *lane.track;
  const bool whole = std::ranges::all_of(track.blocks, &prof::SpanBlock::resident);
  return {{"kind", kind_name(track.kind)},
          {"name", track.name},
          {"title", threads.title(track)},
          {"group", track.group},
          {"depth", track.depth},
          {"rank", track.rank},
          {"all", track.spans},
          {"gpu_steps", lane.own_steps},
          {"marks", lane.floor == Floor::Marks},
          {"overview", whole && track.spans < kFewSpans ? Json::array() : lane_overview(track, begin, end)}};
}

constexpr int kCurveColumns = 2000;

// At most two points a column: its least and its greatest value, in their order of time if the curve has steps.
Json points_of(const prof::CounterTrack& counter, prof::TimeNs begin, prof::TimeNs end) {
  auto times = Json::array(), values = Json::array();
  const auto add = [&](double time, double value) { times.push_back(std::llround(time)); values.push_back(value); };
  if (counter.points.size() <= 2 * kCurveColumns) {
    for (const prof::CounterPoint& p : counter.points) add(static_cast<double>(p.time - begin), p.value);
  } else {
    const double column = static_cast<double>(end - begin) / kCurveColumns;
    for (const prof::LodPoint& p : prof::lod(counter, begin, end, kCurveColumns)) {
      const double least = p.min, greatest = p.max;
      if (least != greatest) add(static_cast<double>(p.x) * column, p.last == least ? greatest : least);
      add((static_cast<double>(p.x) + 0.5) * column, p.last);
    }
  }
  return {{"t", times}, {"v", values}};
}

Json curve(const char* group, const prof::CounterTrack& counter, prof::TimeNs begin, prof::TimeNs end) {
  Json json{{"group", group}, {"name", counter.name}, {"unit", counter.unit}};
  json.update(points_of(counter, begin, end));
  return json;
}

// Where a step is on the axis of the timeline.
class StepTimes {
 public:
  explicit StepTimes(const prof::Trace& marks) {
    if (const prof::Track* track = prof::first_track(marks, TrackKind::Steps))
      for (const prof::SpanBlock& block : track->blocks)
        for (const prof::Span& span : block.spans) ends_.emplace_back(int64_t{span.step} - 1, span.end());
    std::ranges::sort(ends_);
  }
  std::optional<prof::TimeNs> of(int64_t step) const {
    const auto at = std::ranges::lower_bound(ends_, std::pair(step, prof::TimeNs{0}));
    return at != ends_.end() && at->first == step ? std::optional(at->second) : std::nullopt;
  }

 private:
  std::vector<std::pair<int64_t, prof::TimeNs>> ends_;
};

// Times of values that a run has by step. A step that was not traced is as far from the nearest traced one before it, or
// else from the first one, as their clocks of the training say.
template <class Values, class Value>
void add_points(prof::CounterTrack& curve, const Values& values, const StepTimes& steps, Value value) {
  const auto shift_of = [&steps](const auto& one) -> std::optional<prof::TimeNs> {
    if (const auto time = steps.of(one.step)) return *time - std::llround(one.wall_s * 1e9);
    return std::nullopt;
  };
  prof::TimeNs shift = 0;
  for (auto at = values.rbegin(); at != values.rend(); ++at) shift = shift_of(*at).value_or(shift);  // of the first traced one
  for (const auto& one : values) {
    shift = shift_of(one).value_or(shift);
    if (!std::isnan(value(one))) curve.points.push_back({std::llround(one.wall_s * 1e9) + shift, value(one)});
  }
  std::ranges::stable_sort(curve.points, {}, &prof::CounterPoint::time);
}

// The steps with some space at both sides; a run without steps as a whole.
Json first_view(const prof::Trace& marks, prof::TimeNs begin, prof::TimeNs end) {
  prof::TimeNs first = end, last = begin;
  for (const prof::Track& track : marks.tracks())
    if (track.kind == TrackKind::Steps && track.spans > 0)
      first = std::min(first, track.blocks.front().first), last = std::max(last, track.blocks.back().last);
  if (last <= first) return {0, end - begin};
  const prof::TimeNs space = (last - first) / 40;
  return {std::max<prof::TimeNs>(0, first - begin - space), std::min(end - begin, last - begin + space)};
}

Json curves_of(const PageRun& run, const prof::Trace& marks, prof::TimeNs begin, prof::TimeNs end) {
  auto curves = Json::array();
  const prof::Trace& trace = run.data.trace;
  const StepTimes steps(marks);
  const auto add = [&](const char* group, const prof::CounterTrack& counter) {
    if (!counter.points.empty()) curves.push_back(curve(group, counter, begin, end));
  };
  prof::CounterTrack losses{"loss", "", prof::CounterKind::Loss, {}}, accuracy{"test accuracy", "%", prof::CounterKind::Other, {}};
  add_points(losses, run.data.metrics, steps, [](const prof::Metric& m) { return m.loss; });
  add_points(accuracy, run.data.evaluations, steps, [](const prof::Evaluation& e) { return 100 * e.test_accuracy; });
  add("loss", losses);
  for (const prof::CounterTrack& counter : trace.counters())
    if (prof::is_loss_curve(counter.kind) && counter.points.size() > 1) add("loss", counter);
  add("accuracy", accuracy);
  prof::MemoryCurves memory;
  memory.update(trace);
  add("memory", memory.used());
  add("memory", memory.reserved());
  for (const prof::CounterTrack& counter : trace.counters())
    if (!prof::is_loss_curve(counter.kind)) add(counter.unit == "B" ? "memory" : "counter", counter);
  return curves;
}

// Small lanes share a chunk, because each is unpacked as a whole.
class Chunks {
 public:
  explicit Chunks(size_t first) : first_(first) {}
  Json add(const LaneColumns& lane) {
    constexpr size_t kEnough = 1 << 20;
    if (chunks_.empty() || chunks_.back().size() > kEnough) chunks_.emplace_back();
    const Json place{{"spans", lane.spans}, {"from", lane.from}, {"chunk", first_ + chunks_.size() - 1}, {"at", chunks_.back().size()},
                     {"lengths", lane.lengths}};
    chunks_.back() += lane.bytes;
    return place;
  }
  std::vector<std::string> take() { return std::move(chunks_); }

 private:
  size_t first_;
  std::vector<std::string> chunks_;
};

}  // namespace

PageTimeline page_timeline(PageRun& run, size_t first_chunk, size_t most_spans) {
  prof::Trace& trace = run.data.trace;
  const prof::StepsOfRun steps = steps_of(run.data, run.report.run);
  const prof::Trace& marks = steps.marks();
  const prof::TimeNs begin = trace.first_time(), end = std::max(trace.last_time(), begin + 1);
  PageTimeline page;
  page.head = {{"end", end - begin}, {"first", first_view(marks, begin, end)}, {"curves", curves_of(run, marks, begin, end)}, {"lanes", Json::array()}};
  trace.evict_spans(most_spans * sizeof(prof::Span));
  SpanNames names;
  const prof::ThreadNames threads(trace);
  Chunks chunks(first_chunk);
  for (const Lane& lane : lanes_of(trace, steps)) {
    Json json = lane_json(lane, threads, begin, end);
    json.update(chunks.add(pack_lane(*lane.trace, *lane.track, begin, names)));
    page.head["lanes"].push_back(std::move(json));
  }
  page.head.update(names.json());
  page.chunks = chunks.take();
  return page;
}

}  // namespace ws::app
