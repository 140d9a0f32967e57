#include "profiling/causes/replay.h"

#include <algorithm>

#include "profiling/base/statistics.h"

namespace ws::prof {

Timing measured_timing(const CauseGraph& graph) {
  Timing timing;
  timing.work_ns.reserve(graph.nodes.size()), timing.lag.reserve(graph.edges.size());
  for (const CauseNode& node : graph.nodes) timing.work_ns.push_back(node.work_ns);
  for (const CauseEdge& edge : graph.edges) timing.lag.push_back(edge.lag);
  return timing;
}

void replay(const CauseGraph& graph, const Timing& timing, std::vector<TimeNs>& times) {
  times.resize(2 * graph.nodes.size());
  for (const EventId event : graph.order) {
    TimeNs latest = -kAlways;
    const uint32_t end = graph.first_edge[event + 1];
    for (uint32_t e = graph.first_edge[event]; e < end; ++e) {
      const CauseEdge& edge = graph.edges[e];
      const int64_t lag = edge.kind == EdgeKind::Work ? timing.work_ns[event / 2] : timing.lag[e];
      if (lag != kNoLag) latest = std::max(latest, times[edge.from] + lag);
    }
    times[event] = latest == -kAlways ? graph.measured(event) : latest;
  }
}

std::vector<TimeNs> replay(const CauseGraph& graph, const Timing& timing) {
  std::vector<TimeNs> times;
  replay(graph, timing, times);
  return times;
}

namespace {

// At most kPieces + 1 of them, the last one always.
std::vector<TimeNs> spread(std::vector<TimeNs> cuts, size_t pieces) {
  if (cuts.size() <= pieces + 1) return cuts;
  std::vector<TimeNs> some;
  for (size_t piece = 0; piece <= pieces; ++piece) some.push_back(cuts[(cuts.size() - 1) * piece / pieces]);
  return some;
}

std::vector<TimeNs> equal_pieces(TimeNs begin, TimeNs end, size_t pieces) {
  std::vector<TimeNs> cuts;
  for (size_t piece = 0; piece <= pieces; ++piece) cuts.push_back(begin + static_cast<TimeNs>(static_cast<double>(end - begin) * static_cast<double>(piece) / static_cast<double>(pieces)));
  return cuts;
}

}  // namespace

ReplayRate::ReplayRate(const CauseGraph& graph, std::vector<TimeNs> cuts) {
  if (graph.nodes.empty()) return;
  const bool gpu = std::ranges::any_of(graph.nodes, [](const CauseNode& node) { return !runs_on_host(node.kind); });
  for (uint32_t node = 0; node < graph.nodes.size(); ++node)
    if (!gpu || !runs_on_host(graph.nodes[node].kind)) by_end_.push_back(node);
  std::ranges::stable_sort(by_end_, {}, [&](uint32_t node) { return graph.nodes[node].end(); });
  cuts = cuts.size() < 3 ? equal_pieces(graph.nodes.front().start, graph.nodes[by_end_.back()].end(), kPieces) : spread(std::move(cuts), kPieces);
  size_t node = 0;
  for (const TimeNs cut : cuts) {
    while (node < by_end_.size() && graph.nodes[by_end_[node]].end() <= cut) ++node;
    until_.push_back(node);
    measured_.push_back(node == 0 ? graph.nodes.front().start : graph.nodes[by_end_[node - 1]].end());
  }
  first_ = (cuts.size() - 1) / 2;
}

std::vector<TimeNs> ReplayRate::ends(const std::vector<TimeNs>& times) const {
  std::vector<TimeNs> ends;
  TimeNs latest = measured_.empty() ? 0 : measured_[0];
  size_t node = 0;
  for (const size_t until : until_) {
    for (; node < until; ++node) latest = std::max(latest, times[end_of(by_end_[node])]);
    ends.push_back(latest);
  }
  return ends;
}

int64_t ReplayRate::replayed_ns(const std::vector<TimeNs>& times) const {
  if (until_.empty()) return 0;
  const std::vector<TimeNs> at = ends(times);
  return at.back() - at[first_];
}

double ReplayRate::ratio(const std::vector<TimeNs>& times) const {
  const double measured = middle_piece(measured_);
  return measured > 0 ? middle_piece(ends(times)) / measured : 1;
}

double ReplayRate::middle_piece(const std::vector<TimeNs>& at) const {
  std::vector<double> pieces;
  for (size_t piece = first_; piece + 1 < at.size(); ++piece) pieces.push_back(static_cast<double>(at[piece + 1] - at[piece]));
  return pieces.empty() ? 0 : median(std::move(pieces));
}

std::vector<double> ReplayRate::ratios(const std::vector<TimeNs>& times) const {
  std::vector<double> ratios;
  const std::vector<TimeNs> at = ends(times);
  for (size_t piece = first_; piece + 1 < at.size(); ++piece)
    if (measured_[piece + 1] > measured_[piece])
      ratios.push_back(static_cast<double>(at[piece + 1] - at[piece]) / static_cast<double>(measured_[piece + 1] - measured_[piece]));
  return ratios;
}

}  // namespace ws::prof
