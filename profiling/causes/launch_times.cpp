#include "profiling/causes/launch_times.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "profiling/base/statistics.h"

namespace ws::prof {
namespace {

constexpr size_t kFewestLaunches = 8;     // launches of a place
constexpr double kMostOf = 0.75;  // of them find the same
constexpr size_t kFewestKernels = 3;  // that were launched both ways
constexpr int kMostPasses = 3;
// The share that a launch after another call saves when it follows a launch instead, in recordings on an H200. After a wait it is 0 to
// 0.1, after a call of the allocator 0.2 for the call itself and a little less for whole steps.
constexpr double saved_in_a_row(LaunchFinds finds) { return finds == LaunchFinds::Wait ? 0.05 : 0.13; }

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
  if (before != launch.call) {
    const NodeKind kind = graph_.nodes[before].kind;
    if (kind == NodeKind::Free) return LaunchFinds::FreedMemory;
    if (kind == NodeKind::Allocation) return LaunchFinds::Allocation;
    if (kind == NodeKind::Wait) return LaunchFinds::Wait;
  }
  const bool idle = launch.before == launch.kernel || times[end_of(launch.before)] <= times[start_of(launch.call)];
  return idle ? LaunchFinds::IdleStream : LaunchFinds::BusyStream;
}

// A slow launch makes the next one find an idle stream. So places of the step are compared, not single launches: a place counts
// where nearly all of its launches find the same.
void LaunchTimes::learn() {
  using ByFinds = std::array<std::vector<double>, kLaunchFinds>;
  std::map<NameId, std::map<OpTag, ByFinds>> kernels;
  std::vector<double> in_a_row;
  for (const Launch& launch : launches_) {
    const auto ns = static_cast<double>(graph_.nodes[launch.call].work_ns);
    kernels[graph_.nodes[launch.kernel].name][graph_.nodes[launch.kernel].op][static_cast<size_t>(launch.finds)].push_back(ns);
    if (!follows_other_call(launch.finds)) in_a_row.push_back(ns);
  }
  ByFinds longer;
  for (const auto& [name, places] : kernels) {
    ByFinds medians;
    for (const auto& [op, place] : places) {
      const size_t launches = std::accumulate(place.begin(), place.end(), size_t{0}, [](size_t sum, const auto& ns) { return sum + ns.size(); });
      for (size_t kind = 0; kind < kLaunchFinds; ++kind)
        if (place[kind].size() >= kFewestLaunches && static_cast<double>(place[kind].size()) >= kMostOf * static_cast<double>(launches)) medians[kind].push_back(median(place[kind]));
    }
    const std::vector<double>&busy = medians[0], &idle = medians[1];
    std::vector<double> row = busy;
    row.insert(row.end(), idle.begin(), idle.end());
    if (!busy.empty() && !idle.empty()) longer[1].push_back(median(idle) - median(busy));
    for (size_t kind = static_cast<size_t>(LaunchFinds::FreedMemory); kind < kLaunchFinds; ++kind)
      if (!medians[kind].empty() && !row.empty()) longer[kind].push_back(median(medians[kind]) - median(row));
  }
  for (size_t kind = 1; kind < kLaunchFinds; ++kind)
    if (longer[kind].size() >= kFewestKernels) longer_[kind] = std::llround(std::max(0.0, median(longer[kind])));
  none_differ_ = in_a_row.size() == launches_.size() && longer_[static_cast<size_t>(LaunchFinds::IdleStream)].value_or(0) == 0;
  idle_spread_ = in_a_row.empty() ? 0 : std::llround(spread_around_median(in_a_row));
}

// How much longer a launch is that follows such a call, as far as other recordings say.
int64_t LaunchTimes::usual_ns(const Launch& launch, LaunchFinds finds) const {
  const auto ns = static_cast<double>(graph_.nodes[launch.call].work_ns);
  const double in_a_row = ns * (follows_other_call(launch.finds) ? 1 - saved_in_a_row(launch.finds) : 1);
  return std::llround(in_a_row * (1 / (1 - saved_in_a_row(finds)) - 1));
}

int64_t LaunchTimes::longer_ns(const Launch& launch, LaunchFinds finds) const {
  if (const auto known = longer_[static_cast<size_t>(finds)]) return *known;
  return follows_other_call(finds) ? usual_ns(launch, finds) : 0;
}

void LaunchTimes::settle(Timing& timing, std::vector<TimeNs>& times) const {
  replay(graph_, timing, times);
  if (none_differ_) return;
  std::vector<int64_t> edited;
  for (const Launch& launch : launches_) edited.push_back(timing.work_ns[launch.call]);
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool moved = false;
    for (size_t i = 0; i < launches_.size(); ++i) {
      if (edited[i] == 0) continue;
      const int64_t longer = longer_ns(launches_[i], finds(launches_[i], timing, times)) - longer_ns(launches_[i], launches_[i].finds);
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
    const LaunchFinds other = follows_other_call(now) ? now : follows_other_call(launch.finds) ? launch.finds : LaunchFinds::IdleStream;
    if (longer_[static_cast<size_t>(other)]) continue;
    all.ns += other == LaunchFinds::IdleStream ? idle_spread_ : usual_ns(launch, other), ++all.launches;
  }
  return all;
}

}  // namespace ws::prof
