#include "app/timeline/lane_layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "app/workspace/rank_count.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/thread_names.h"
#include "profiling/trace/track_names.h"

namespace ws::app {

namespace {

using prof::TrackKind;

int rank(TrackKind kind) {
  switch (kind) {
    case TrackKind::Steps:
      return 0;
    case TrackKind::Phases:
      return 1;
    case TrackKind::Stream:
      return 2;
    case TrackKind::Inner:
      return 3;
    case TrackKind::Copies:
      return 4;
    case TrackKind::GraphLaunches:
      return 5;
    case TrackKind::Api:
      return 8;
    case TrackKind::CpuThread:
      return 9;
    case TrackKind::Overhead:
      return 10;
    default:
      return 11;
  }
}

// If the GPU has its own steps, the host's steps are below the GPU's work and above the calls.
constexpr int kHostStepRank = 6, kHostPhaseRank = 7;

// The rows of calls, by track depth.
enum class CallRow { Runtime, Driver, Allocator };

CallRow call_row(const prof::Track& track) {
  return track.depth == 0 ? CallRow::Runtime : track.depth == 1 ? CallRow::Driver : CallRow::Allocator;
}

QString call_row_title(CallRow row) {
  switch (row) {
    case CallRow::Runtime:
      return QStringLiteral("CUDA API");
    case CallRow::Driver:
      return QStringLiteral("driver API");
    case CallRow::Allocator:
      return QStringLiteral("allocator");
  }
  return {};
}


bool has_spans_of(TrackKind kind, const prof::Trace& trace) {
  return std::ranges::any_of(trace.tracks(), [kind](const prof::Track& t) { return t.kind == kind && t.spans > 0; });
}

// Ranges that lie inside the ranges of the row above.
bool is_inside(const prof::Track& track) { return track.depth > 0 && prof::broad_kind(track.kind) == TrackKind::Phases; }

QString lane_tip(const prof::Track& track) {
  if (is_inside(track)) return QObject::tr("What runs inside the ranges of the row above");
  if (track.kind == TrackKind::Samples) return QObject::tr("A mark for each sample of this thread's stack. Nothing is known between two marks.");
  return {};
}

QString lane_title(const LaneSource& source, const prof::Track& track, bool own) {
  const bool beside = source.gpu_steps && !own;
  if (is_inside(track)) return QStringLiteral("inside phase");
  if (track.kind == TrackKind::Ranges) return QStringLiteral("ranges");
  if (track.kind == TrackKind::Samples) return QStringLiteral("stacks · ") + QString::fromStdString(prof::sampled_name(track).first);
  if (track.kind == TrackKind::Steps) return beside ? QStringLiteral("host step") : QStringLiteral("step");
  if (prof::broad_kind(track.kind) == TrackKind::Phases)
    return beside ? QStringLiteral("host phase") : QStringLiteral("phase");
  if (track.kind == TrackKind::Api) return call_row_title(call_row(track));
  if (track.kind == TrackKind::Copies) return QStringLiteral("memcpy");
  if (track.kind == TrackKind::GraphLaunches && track.depth == 0)  // "stream 13 graphs" does not fit
    return QStringLiteral("graphs %1").arg(prof::number_in(track.name, 0));
  return track.depth > 0 ? QString() : QString::fromStdString(track.name);
}

QString track_key(const LaneSource& source, const prof::Track& track) {
  return QString("%1/%2/%3/%4")
      .arg(source.key)
      .arg(static_cast<int>(prof::broad_kind(track.kind)))
      .arg(QString::fromStdString(track.name))
      .arg(track.depth);
}

bool matches(const LaneSettings& settings, const QString& text) {
  for (const QString& word : settings.filter.split(' ', Qt::SkipEmptyParts))
    if (!text.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

// What the rows of a run have in common.
struct RowStyle {
  bool small = false;    // lower lanes
  bool streams = false;  // the run has GPU streams
};

int lane_height(const Lane& lane, const prof::Trace& trace, const RowStyle& style) {
  const bool small = style.small;
  switch (lane.track_kind) {
    case TrackKind::Steps:
    case TrackKind::Phases:
      return small ? 17 : 19;
    case TrackKind::Stream:
      return small ? 30 : 42;
    case TrackKind::Inner:
      return small ? 17 : 19;
    case TrackKind::Api:
      return small ? (allocates(trace.tracks()[lane.tracks[0]]) ? 30 : 20)
                   : (allocates(trace.tracks()[lane.tracks[0]]) ? 38 : 24);
    case TrackKind::CpuThread:
      return style.streams ? 20 : small ? 30 : 42;
    default:
      return 20;
  }
}

Lane span_lane(const LaneSource& source, int run, size_t index, const RowStyle& style, bool own = false) {
  const prof::Trace& trace = own ? *source.gpu_steps : *source.trace;
  const prof::Track& track = trace.tracks()[index];
  Lane lane;
  lane.run = run, lane.track_kind = prof::broad_kind(track.kind), lane.tracks = {index}, lane.gpu_steps = own;
  lane.key = (own ? "gpu/" : QString()) + track_key(source, track), lane.title = lane_title(source, track, own);
  lane.height = lane_height(lane, *source.trace, style), lane.tip = lane_tip(track), lane.inside = is_inside(track);
  return lane;
}

int rank(const LaneSource& source, const Lane& lane) {
  if (source.gpu_steps && !lane.gpu_steps) {
    if (lane.track_kind == TrackKind::Steps) return kHostStepRank;
    if (lane.track_kind == TrackKind::Phases) return kHostPhaseRank;
  }
  return rank(lane.track_kind);
}

constexpr size_t kOverlapsFrom = 20;  // at least one span in this many
constexpr int kTwoRows = 42;          // high enough for labels in both rows

// Overlapping kernels of one stream stay in one lane. Copies of all streams share one lane.
bool share_a_lane(const Lane& a, const Lane& b, const std::vector<prof::Track>& tracks) {
  if (a.track_kind != b.track_kind) return false;
  return a.track_kind == TrackKind::Copies ||
         (a.track_kind == TrackKind::Stream && tracks[a.tracks[0]].name == tracks[b.tracks[0]].name);
}

void halve_overlapping(Lane& lane, const std::vector<prof::Track>& tracks) {
  if (lane.track_kind != TrackKind::Stream) return;
  size_t below = 0;
  for (size_t k = 1; k < lane.tracks.size(); ++k) below += tracks[lane.tracks[k]].spans;
  lane.upper = below * kOverlapsFrom > tracks[lane.tracks[0]].spans ? 1 : 0;
  if (lane.upper > 0) lane.height = std::max(lane.height, kTwoRows);
}

// The lanes are sorted: those that share one stand beside each other.
void join_rows(std::vector<Lane>& lanes, const std::vector<prof::Track>& tracks) {
  std::vector<Lane> joined;
  for (Lane& lane : lanes) {
    if (!joined.empty() && share_a_lane(joined.back(), lane, tracks))
      joined.back().tracks.push_back(lane.tracks[0]);
    else
      joined.push_back(std::move(lane));
  }
  for (Lane& lane : joined) halve_overlapping(lane, tracks);
  lanes = std::move(joined);
}

// A single thread needs no number.
void name_only_thread(std::vector<Lane>& lanes, bool streams) {
  Lane* only = nullptr;
  for (Lane& lane : lanes) {
    if (lane.kind != LaneKind::Spans || lane.track_kind != TrackKind::CpuThread || lane.title.isEmpty()) continue;
    if (only) return;
    only = &lane;
  }
  if (only) only->title = streams ? QStringLiteral("host ops") : QStringLiteral("CPU ops");
}

QString thread_tip(const QString& name) {
  if (name.startsWith("backward")) return QObject::tr("PyTorch's autograd thread: it runs the backward pass.");
  if (name.startsWith("thread ")) return QObject::tr("A thread of the program. The recording does not know its name.");
  return {};
}

// Names the threads if several make calls: PyTorch's backward pass has its own thread.
void name_callers(std::vector<Lane>& lanes, const std::vector<prof::Track>& tracks, const prof::ThreadNames& names) {
  const auto calls = [&tracks](const Lane& lane) {
    return lane.track_kind == TrackKind::Api && call_row(tracks[lane.tracks[0]]) == CallRow::Runtime;
  };
  if (std::count_if(lanes.begin(), lanes.end(), calls) < 2) return;
  int number = 0;
  for (Lane& lane : lanes) {
    if (!calls(lane)) continue;
    const QString name = QString::fromStdString(names.of(tracks[lane.tracks[0]]));
    ++number;
    lane.tip = thread_tip(name);
    if (name != "main") lane.title = name.isEmpty() ? QStringLiteral("CUDA API %1").arg(number) : QStringLiteral("CUDA API · ") + name;
  }
}

// Names the rows of ranges by their threads: PyTorch runs backward functions on a thread of its own.
void name_ranges(std::vector<Lane>& lanes, const std::vector<prof::Track>& tracks, const prof::ThreadNames& names) {
  QStringList unnamed;  // tracks
  for (Lane& lane : lanes) {
    if (lane.gpu_steps || lane.track_kind != TrackKind::Phases || lane.tracks.empty()) continue;
    const prof::Track& track = tracks[lane.tracks[0]];
    if (track.kind != TrackKind::Ranges) continue;
    lane.title = QString::fromStdString(names.ranges(track));
    if (track.depth == 0) lane.tip = thread_tip(QString::fromStdString(names.of(track)));
    if (const QString name = QString::fromStdString(track.name); names.of(track).empty() && !unnamed.contains(name)) unnamed << name;
  }
  for (Lane& lane : lanes) {
    if (lane.gpu_steps || lane.track_kind != TrackKind::Phases || lane.tracks.empty() || unnamed.size() < 2) continue;
    if (const auto at = unnamed.indexOf(QString::fromStdString(tracks[lane.tracks[0]].name)); at >= 0) lane.title += QString(" %1").arg(at + 1);
  }
}

// A row stands without a name below the row whose ranges it shows the inside of.
void mark_nested(std::vector<Lane>& lanes) {
  const auto thread = [](const Lane& lane) { return lane.key.section('/', 0, -2); };
  for (size_t i = 1; i < lanes.size(); ++i) {
    const Lane& above = lanes[i - 1];
    lanes[i].nested = lanes[i].inside && above.kind == LaneKind::Spans && above.run == lanes[i].run && thread(above) == thread(lanes[i]);
  }
}

// Threads of one name are separated by their number. It comes first: the end of a long title is cut off.
void separate_stacks(std::vector<Lane>& lanes, const std::vector<prof::Track>& tracks) {
  std::map<QString, std::vector<Lane*>> same;
  for (Lane& lane : lanes)
    if (!lane.gpu_steps && lane.tracks.size() == 1 && tracks[lane.tracks[0]].kind == TrackKind::Samples) same[lane.title].push_back(&lane);
  for (const auto& [title, rows] : same)
    for (Lane* row : rows)
      if (const auto [name, number] = prof::sampled_name(tracks[row->tracks[0]]); rows.size() > 1 && number >= 0)
        row->title = QStringLiteral("stacks %1 · %2").arg(number).arg(QString::fromStdString(name));
}

// In a small window copies have no lane of their own: they join the first stream.
void join_copies(std::vector<Lane>& lanes) {
  auto stream =
      std::find_if(lanes.begin(), lanes.end(), [](const Lane& l) { return l.track_kind == TrackKind::Stream; });
  if (stream == lanes.end()) return;
  for (const Lane& lane : lanes)
    if (lane.track_kind == TrackKind::Copies)
      stream->tracks.insert(stream->tracks.end(), lane.tracks.begin(), lane.tracks.end());
  std::erase_if(lanes, [](const Lane& l) { return l.track_kind == TrackKind::Copies; });
}

// The layers stand above the row whose work they name: the first stream, or the only thread.
void add_layers(std::vector<Lane>& lanes, const LaneSource& source, bool streams, bool small) {
  const TrackKind kind = streams ? TrackKind::Stream : TrackKind::CpuThread;
  const auto named = [&](const Lane& lane) {
    return lane.track_kind == kind && !lane.gpu_steps && has_layers(*source.trace, source.trace->tracks()[lane.tracks[0]]);
  };
  const auto work = source.layers ? std::ranges::find_if(lanes, named) : lanes.end();
  if (work == lanes.end()) return;
  Lane lane = *work;
  lane.kind = LaneKind::Layers, lane.height = small ? 17 : 19, lane.upper = 0;
  lane.key = source.key + "/layers", lane.title = QStringLiteral("layer");
  lane.grouping = {source.folded, false};
  const auto at = lanes.insert(work, lane);
  if (source.parts.empty()) return;
  lane.key = source.key + "/blocks", lane.title = QStringLiteral("block"), lane.grouping = {source.parts, true};
  lanes.insert(at, lane);
}

// A kernel of many steps has one row per multiprocessor, often more than a hundred. Only some are
// shown, unless there is a filter.
void keep_some_inner(std::vector<Lane>& lanes, const LaneSettings& settings) {
  constexpr int kInnerShown = 4;
  const auto inner = [](const Lane& lane) { return lane.track_kind == TrackKind::Inner; };
  const auto all = std::count_if(lanes.begin(), lanes.end(), inner);
  if (all <= kInnerShown || !settings.filter.isEmpty()) return;
  int seen = 0;
  std::erase_if(lanes, [&](const Lane& lane) { return inner(lane) && ++seen > kInnerShown; });
  for (Lane& lane : lanes)
    if (inner(lane)) lane.title += QString(" of %1").arg(all);
}

// Which tracks of a run are shown together: all, or the tracks of one rank.
struct RankTracks {
  std::vector<int> ranks;  // of the run; empty unless there are several
  int rank = -1;           // -1: tracks that belong to no rank, and the steps of the first rank

  bool has(const prof::Track& track) const {
    if (ranks.empty()) return true;
    const bool first_steps = track.kind == TrackKind::Steps && track.rank == ranks.front();
    return rank < 0 ? track.rank < 0 || first_steps : track.rank == rank && !first_steps;
  }
};

std::vector<int> ranks_in(const prof::Trace& trace) {
  std::set<int> ranks;
  for (const prof::Track& track : trace.tracks())
    if (track.rank >= 0 && track.spans > 0) ranks.insert(track.rank);
  return ranks.size() > 1 ? std::vector<int>(ranks.begin(), ranks.end()) : std::vector<int>();
}

// Below 0 if the first name comes before the second one. Numbers count: "stream 7" comes before "stream 14".
int compared(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto number = [&](std::string_view text) {
    size_t end = 0;
    while (end < text.size() && digit(text[end])) ++end;
    return text.substr(0, end);
  };
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (digit(a[i]) && digit(b[i]) && (i == 0 || !digit(a[i - 1]))) {
      const auto x = number(a.substr(i)), y = number(b.substr(i));
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    }
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

// What a person compares two runs by. Runs without a GPU have the work of their threads, and recorded programs their phases.
void keep_essential(std::vector<Lane>& lanes, const LaneSource& source, bool phases) {
  const bool streams = has_spans_of(TrackKind::Stream, *source.trace);
  std::erase_if(lanes, [&](const Lane& lane) {
    if (lane.kind != LaneKind::Spans || (source.gpu_steps && lane.track_kind == TrackKind::Steps && !lane.gpu_steps)) return true;
    switch (lane.track_kind) {
      case TrackKind::Steps:
      case TrackKind::Stream:
      case TrackKind::Inner:
      case TrackKind::Copies:
        return false;
      case TrackKind::Api:
        return call_row(source.trace->tracks()[lane.tracks[0]]) != CallRow::Runtime;
      case TrackKind::Phases:
        return streams && (!phases || (lane.gpu_steps ? source.gpu_steps : source.trace)->tracks()[lane.tracks[0]].depth > 0 || (source.gpu_steps && !lane.gpu_steps));
      case TrackKind::CpuThread:
        return streams;
      default:
        return true;
    }
  });
}

std::vector<Lane> lanes_of(const LaneSource& source, int run, const LaneSettings& settings, const RankTracks& shown) {
  std::vector<Lane> lanes;
  const auto& tracks = source.trace->tracks();
  const RowStyle style{settings.small, has_spans_of(TrackKind::Stream, *source.trace)};
  const bool steps = has_spans_of(TrackKind::Steps, *source.trace);  // rows of marked steps would show them again
  if (source.gpu_steps && shown.rank < 0)
    for (size_t i = 0; i < source.gpu_steps->tracks().size(); ++i)
      lanes.push_back(span_lane(source, run, i, style, true));
  for (size_t i = 0; i < tracks.size(); ++i)
    if (tracks[i].spans > 0 && shown.has(tracks[i]) && !(steps && tracks[i].kind == TrackKind::ProgramSteps))
      lanes.push_back(span_lane(source, run, i, style));
  std::stable_sort(lanes.begin(), lanes.end(), [&](const Lane& a, const Lane& b) {
    if (a.gpu_steps || b.gpu_steps) return rank(source, a) < rank(source, b);
    const auto &x = tracks[a.tracks[0]], &y = tracks[b.tracks[0]];
    const auto first = rank(source, a), second = rank(source, b);
    const int names = first == second ? compared(x.name, y.name) : 0;
    return std::tuple(first, names, x.depth) < std::tuple(second, 0, y.depth);
  });
  join_rows(lanes, tracks);
  const prof::ThreadNames names(*source.trace);
  name_callers(lanes, tracks, names);
  add_layers(lanes, source, style.streams, settings.small);
  keep_some_inner(lanes, settings);
  if (!settings.quiet_rows && settings.filter.isEmpty()) fold_quiet_lanes(lanes, source, settings);
  name_only_thread(lanes, style.streams);
  name_ranges(lanes, tracks, names);
  separate_stacks(lanes, tracks);
  if (settings.small) join_copies(lanes);
  if (settings.tight > 0) keep_essential(lanes, source, settings.tight < 2);
  return lanes;
}

// Most of the time. What nothing overlaps stands in the row of the computation.
bool communicates(const prof::Track& track) {
  int64_t busy = 0;
  for (size_t m = 0; m < prof::kMeanings; ++m) busy += track.time_of(static_cast<prof::Meaning>(m));
  return 2 * track.time_of(prof::Meaning::Communication) > busy;
}

// One lane for a whole rank: computation above, and below it what communicates beside it.
Lane rank_summary(const LaneSource& source, const Lane& group, int rank, bool small) {
  const auto& tracks = source.trace->tracks();
  Lane lane = group;
  lane.kind = LaneKind::Spans, lane.height = small ? 24 : 30;
  for (const TrackKind kind : {TrackKind::Collectives, TrackKind::CpuThread, TrackKind::Stream}) {
    std::vector<size_t> found;
    for (size_t i = 0; i < tracks.size(); ++i)
      if (tracks[i].rank == rank && tracks[i].kind == kind && tracks[i].spans > 0) found.push_back(i);
    if (!found.empty()) lane.tracks = std::move(found), lane.track_kind = prof::broad_kind(kind);
  }
  std::ranges::stable_sort(lane.tracks, {}, [&](size_t i) { return communicates(tracks[i]); });
  const auto below = std::ranges::count_if(lane.tracks, [&](size_t i) { return communicates(tracks[i]); });
  if (below > 0) lane.upper = lane.tracks.size() - static_cast<size_t>(below);
  return lane;
}

bool is_pool(prof::CounterKind kind) { return kind == prof::CounterKind::PoolUsed || kind == prof::CounterKind::PoolReserved; }

// The memory of the whole device would flatten the memory of a step, so it has its own lane.
bool is_memory(prof::CounterKind kind) {
  return kind == prof::CounterKind::MemoryUsed || kind == prof::CounterKind::MemoryReserved || is_pool(kind);
}

Lane memory_lane(const char* title, int height) {
  Lane lane;
  lane.kind = LaneKind::Memory, lane.key = QString("shared/") + title, lane.title = title;
  lane.height = height;
  return lane;
}

// Names the lines that the lane draws. Where all that is reserved is used, both are one line.
QString memory_key(const Lane& lane, const std::vector<LaneSource>& sources) {
  bool used = false, reserved = false;
  for (const CounterRef& ref : lane.counters) {
    const LaneSource& source = sources[static_cast<size_t>(ref.run)];
    const bool recorded = ref.counter < kUsedCurve;
    const prof::CounterKind kind = recorded ? source.trace->counters()[ref.counter].kind : prof::CounterKind::MemoryUsed;
    const bool holds = kind == prof::CounterKind::MemoryReserved || kind == prof::CounterKind::PoolReserved;
    used = used || (recorded ? !holds : source.memory != prof::MemoryLines::Reserved);
    reserved = reserved || (recorded ? holds : source.memory != prof::MemoryLines::Used);
  }
  if (used && reserved) return QStringLiteral("solid: reserved\ndotted: used");
  return reserved ? QStringLiteral("line: reserved") : QStringLiteral("line: used");
}

QString device_memory_tip() {
  return QObject::tr("Device memory: all that programs hold on the GPU. It is more than the blocks of a program's allocator: "
                     "it includes the CUDA context, libraries, blocks from before the recording, and what an allocator keeps free.");
}

// "device memory used" is too long for the gutter, and "used" is obvious.
QString counter_title(const QString& name) { return name.endsWith(" used") ? name.chopped(5) : name; }

std::vector<Lane> counter_lanes(const std::vector<LaneSource>& sources, const LaneSettings& settings) {
  std::map<QString, Lane> by_name;
  const int low = settings.tight > 0 ? 44 : 80;
  Lane memory = memory_lane("memory", settings.small || settings.tight > 0 ? low : 100), pool = memory_lane("pool", settings.small ? 44 : 60);
  for (size_t run = 0; run < sources.size(); ++run) {
    const auto& counters = sources[run].trace->counters();
    const size_t before = memory.counters.size();
    for (size_t i = 0; i < counters.size(); ++i) {
      if (counters[i].points.empty() || prof::is_loss_curve(counters[i].kind)) continue;
      const CounterRef ref{static_cast<int>(run), i};
      if (is_memory(counters[i].kind)) {
        // A pool's size is a part of the memory in the recorded calls.
        const bool part = sources[run].allocations && is_pool(counters[i].kind);
        (part ? pool : memory).counters.push_back(ref);
        continue;
      }
      const QString name = QString::fromStdString(counters[i].name), unit = QString::fromStdString(counters[i].unit);
      Lane& lane = by_name[name];
      lane.kind = LaneKind::Counter, lane.key = "shared/" + name, lane.title = counter_title(name);
      lane.detail = unit == "%" ? QStringLiteral("0–100 %") : unit == "B" ? QString() : unit;
      lane.height = settings.small ? 44 : 52;
      if (lane.title.endsWith("device memory")) lane.tip = device_memory_tip();
      lane.counters.push_back(ref);
    }
    if (memory.counters.size() > before || !sources[run].allocations) continue;
    if (const int rank = memory_rank(*sources[run].trace); rank >= 0 && memory.detail.isEmpty())
      memory.detail = QString("of rank %1\n").arg(rank);
    memory.tip = device_memory_tip();
    for (size_t curve : {kUsedCurve, kReservedCurve}) memory.counters.push_back({static_cast<int>(run), curve});
  }
  for (auto& [name, lane] : by_name)  // only the other ranks have theirs in the name
    if (const auto ranks = ranks_in(*sources[0].trace); !ranks.empty() && std::ranges::any_of(by_name, [&](const auto& other) { return other.first.endsWith(" · " + name); }))
      lane.title.prepend(QString("rank %1 · ").arg(ranks.front()));
  std::vector<Lane> lanes;
  for (auto& [name, lane] : by_name) lanes.push_back(std::move(lane));
  for (Lane* lane : {&pool, &memory}) {
    if (lane->counters.empty()) continue;
    lane->detail += memory_key(*lane, sources);
    lanes.push_back(std::move(*lane));
  }
  return lanes;
}

void apply_order(std::vector<Lane>& lanes, const LaneSettings& settings) {
  if (settings.order.isEmpty()) return;
  // Lanes that the user moved swap places among themselves, in the wanted order.
  std::vector<size_t> places;
  std::vector<Lane> moved;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (settings.order.contains(lanes[i].key)) places.push_back(i), moved.push_back(lanes[i]);
  std::stable_sort(moved.begin(), moved.end(), [&](const Lane& a, const Lane& b) {
    return settings.order.indexOf(a.key) < settings.order.indexOf(b.key);
  });
  for (size_t i = 0; i < places.size(); ++i) lanes[places[i]] = std::move(moved[i]);
}

Lane group_lane(const QString& key, const QString& title, int run, const LaneSettings& settings) {
  Lane lane;
  lane.kind = LaneKind::Group, lane.run = run, lane.key = key, lane.title = title, lane.height = 20;
  lane.folded = settings.folded.contains(key);
  return lane;
}

struct Builder {
  const LaneSettings& settings;
  std::vector<Lane> pinned{}, rest{};

  void add(const Lane& group, std::vector<Lane> lanes) {
    apply_order(lanes, settings);
    std::erase_if(lanes, [&](const Lane& lane) {
      return settings.hidden.contains(lane.key) || !matches(settings, group.title + " " + lane.title + " " + lane.key);
    });
    for (Lane& lane : lanes)
      if (settings.pinned.contains(lane.key)) lane.pinned = true, pinned.push_back(lane);
    std::erase_if(lanes, [](const Lane& lane) { return lane.pinned; });
    if (lanes.empty() && !settings.filter.isEmpty()) return;
    rest.push_back(group);
    if (!group.folded) std::move(lanes.begin(), lanes.end(), std::back_inserter(rest));
  }

  // Many ranks begin as one lane each, and so do two in a narrow pane. What a user then opens has a key of its own, so that
  // it stays open when the pane gets wider.
  void add_ranks(const LaneSource& source, int run, const std::vector<int>& ranks) {
    const size_t shown_whole = settings.small ? 1 : 2;
    const bool begins_folded = ranks.size() > shown_whole;
    for (const int rank : ranks) {
      LaneSource part = source;
      part.key += QString("/rank %1").arg(rank);
      const QString key = begins_folded ? part.key + "/open" : part.key;
      if (settings.hidden.contains(part.key) || settings.hidden.contains(part.key + "/open")) continue;
      Lane group = group_lane(key, QString("rank %1").arg(rank), run, settings);
      group.of_rank = true;
      group.folded = settings.filter.isEmpty() && group.folded != begins_folded;
      Lane summary = rank_summary(source, group, rank, settings.small);
      if (group.folded && !summary.tracks.empty())
        rest.push_back(std::move(summary));
      else
        add(group, lanes_of(part, run, settings, {ranks, rank}));
    }
  }

  // With several ranks, calls and stacks of the whole program come last: they would push the ranks out of sight.
  void add_run(const Lane& group, const LaneSource& source, int run, const std::vector<int>& ranks) {
    std::vector<Lane> lanes = lanes_of(source, run, settings, {ranks}), host;
    if (!ranks.empty()) {
      const auto first = std::stable_partition(lanes.begin(), lanes.end(), [](const Lane& lane) {
        return lane.track_kind == TrackKind::Steps || lane.track_kind == TrackKind::Phases;
      });
      std::move(first, lanes.end(), std::back_inserter(host));
      lanes.erase(first, lanes.end());
    }
    add(group, std::move(lanes));
    if (group.folded || ranks.empty()) return;
    add_ranks(source, run, ranks);
    if (host.empty()) return;
    Lane of_all = group_lane(source.key + "/host", QStringLiteral("all ranks"), run, settings);
    of_all.of_rank = true;
    add(of_all, std::move(host));
  }
};

}  // namespace

bool allocates(const prof::Track& track) {
  if (track.blocks.empty()) return false;
  // The last block may hold only the end of a run. The middle one shows what a step does.
  for (const prof::SpanBlock* block : {&track.blocks.back(), &track.blocks[track.blocks.size() / 2]})
    for (const prof::Span& span : block->spans)
      if (span.span_kind() == prof::SpanKind::Alloc || span.span_kind() == prof::SpanKind::Free) return true;
  return false;
}

RowInLane row_in(const Lane& lane, size_t track) {
  const double half = lane.height / 2.0;
  if (lane.upper == 0) return {0, static_cast<double>(lane.height)};
  const auto first_below = lane.tracks.begin() + static_cast<std::ptrdiff_t>(lane.upper);
  const bool above = std::find(lane.tracks.begin(), first_below, track) != first_below;
  return above ? RowInLane{0, half + 1.5} : RowInLane{half - 1.5, half + 1.5};
}

std::vector<Lane> build_lanes(const std::vector<LaneSource>& sources, const LaneSettings& settings) {
  Builder builder{settings};
  for (size_t i = 0; i < sources.size(); ++i) {
    const int run = static_cast<int>(i);
    const Lane group = group_lane(sources[i].key, sources[i].title, run, settings);
    builder.add_run(group, sources[i], run, ranks_in(*sources[i].trace));
  }
  if (auto counters = counter_lanes(sources, settings); !counters.empty()) {
    Lane group = group_lane(settings.counters_begin_folded ? "shared/open" : "shared", "Counters and memory", -1, settings);
    if (settings.counters_begin_folded) group.folded = settings.filter.isEmpty() && !group.folded;
    builder.add(group, std::move(counters));
  }
  std::vector<Lane> all;
  if (!builder.pinned.empty()) all.push_back(group_lane("pinned", "Pinned", -1, settings));
  if (!all.empty() && !all[0].folded) std::move(builder.pinned.begin(), builder.pinned.end(), std::back_inserter(all));
  std::move(builder.rest.begin(), builder.rest.end(), std::back_inserter(all));
  mark_nested(all);
  return all;
}

namespace {

constexpr int kWorkRow = 24;  // lower rows are less interesting and stay low

bool is_row(const Lane& lane, TrackKind kind) {
  return lane.kind == LaneKind::Spans && lane.track_kind == kind && lane.height >= kWorkRow;
}

// Layers, phases and ranges, samples, loaders: their names need some height.
bool is_host_row(const Lane& lane) {
  if (lane.kind == LaneKind::Layers) return true;
  return lane.kind == LaneKind::Spans && !lane.folded && (lane.track_kind == TrackKind::Phases || lane.track_kind == TrackKind::Other);
}

// Rows that gain from more height, with their maximum height.
struct Growth {
  bool (*fits)(const Lane&);
  int most;
};
constexpr Growth kGrowth[] = {
    {[](const Lane& lane) { return is_row(lane, TrackKind::Stream) || is_row(lane, TrackKind::CpuThread); }, 96},
    {[](const Lane& lane) { return is_row(lane, TrackKind::Api); }, 56},
    {is_host_row, 30},
    {[](const Lane& lane) { return lane.kind == LaneKind::Counter && !lane.flat; }, 72},
    {[](const Lane& lane) { return lane.kind == LaneKind::Memory && !lane.flat; }, kMostMemory}};

// Distributes spare height: first to the rows of kernels, last to memory. Height that helps no row stays empty.
void grow(std::vector<Lane>& lanes, int spare) {
  for (const Growth& growth : kGrowth) {
    auto left = static_cast<int>(std::ranges::count_if(lanes, growth.fits));
    for (Lane& lane : lanes) {
      if (!growth.fits(lane)) continue;
      const int own = std::clamp(spare / left--, 0, std::max(0, growth.most - lane.height));
      lane.height += own, spare -= own;
    }
  }
}

int spare_of(const Lane& lane) {
  const bool curve = lane.kind == LaneKind::Counter || lane.kind == LaneKind::Memory;
  return curve && !lane.flat ? std::max(0, lane.height - kLeastCurve) : 0;
}

void shrink(std::vector<Lane>& lanes, int lacking) {
  for (auto lane = lanes.rbegin(); lane != lanes.rend() && lacking > 0; ++lane) {
    const int less = std::min(lacking, spare_of(*lane));
    lane->height -= less, lacking -= less;
  }
}

}  // namespace

int least_height(const std::vector<Lane>& lanes) {
  return std::accumulate(lanes.begin(), lanes.end(), 0, [](int height, const Lane& lane) { return height + lane.height - spare_of(lane); });
}

int place_lanes(std::vector<Lane>& lanes, int viewport) {
  int total = 0;
  for (const Lane& lane : lanes) total += lane.height;
  if (total < viewport) grow(lanes, viewport - total);
  if (viewport > 0 && total > viewport && least_height(lanes) <= viewport) shrink(lanes, total - viewport), total = viewport;
  int y = 0;
  for (Lane& lane : lanes) lane.y = y, y += lane.height;
  return std::max(total, y);
}

int lane_at(const std::vector<Lane>& lanes, int y) {
  auto it = std::upper_bound(lanes.begin(), lanes.end(), y, [](int at, const Lane& l) { return at < l.bottom(); });
  return it == lanes.end() || y < it->y ? -1 : static_cast<int>(it - lanes.begin());
}

}  // namespace ws::app
