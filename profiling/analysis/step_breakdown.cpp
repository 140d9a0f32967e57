#include "profiling/analysis/step_breakdown.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "profiling/trace/trace.h"
#include "profiling/trace/span_walk.h"

namespace ws::prof {

namespace {

// Computing has priority: communication and copies that overlap with it cost nothing.
constexpr Meaning kWork[] = {Meaning::Matrix, Meaning::Pointwise, Meaning::Reduction, Meaning::Loss, Meaning::Optimizer, Meaning::Other,
                             Meaning::Communication, Meaning::Copy};
constexpr Meaning kCalls[] = {Meaning::Allocation, Meaning::Sync, Meaning::Launch};

struct Edge {
  TimeNs time;
  uint8_t cause;  // a Meaning, kInStep, kQueued, kHost + HostWork, or kRankWait
  int8_t change;
  OpTag op = kNoOp;  // op of the span that begins or ends here
  NameId name{};
};
constexpr uint8_t kInStep = kMeanings, kQueued = kMeanings + 1, kHost = kMeanings + 2, kRankWait = kHost + kHostWorks;
using Active = std::array<int, kRankWait + 1>;

Meaning work_meaning(const Span& span) {
  if (span.span_kind() == SpanKind::Copy || span.span_kind() == SpanKind::Memset) return Meaning::Copy;
  const Meaning meaning = span.span_meaning();
  return is_kernels(meaning) || meaning == Meaning::Copy ? meaning : Meaning::Other;
}

std::optional<Meaning> call_meaning(const Span& span) {
  switch (span.span_kind()) {
    case SpanKind::Alloc:
    case SpanKind::Free:
      return Meaning::Allocation;
    case SpanKind::Sync:
      return Meaning::Sync;
    case SpanKind::GraphLaunch:
      return Meaning::Launch;
    case SpanKind::Api:
      break;
    default:
      return std::nullopt;
  }
  const Meaning meaning = span.span_meaning();
  if (meaning == Meaning::Allocation || meaning == Meaning::Sync || meaning == Meaning::Launch) return meaning;
  return std::nullopt;
}

bool has_gpu_work(const Trace& trace, int rank) {
  for (const Track& track : tracks_of_rank(trace, rank)) {
    if (on_gpu(track) && track.spans > 0) return true;
  }
  return false;
}

// The cause that a span gives to its time, or nullopt if it gives none.
std::optional<uint8_t> cause_of(const Track& track, const Span& span, bool gpu) {
  const SpanKind kind = span.span_kind();
  if (kind == SpanKind::Step) return kInStep;
  if (broad_kind(track.kind) == TrackKind::Overhead || kind == SpanKind::Phase) return std::nullopt;
  const bool work = is_kernel(span) || kind == SpanKind::Copy || kind == SpanKind::Memset;
  if (track.kind == TrackKind::Inner) return std::nullopt;  // the kernel around it counts
  if (work && on_gpu(track)) return static_cast<uint8_t>(work_meaning(span));
  if (is_stream_wait(track, span)) return std::nullopt;
  if (const auto call = call_meaning(span)) return static_cast<uint8_t>(*call);
  if (!gpu && times_collectives(track)) return static_cast<uint8_t>(Meaning::Communication);
  if (!gpu && track.kind == TrackKind::CpuThread && (kind == SpanKind::Op || work)) {
    const Meaning meaning = span.span_meaning();
    return static_cast<uint8_t>(meaning <= Meaning::Sync || is_kernels(meaning) ? meaning : Meaning::Other);
  }
  return std::nullopt;
}

// What the program's own ranges say about the host. Deeper ranges say the same as the ranges around them.
void add_host_work(std::vector<Edge>& edges, const Trace& trace, int rank, TimeNs begin, TimeNs end) {
  constexpr int kDeepest = 2;
  constexpr std::string_view kPhases[kHostWorks] = {"data", "optimizer", "backward", "forward"};
  std::vector<uint8_t> work(trace.ops.size(), kHostWorks);
  for (size_t op = 0; op < work.size(); ++op)
    for (uint8_t phase = 0; phase < kHostWorks; ++phase)
      if (trace.ops[op].phase == kPhases[phase]) work[op] = phase;
  for (const Track& track : tracks_of_rank(trace, rank)) {
    if (track.kind != TrackKind::Ranges || track.depth > kDeepest) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const TimeNs from = std::max(span.start, begin), to = std::min(span.end(), end);
      if (span.op >= work.size() || work[span.op] == kHostWorks || from >= to) return;
      const auto cause = static_cast<uint8_t>(kHost + work[span.op]);
      edges.push_back({from, cause, 1, span.op, span.name});
      edges.push_back({to, cause, -1, span.op, span.name});
    });
  }
}

