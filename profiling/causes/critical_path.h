// The chain of causes that decides how long the steps take, and how much later everything else could end.
#pragma once
#include <string>
#include <vector>

#include "profiling/analysis/time_names.h"
#include "profiling/causes/replay.h"

namespace ws::prof {

PathCauseId cause_of_node(const CauseNode& node);
PathCauseId cause_of_edge(const CauseGraph& graph, EventId to, const CauseEdge& edge);

struct PathPiece {
  EventId to = 0;
  uint32_t edge = 0;
  TimeNs begin = 0, end = 0;
};

struct CriticalPath {
  std::vector<PathPiece> pieces;       // in order of time; without those that take no time
  std::vector<int64_t> node_ns;        // by node: time of its work, or of its transfer, on the path
  std::vector<int64_t> edge_ns;        // by edge: its delay on the path; 0 for edges of work and transfers
  std::vector<int64_t> slack_ns;       // by node: how much later it could end without a longer run
  int64_t total_ns = 0;
};
CriticalPath critical_path(const CauseGraph& graph, const Timing& timing, const std::vector<TimeNs>& times);
// The path with only those times of its nodes and edges in which no GPU works.
CriticalPath while_gpus_wait(const CauseGraph& graph, const std::vector<TimeNs>& times, CriticalPath path);

}  // namespace ws::prof
