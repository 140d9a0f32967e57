// Numbers for the graphs of a trace and their nodes, as other tools' formats require. For graphs recorded node by node,
// a trace knows only that a span ran in a graph. Launches with the same nodes therefore count as one graph, and the
// number of a node is its position in the launch.
#pragma once
#include <unordered_map>

#include "profiling/trace/trace.h"

namespace ws::prof {

int64_t graph_number(const Trace& trace, const Span& graph_run);  // for a graph recorded as a whole: "graph 5" is 5

class GraphNumbers {
 public:
  explicit GraphNumbers(const Trace& trace);
  struct Node {
    int64_t graph = 0;
    int64_t node = 0;  // unique in the trace: the upper half is the graph
  };
  // Returns the node of a span in a graph. Call it once per span, in the order of the tracks.
  Node next(const Span& span);

 private:
  struct Launch {
    uint64_t nodes = 0;  // hash of the nodes in order
    int64_t graph = 0;
    int64_t asked = 0;
  };
  std::unordered_map<uint32_t, Launch> launches_;  // by correlation
};

}  // namespace ws::prof