// A launched graph does not wait for host calls: gaps from its launch to its last kernel belong to the GPU. A graph
// without a launch in this stretch was launched before it.
void add_graphs(std::vector<Edge>& edges, const Trace& trace, int rank, TimeNs begin, TimeNs end) {
  std::unordered_map<uint32_t, std::pair<TimeNs, TimeNs>> graphs;
  for (const Track& track : tracks_of_rank(trace, rank)) {
    if (!on_gpu(track)) continue;
    each_span(track, begin, end + 1,
              [&](const Span& span) {  // the gap at the end belongs to the graph that begins there
                if (span.correlation == 0 || !((span.flags & kInGraph) || span.span_kind() == SpanKind::GraphRun))
                  return;
                auto& graph = graphs.try_emplace(span.correlation, begin, span.end()).first->second;
                graph.second = std::max(graph.second, span.end());
              });
  }
  if (graphs.empty()) return;
  for (const Track& track : tracks_of_rank(trace, rank)) {
    if (on_gpu(track) || track.kind == TrackKind::Inner) continue;
    each_span(track, begin, end, [&](const Span& span) {
      const auto graph = span.correlation == 0 ? graphs.end() : graphs.find(span.correlation);
      if (graph != graphs.end()) graph->second.first = std::max(graph->second.first, span.end());
    });
  }
  for (const auto& [correlation, graph] : graphs) {
    const TimeNs last = std::min(graph.second, end);
    if (graph.first >= last) continue;
    edges.push_back({graph.first, kQueued, 1, kNoOp, {}});
    edges.push_back({last, kQueued, -1, kNoOp, {}});
  }
}

// A collective waits from its begin until the last rank arrives.
void add_rank_wait(std::vector<Edge>& edges, const CollectiveWaits& waits, const Track& track, const Span& span, TimeNs begin, TimeNs end) {
  const auto parts = waits.of(track.rank, span);
  const TimeNs from = std::max(span.start, begin), to = std::min(parts ? span.start + parts->wait : from, end);
  if (from >= to) return;
  edges.push_back({from, kRankWait, 1, span.op, span.name});
  edges.push_back({to, kRankWait, -1, span.op, span.name});
}

std::vector<Edge> edges_of(const Trace& trace, int rank, const CollectiveWaits& waits, TimeNs begin, TimeNs end) {
  std::vector<Edge> edges;
  const bool gpu = has_gpu_work(trace, rank);
  for (const Track& track : tracks_of_rank(trace, rank)) {
    // A kernel that begins while the one before it in its stream still runs waits for that one's end.
    TimeNs turn = begin;
    each_span(track, begin, end, [&](const Span& span) {
      const auto cause = cause_of(track, span, gpu);
      const bool in_turn = cause && on_gpu(track) && (computes(static_cast<Meaning>(*cause)) || *cause == static_cast<uint8_t>(Meaning::Other));
      const TimeNs from = std::max(span.start, in_turn ? turn : begin), to = std::min(span.end(), end);
      if (!cause || from >= to) return;
      if (in_turn) turn = to;
      edges.push_back({from, *cause, 1, span.op, span.name});
      edges.push_back({to, *cause, -1, span.op, span.name});
      if (*cause == static_cast<uint8_t>(Meaning::Communication)) add_rank_wait(edges, waits, track, span, begin, end);
    });
  }
  add_graphs(edges, trace, rank, begin, end);
  add_host_work(edges, trace, rank, begin, end);
  std::ranges::sort(edges, {}, &Edge::time);
  return edges;
}

