// Replays a graph of causes: when each event happens if work takes other times and causes hold later or not at all.
#pragma once
#include <cstdint>
#include <vector>

#include "profiling/causes/cause_graph.h"

namespace ws::prof {

// What an edit of the graph changes: the work of each node and the delay of each edge.
struct Timing {
  std::vector<int64_t> work_ns;  // by node
  std::vector<int64_t> lag;      // by edge; kNoLag: the edge does not hold. Unused for edges of work
};
Timing measured_timing(const CauseGraph& graph);

// The time of each event. An event without a cause keeps its measured time.
void replay(const CauseGraph& graph, const Timing& timing, std::vector<TimeNs>& times);
std::vector<TimeNs> replay(const CauseGraph& graph, const Timing& timing);

// How fast a replay is. The window is cut between steps; times are those at which all work of the GPU that had ended by a
// cut has ended, or all work of the host where there is no GPU.
class ReplayRate {
 public:
  // `cuts`: begins of steps. With fewer than three, the window is cut into pieces of equal time.
  ReplayRate(const CauseGraph& graph, std::vector<TimeNs> cuts);
  // The median piece of the replay by the measured one, in the second half: until then a host that runs ahead does so by as much
  // as it can.
  double ratio(const std::vector<TimeNs>& times) const;
  std::vector<double> ratios(const std::vector<TimeNs>& times) const;  // the same of each piece
  int64_t measured_ns() const { return measured_.empty() ? 0 : measured_.back() - measured_[first_]; }
  int64_t replayed_ns(const std::vector<TimeNs>& times) const;

 private:
  static constexpr size_t kPieces = 400;  // most of them single steps, so that a few slow steps do not count for all
  double middle_piece(const std::vector<TimeNs>& at) const;
  std::vector<TimeNs> ends(const std::vector<TimeNs>& times) const;

  size_t first_ = 0;  // cut from which the time counts
  std::vector<uint32_t> by_end_;       // nodes in order of their measured end
  std::vector<size_t> until_;          // nodes that ended by each cut
  std::vector<TimeNs> measured_;       // greatest measured end by each cut
};

}  // namespace ws::prof
