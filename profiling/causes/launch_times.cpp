#include "profiling/causes/launch_times.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "profiling/base/statistics.h"

namespace ws::prof {
namespace {

constexpr size_t kFewestLaunches = 8;     // launches of a place
constexpr double kMostOf = 0.75;  // of them find the same
constexpr size_t kFewestKernels = 3;  // that were launched both ways
constexpr int kMostPasses = 3;

bool is_made(const CauseGraph& graph, const Timing& timing, uint32_t call) { return timing.work_ns[call] > 0 || graph.nodes[call].work_ns == 0; }

}  // namespace

LaunchTimes::LaunchTimes(const CauseGraph& graph) : graph_(graph), call_before_(graph.nodes.size()) {
  std::map<uint32_t, uint32_t> last;  // by row
  std::vector<bool> seen(graph.nodes.size(), false);
  for (uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const CauseNode& n = graph.nodes[node];
    call_before_[node] = node;
    if (n.kind == NodeKind::Meeting) continue;
    const auto before = last.find(n.row);
    if (before != last.end()) call_before_[node] = before->second;
    for (uint32_t e = graph.first_edge[start_of(node)]; n.kind == NodeKind::Kernel && e < graph.first_edge[start_of(node) + 1]; ++e) {
      const uint32_t call = graph.edges[e].from / 2;
      if (graph.edges[e].kind != EdgeKind::Launch || seen[call]) continue;
      seen[call] = true;
      launches_.push_back({call, node, call_before_[node], LaunchFinds::BusyStream});
    }
    last[n.row] = node;
  }
  const Timing measured = measured_timing(graph);
  const std::vector<TimeNs> times = replay(graph, measured);
  for (Launch& launch : launches_) launch.finds = finds(launch, measured, times);
  learn();
}

LaunchFinds LaunchTimes::finds(const Launch& launch, const Timing& timing, const std::vector<TimeNs>& times) const {
  uint32_t before = launch.call;
  do {
    const uint32_t earlier = call_before_[before];
    if (earlier == before) break;
    before = earlier;
  } while (!is_made(graph_, timing, before));
  if (before != launch.call && graph_.nodes[before].kind == NodeKind::Free) return LaunchFinds::FreedMemory;
  const bool idle = launch.before == launch.kernel || times[end_of(launch.before)] <= times[start_of(launch.call)];
  return idle ? LaunchFinds::IdleStream : LaunchFinds::BusyStream;
}

// A slow launch makes the next one find an idle stream. So places of the step are compared, not single launches: a place counts
// where nearly all of its launches find the same.
void LaunchTimes::learn() {
  struct Place {
    std::array<std::vector<double>, 3> ns;
  };
  std::map<NameId, std::map<OpTag, Place>> kernels;
  std::array<std::vector<double>, 3> all;
  for (const Launch& launch : launches_) {
    const auto ns = static_cast<double>(graph_.nodes[launch.call].work_ns);
    kernels[graph_.nodes[launch.kernel].name][graph_.nodes[launch.kernel].op].ns[static_cast<size_t>(launch.finds)].push_back(ns);
    all[static_cast<size_t>(launch.finds)].push_back(ns);
  }
  std::array<std::vector<double>, 3> longer;
  for (const auto& [name, places] : kernels) {
    std::array<std::vector<double>, 3> medians;
    for (const auto& [op, place] : places) {
      const size_t launches = place.ns[0].size() + place.ns[1].size() + place.ns[2].size();
      for (size_t kind = 0; kind < 3; ++kind)
        if (place.ns[kind].size() >= kFewestLaunches && static_cast<double>(place.ns[kind].size()) >= kMostOf * static_cast<double>(launches)) medians[kind].push_back(median(place.ns[kind]));
    }
    std::vector<double> not_freed = medians[0];
    not_freed.insert(not_freed.end(), medians[1].begin(), medians[1].end());
    if (!medians[0].empty() && !medians[1].empty()) longer[1].push_back(median(medians[1]) - median(medians[0]));
    if (!medians[2].empty() && !not_freed.empty()) longer[2].push_back(median(medians[2]) - median(not_freed));
  }
  std::vector<double> not_freed = all[0];
  not_freed.insert(not_freed.end(), all[1].begin(), all[1].end());
  for (size_t kind = 1; kind < 3; ++kind)
    if (longer[kind].size() >= kFewestKernels) longer_[kind] = std::llround(std::max(0.0, median(longer[kind])));
  spread_[1] = not_freed.empty() ? 0 : std::llround(spread_around_median(not_freed));
  spread_[2] = all[2].empty() || not_freed.empty() ? 0 : std::llround(std::abs(median(all[2]) - median(not_freed)));
}

void LaunchTimes::settle(Timing& timing, std::vector<TimeNs>& times) const {
  replay(graph_, timing, times);
  if (known_ns(LaunchFinds::IdleStream) == 0 && known_ns(LaunchFinds::FreedMemory) == 0) return;
  std::vector<int64_t> edited;
  for (const Launch& launch : launches_) edited.push_back(timing.work_ns[launch.call]);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool moved = false;
    for (size_t i = 0; i < launches_.size(); ++i) {
      if (edited[i] == 0) continue;
      const int64_t longer = known_ns(finds(launches_[i], timing, times)) - known_ns(launches_[i].finds);
      int64_t& work = timing.work_ns[launches_[i].call];
      const int64_t now = std::max<int64_t>(1, edited[i] + longer);
      moved |= now != work, work = now;
    }
    if (!moved) break;
    replay(graph_, timing, times);
  }
}

LaunchTimes::Unknown LaunchTimes::unknown(const Timing& settled, const std::vector<TimeNs>& times) const {
  Unknown all;
  for (const Launch& launch : launches_) {
    if (settled.work_ns[launch.call] == 0) continue;  // and finds() looks back to the call before, not through all that are gone
    const LaunchFinds now = finds(launch, settled, times);
    if (now == launch.finds) continue;
    const bool freed = now == LaunchFinds::FreedMemory || launch.finds == LaunchFinds::FreedMemory;
    const auto kind = static_cast<size_t>(freed ? LaunchFinds::FreedMemory : LaunchFinds::IdleStream);
    if (longer_[kind]) continue;
    all.ns += spread_[kind], ++all.launches;
  }
  return all;
}

}  // namespace ws::prof