// Without step marks, the time between the first and the last work counts as inside steps. Only a GPU waits for
// launches.
Meaning cause_now(const Active& active, bool gpu, bool has_steps, bool between) {
  for (const Meaning meaning : kWork)
    if (active[static_cast<size_t>(meaning)] > 0) return meaning;
  if (active[kQueued] > 0) return Meaning::Launch;
  for (const Meaning meaning : kCalls)
    if (active[static_cast<size_t>(meaning)] > 0) return meaning;
  return gpu && (has_steps ? active[kInStep] > 0 : between) ? Meaning::Launch : Meaning::Idle;
}

void add_gap(Breakdown& result, Meaning cause, const Active& active, TimeNs ns) {
  if ((cause != Meaning::Launch && cause != Meaning::Idle) || active[kQueued] > 0) return;
  for (size_t work = 0; work < kHostWorks; ++work)
    if (active[kHost + work] > 0)
      return void((cause == Meaning::Launch ? result.gaps[work].launch : result.gaps[work].idle) += ns);
}

// True if all collectives that run wait for a rank.
bool waits_for_ranks(Meaning cause, const Active& active) {
  return cause == Meaning::Communication && active[kRankWait] >= active[static_cast<size_t>(Meaning::Communication)];
}

// The running kernels, in the order in which they began.
class Running {
 public:
  void change(const Edge& edge) {
    if (edge.cause >= kMeanings || !is_kernels(static_cast<Meaning>(edge.cause))) return;
    auto& now = running_[edge.cause];
    const WorkId work{static_cast<Meaning>(edge.cause), edge.name, edge.op};
    if (edge.change > 0) return now.push_back(work);
    if (const auto at = std::ranges::find(now, work); at != now.end()) now.erase(at);
  }
  const WorkTimes& times() const { return times_; }
  void take(Meaning cause, TimeNs ns) {
    if (ns > 0 && is_kernels(cause)) times_[running_[static_cast<size_t>(cause)].front()] += ns;
  }

 private:
  WorkTimes times_;
  std::array<std::vector<WorkId>, kMeanings> running_;
};

// Distributes the time of a kernel over its parts. The sum does not change.
void split(const WorkId& work, int64_t ns, std::span<const InnerPart> parts, Breakdown& result, WorkTimes* by_work) {
  const auto give = [&](const WorkId& to, int64_t part) {
    result.times[static_cast<size_t>(to.meaning)] += part;
    if (to.meaning == Meaning::Sync) result.inner_wait += part;
    if (by_work && part > 0) (*by_work)[to] += part;
  };
  result.times[static_cast<size_t>(work.meaning)] -= ns;
  double share = 0;
  int64_t given = 0;
  for (const InnerPart& part : parts) {
    share += part.share;
    const int64_t until = &part == &parts.back() ? ns : std::llround(share * static_cast<double>(ns));
    give({part.meaning, part.name, part.op}, until - given);
    given = until;
  }
  give(work, ns - given);
}

}  // namespace

int64_t Breakdown::kernels() const {
  int64_t sum = 0;
  for (const Meaning meaning : kPartOrder) sum += is_kernels(meaning) ? times[static_cast<size_t>(meaning)] : 0;
  return sum;
}

Breakdown breakdown(const Trace& trace, TimeNs begin, TimeNs end, WorkTimes* by_work) {
  return breakdown(trace, InsideKernels(trace, {begin, end}), begin, end, by_work);
}

Breakdown breakdown(const Trace& trace, const InsideKernels& inside, TimeNs begin, TimeNs end, WorkTimes* by_work) {
  return breakdown_of_rank(trace, rank_of_steps(trace), inside, begin, end, by_work);
}

