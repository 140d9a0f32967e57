// Numbers for the graphs of a trace and for their nodes, as the formats of other tools ask for them. A trace keeps of a
// graph launched node by node only that a span ran in one: launches that ran the same nodes count as launches of one
// graph, and a node's number is its place in the launch.
#pragma once
#include <unordered_map>

#include "profiling/trace/trace.h"

namespace ws::prof {

int64_t graph_number(const Trace& trace, const Span& graph_run);  // of a graph recorded as a whole: "graph 5" is 5

class GraphNumbers {
 public:
  explicit GraphNumbers(const Trace& trace);
  struct Node {
    int64_t graph = 0;
    int64_t node = 0;  // unique in the trace: the graph is its upper half
  };
  // Of a span in a graph; ask for each once, track after track.
  Node next(const Span& span);

 private:
  struct Launch {
    uint64_t nodes = 0;  // a hash of which they are, in their order
    int64_t graph = 0;
    int64_t asked = 0;
  };
  std::unordered_map<uint32_t, Launch> launches_;  // by correlation
};

}  // namespace ws::prof
