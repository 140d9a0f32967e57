// What waits for what in a trace: each call, kernel and copy with the events that must come before it. A replay of this
// graph shows what a change of one part does to the whole.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "profiling/trace/trace.h"

namespace ws::prof {

enum class NodeKind : uint8_t {
  Kernel,     // also a graph that was recorded as a whole
  Copy,       // also a memset
  Launch,     // a call that launches kernels or a graph
  CopyCall,   // a call that begins a copy or a memset
  Wait,       // a call that waits for the GPU
  Allocation, // a call of the driver's allocator
  Free,
  OtherCall,
  CpuOp,      // work on the CPU of a run without a GPU
  DataWait,   // the program waits for its data loader
  Meeting,    // the last rank arrives at a collective
};
inline bool allocates(NodeKind kind) { return kind == NodeKind::Allocation || kind == NodeKind::Free; }
inline bool runs_on_host(NodeKind kind) { return kind >= NodeKind::Launch && kind != NodeKind::Meeting; }

struct CauseNode {
  TimeNs start = 0;
  int64_t measured_ns = 0;  // as recorded, with waits
  int64_t work_ns = 0;      // without what it waits for
  uint32_t track = 0;       // index into Trace::tracks()
  uint32_t row = 0;         // nodes of one stream or of one chain of host calls have the same number
  uint32_t correlation = 0;
  NameId name{};
  OpTag op = kNoOp;
  DetailId detail{};
  NodeKind kind = NodeKind::OtherCall;
  Meaning meaning = Meaning::Other;
  int16_t rank = -1;
  bool in_graph = false;
  TimeNs end() const { return start + measured_ns; }
};

// Work: from the start of a node to its end. HostOrder: calls of a thread follow each other; the program's own work lies
// between them. OtherStream: not recorded, seen from the times: a kernel begins when one of another stream ends.
// QueueFull: a launch waits until the GPU has taken earlier work.
enum class EdgeKind : uint8_t { Work, HostOrder, StreamOrder, Launch, WakeUp, OtherStream, QueueFull, Arrival, Transfer };
inline bool is_wait(EdgeKind kind) { return kind == EdgeKind::WakeUp || kind == EdgeKind::QueueFull; }

// An event is the start of a node (2 × its index) or its end (2 × its index + 1).
using EventId = uint32_t;
inline EventId start_of(size_t node) { return static_cast<EventId>(2 * node); }
inline EventId end_of(size_t node) { return static_cast<EventId>(2 * node + 1); }

inline constexpr int64_t kNoLag = std::numeric_limits<int64_t>::min();  // the edge does not hold

struct CauseEdge {
  EventId from = 0;
  EdgeKind kind = EdgeKind::Work;
  int64_t lag = 0;  // ns from the event `from`, at least
};

struct CauseGraph {
  TimeRange window;                  // nodes begin in it
  std::vector<CauseNode> nodes;      // in order of their start
  std::vector<uint32_t> first_edge;  // edges into event e: edges[first_edge[e]] to edges[first_edge[e + 1]]
  std::vector<CauseEdge> edges;
  std::vector<EventId> order;        // causes before effects
  // Time in which the GPU idled although nothing that was recorded held it up, and the node after the longest such gap.
  int64_t around_call_ns = 1000;  // what a program needs at least between two calls; it goes with a call that is not made
  int64_t unexplained_ns = 0, longest_unexplained_ns = 0;
  uint32_t least_explained = std::numeric_limits<uint32_t>::max();
  std::vector<std::string> warnings;

  TimeNs measured(EventId event) const {
    const CauseNode& node = nodes[event / 2];
    return event % 2 ? node.end() : node.start;
  }
};

// Takes the spans in memory that begin in the window, of all ranks. Its time and memory grow with their number.
// usual_gap_ns: between two kernels of a stream, where the trace has none that was queued.
constexpr int64_t kUsualGap = 1000;
uint64_t lost_count(const Trace& trace);  // records that were lost while recording, or damaged
double lost_share(const Trace& trace);   // of all records
CauseGraph cause_graph(const Trace& trace, TimeRange window, int64_t usual_gap_ns = kUsualGap);

}  // namespace ws::prof