Breakdown breakdown_of_rank(const Trace& trace, int rank, const InsideKernels& inside, TimeNs begin, TimeNs end, WorkTimes* by_work) {
  Breakdown result{begin, std::max(begin, end), 0, {}};
  const std::vector<Edge> edges = edges_of(trace, rank, inside.waits, begin, end);
  const bool gpu = has_gpu_work(trace, rank);
  result.only_collectives = !gpu && std::ranges::any_of(trace.tracks(), times_collectives);
  bool has_steps = false;
  TimeNs last_work = begin;
  for (const Edge& edge : edges) {
    if (edge.cause == kInStep)
      has_steps = true, result.steps += edge.change > 0;
    else if (edge.cause < kInStep)
      last_work = edge.time;
  }
  Active active{};
  Running running;
  TimeNs now = begin;
  bool begun = false;
  for (const Edge& edge : edges) {
    const Meaning cause = cause_now(active, gpu, has_steps, begun && now < last_work);
    result.times[static_cast<size_t>(cause)] += edge.time - now;
    add_gap(result, cause, active, edge.time - now);
    if (waits_for_ranks(cause, active)) {
      result.rank_wait += edge.time - now;
    } else {
      if (is_kernels(cause) || cause == Meaning::Copy) result.busy += edge.time - now;
      running.take(cause, edge.time - now);
    }
    now = edge.time;
    active[edge.cause] += edge.change;
    running.change(edge);
    begun |= edge.cause < kInStep;
  }
  result.times[static_cast<size_t>(Meaning::Idle)] += result.end - now;
  for (const auto& [work, ns] : running.times()) split(work, ns, inside.lanes.of(work.op), result, by_work);
  return result;
}

Breakdown breakdown(const Trace& trace) {
  TimeNs begin = std::numeric_limits<TimeNs>::max(), end = std::numeric_limits<TimeNs>::min();
  for (const bool steps_only : {true, false}) {
    for (const Track& track : tracks_of_steps(trace)) {
      if (track.blocks.empty() || (steps_only && track.kind != TrackKind::Steps)) continue;
      begin = std::min(begin, track.blocks.front().first);
      end = std::max(end, track.blocks.back().reach);
    }
    if (begin < end) return breakdown(trace, begin, end);
  }
  return {};
}

std::vector<BreakdownPart> parts_of(const Breakdown& breakdown) {
  constexpr std::tuple<HostWork, PartId> kHostParts[] = {
      {HostWork::Forward, {Meaning::Other, PartKind::HostForward}},
      {HostWork::Backward, {Meaning::Other, PartKind::HostBackward}},
      {HostWork::Optimizer, {Meaning::Optimizer, PartKind::HostOptimizer}},
      {HostWork::Data, {Meaning::Idle, PartKind::HostData}}};
  const bool host_alone = breakdown.busy + breakdown.rank_wait == 0;
  MeaningTimes left = breakdown.times;
  std::vector<BreakdownPart> host, parts;
  for (const auto& [work, id] : kHostParts) {
    const HostGap& gap = breakdown.gaps[static_cast<size_t>(work)];
    if (gap.launch + gap.idle <= 0 || (!host_alone && work != HostWork::Data)) continue;
    host.push_back({id, gap.launch + gap.idle});
    left[static_cast<size_t>(Meaning::Launch)] -= gap.launch, left[static_cast<size_t>(Meaning::Idle)] -= gap.idle;
  }
  left[static_cast<size_t>(Meaning::Communication)] -= breakdown.rank_wait, left[static_cast<size_t>(Meaning::Sync)] -= breakdown.inner_wait;
  const auto add = [&](const PartId& id) {
    if (const int64_t ns = left[static_cast<size_t>(id.meaning)]; ns > 0) parts.push_back({id, ns});
  };
  for (const Meaning meaning : kPartOrder)
    if (meaning != Meaning::Idle) add({meaning});
  if (breakdown.rank_wait > 0) parts.push_back({{Meaning::Communication, PartKind::RankWait}, breakdown.rank_wait});
  if (breakdown.inner_wait > 0) parts.push_back({{Meaning::Sync, PartKind::InnerWait}, breakdown.inner_wait});
  parts.insert(parts.end(), host.begin(), host.end());
  add({Meaning::Idle, breakdown.only_collectives          ? PartKind::NotRecorded
                      : host_alone && !host.empty() ? PartKind::HostOther
                                                     : PartKind::OfMeaning});
  return parts;
}

bool gpu_waits_in(const PartId& part) {
  const bool named = part.kind == PartKind::OfMeaning || part.kind == PartKind::HostData;
  return named && (part.meaning == Meaning::Allocation || part.meaning == Meaning::Sync || part.meaning == Meaning::Launch || part.meaning == Meaning::Idle);
}

}  // namespace ws::prof
