#include "profiling/causes/critical_path.h"

#include <algorithm>

#include "profiling/analysis/covered_time.h"

namespace ws::prof {
namespace {

int64_t lag_of(const CauseGraph& graph, const Timing& timing, EventId event, uint32_t edge) {
  return graph.edges[edge].kind == EdgeKind::Work ? timing.work_ns[event / 2] : timing.lag[edge];
}

// The edge that decided when the event happened; the number of edges if none did.
uint32_t deciding_edge(const CauseGraph& graph, const Timing& timing, const std::vector<TimeNs>& times, EventId event) {
  for (uint32_t e = graph.first_edge[event]; e < graph.first_edge[event + 1]; ++e) {
    const int64_t lag = lag_of(graph, timing, event, e);
    if (lag != kNoLag && times[graph.edges[e].from] + lag == times[event]) return e;
  }
  return static_cast<uint32_t>(graph.edges.size());
}

// Goes back from the last event. An overlap of two kernels goes backwards in time, so a piece is cut where the next begins.
void walk_back(const CauseGraph& graph, const Timing& timing, const std::vector<TimeNs>& times, EventId last, CriticalPath& path) {
  TimeNs until = times[last];
  for (EventId event = last;;) {
    const uint32_t edge = deciding_edge(graph, timing, times, event);
    if (edge == graph.edges.size()) return;
    const EventId from = graph.edges[edge].from;
    const TimeNs begin = std::min(until, times[from]);
    if (until > begin) {
      path.pieces.push_back({event, edge, begin, until});
      const EdgeKind kind = graph.edges[edge].kind;
      (kind == EdgeKind::Work || kind == EdgeKind::Transfer ? path.node_ns[event / 2] : path.edge_ns[edge]) += until - begin;
      path.total_ns += until - begin;
    }
    until = begin, event = from;
  }
}

void find_slack(const CauseGraph& graph, const Timing& timing, const std::vector<TimeNs>& times, TimeNs last, CriticalPath& path) {
  std::vector<TimeNs> latest;
  for (const TimeNs time : times) latest.push_back(time > last ? kAlways / 2 : last);  // what comes after the end delays nothing
  for (auto event = graph.order.rbegin(); event != graph.order.rend(); ++event)
    for (uint32_t e = graph.first_edge[*event]; e < graph.first_edge[*event + 1]; ++e)
      if (const int64_t lag = lag_of(graph, timing, *event, e); lag != kNoLag) {
        TimeNs& cause = latest[graph.edges[e].from];
        cause = std::min(cause, latest[*event] - lag);
      }
  for (size_t node = 0; node < graph.nodes.size(); ++node) path.slack_ns[node] = std::max<int64_t>(0, std::min(latest[end_of(node)], last) - times[end_of(node)]);
}

// The end of the last work on the GPU ends the steps, as for ReplayRate. A thread that only asks if the GPU is done may go on for longer.
EventId last_event(const CauseGraph& graph, const std::vector<TimeNs>& times) {
  const bool gpu = std::ranges::any_of(graph.nodes, [](const CauseNode& node) { return !runs_on_host(node.kind); });
  EventId last = 0;
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    if (times[end_of(node)] > times[last] && !(gpu && runs_on_host(graph.nodes[node].kind))) last = end_of(node);
  return last;
}

}  // namespace

PathCauseId cause_of_node(const CauseNode& node) {
  switch (node.kind) {
    case NodeKind::Launch:
      return {PathCause::LaunchCalls, Meaning::Launch};
    case NodeKind::CopyCall:
      return {PathCause::CopyCalls, Meaning::Copy};
    case NodeKind::Wait:
      return {PathCause::SyncCalls, Meaning::Sync};
    case NodeKind::Allocation:
    case NodeKind::Free:
      return {PathCause::AllocatorCalls, Meaning::Allocation};
    case NodeKind::OtherCall:
      return {PathCause::OtherCalls, Meaning::Other};
    case NodeKind::DataWait:
      return {PathCause::WaitsForData, Meaning::Idle};
    case NodeKind::Copy:
      return {PathCause::Work, Meaning::Copy};
    case NodeKind::Kernel:
    case NodeKind::CpuOp:
    case NodeKind::Meeting:
      break;
  }
  return {PathCause::Work, node.meaning};
}

PathCauseId cause_of_edge(const CauseGraph& graph, EventId to, const CauseEdge& edge) {
  constexpr PathCauseId kOf[] = {{},  // in the order of EdgeKind; Work has the cause of its node, and so has Transfer
                                 {PathCause::HostBetweenCalls, Meaning::Idle},
                                 {PathCause::GapsBetweenKernels, Meaning::Idle},
                                 {PathCause::LaunchDelay, Meaning::Launch},
                                 {PathCause::WakeUp, Meaning::Sync},
                                 {PathCause::OtherStream, Meaning::Sync},
                                 {PathCause::FullQueue, Meaning::Launch},
                                 {PathCause::LateRank, Meaning::Communication}};
  static_assert(std::size(kOf) == static_cast<size_t>(EdgeKind::Transfer));
  if (edge.kind == EdgeKind::Work || edge.kind == EdgeKind::Transfer) return cause_of_node(graph.nodes[to / 2]);
  return kOf[static_cast<size_t>(edge.kind)];
}

CriticalPath critical_path(const CauseGraph& graph, const Timing& timing, const std::vector<TimeNs>& times) {
  CriticalPath path;
  path.node_ns.assign(graph.nodes.size(), 0), path.slack_ns.assign(graph.nodes.size(), 0), path.edge_ns.assign(graph.edges.size(), 0);
  if (times.empty()) return path;
  const EventId last = last_event(graph, times);
  walk_back(graph, timing, times, last, path);
  std::ranges::reverse(path.pieces);
  find_slack(graph, timing, times, times[last], path);
  return path;
}

CriticalPath while_gpus_wait(const CauseGraph& graph, const std::vector<TimeNs>& times, CriticalPath path) {
  std::vector<TimeRange> work;
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    if (!runs_on_host(graph.nodes[node].kind)) work.push_back({times[start_of(node)], times[end_of(node)]});
  const CoveredTime busy(std::move(work));
  for (const PathPiece& piece : path.pieces) {
    const int64_t ns = busy.within({piece.begin, piece.end});
    const EdgeKind kind = graph.edges[piece.edge].kind;
    (kind == EdgeKind::Work || kind == EdgeKind::Transfer ? path.node_ns[piece.to / 2] : path.edge_ns[piece.edge]) -= ns, path.total_ns -= ns;
  }
  return path;
}

}  // namespace ws::prof
