// Finds the op and step of a GPU record, by the call that launched it, by graph node, or by stamps written on the
// device.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profiling/annotate/stamps.h"
#include "profiling/trace/trace.h"

namespace ws::prof {

struct OpAt {
  OpTag op = kNoOp;
  uint32_t step = 0;  // step + 1; 0: unknown
  bool operator==(const OpAt&) const = default;
};

// What NCCL said of the calls that a kernel executes; see NcclCalls.
struct NcclWork {
  uint64_t bytes = 0;  // 0: not known
  uint32_t text = 0;
  bool any() const { return bytes > 0 || text > 0; }
};

// Remembers the newest value of each key in bounded memory. Keys are numbers in rising order, so a new key replaces an
// old one that shares its slot.
template <class Value>
class RecentTable {
 public:
  explicit RecentTable(int bits) : slots_(size_t{1} << bits), mask_((uint32_t{1} << bits) - 1) {}
  void put(uint32_t key, const Value& value) { slots_[key & mask_] = {key, value}; }
  const Value* find(uint32_t key) const {
    const Slot& slot = slots_[key & mask_];
    return slot.key == key && key != 0 ? &slot.value : nullptr;
  }

 private:
  struct Slot {
    uint32_t key = 0;
    Value value{};
  };
  std::vector<Slot> slots_;
  uint32_t mask_;
};

// Finds which step of a graph a node belongs to: the n-th time that an op is marked during one capture belongs to the
// n-th step. One object per capturing thread.
class CapturedSteps {
 public:
  // `session`: graph numbers begin again in each session. `scope`: distinguishes two executions of an op.
  uint32_t step_of(uint64_t session, uint32_t graph, OpTag op, uint64_t scope) {
    if (session != session_ || graph != graph_) seen_.clear();
    session_ = session, graph_ = graph;
    Seen& seen = seen_[op];
    if (seen.times == 0 || seen.scope != scope) seen = {scope, seen.times + 1};
    return seen.times - 1;
  }

 private:
  struct Seen {
    uint64_t scope = 0;
    uint32_t times = 0;
  };
  uint64_t session_ = 0;
  uint32_t graph_ = 0;
  std::unordered_map<OpTag, Seen> seen_;
};

class OpJoin {
 public:
  // The call `correlation` was made while `at` was marked.
  void launched(uint32_t correlation, OpAt at) { calls_.put(correlation, at); }
  // The graph launch `correlation` runs `count` steps, beginning with `first` (step + 1).
  void graph_launched(uint32_t correlation, uint32_t first, uint32_t count) {
    graphs_.put(correlation, {first, count});
  }
  // A graph node was made for `op`, in step `offset` of the graph.
  void node_created(uint64_t node, OpTag op, uint32_t offset) { nodes_[node] = {op, offset}; }
  void node_cloned(uint64_t original, uint64_t clone);
  void communicates(uint32_t correlation, const NcclWork& work) { works_.put(correlation, work); }
  void node_communicates(uint64_t node, const NcclWork& work) { node_works_[node] = work; }

  // Returns kNoOp if the op is not known yet: records may arrive in any order.
  OpAt find(uint32_t correlation, uint64_t node) const;
  NcclWork work(uint32_t correlation, uint64_t node) const;

 private:
  struct Launch {
    uint32_t first = 0, count = 0;
  };
  struct NodeOp {
    OpTag op = kNoOp;
    uint32_t offset = 0;
  };
  OpAt in_graph(uint32_t correlation, const NodeOp& node) const;

  RecentTable<OpAt> calls_{18};
  RecentTable<Launch> graphs_{16};
  RecentTable<NcclWork> works_{14};
  std::unordered_map<uint64_t, NodeOp> nodes_;
  std::unordered_map<uint64_t, NcclWork> node_works_;
};

// Converts device time to trace time. The device timer counts ns, so the rate is 1. It is smaller if the stamps span
// more time than the kernel's record.
struct StampMap {
  double rate = 1;
  uint64_t device_zero = 0;
  TimeNs trace_zero = 0;
  TimeNs operator()(uint64_t globaltimer) const {
    return trace_zero +
           static_cast<TimeNs>(rate * static_cast<double>(static_cast<int64_t>(globaltimer - device_zero)));
  }
};
StampMap map_stamps(const StampedLaunch& launch, TimeNs kernel_start, TimeNs kernel_end);

// The work of one lane, as spans without names, in order of time.
struct StampedLane {
  uint16_t lane;
  std::vector<Span> spans;
};
std::vector<StampedLane> spans_of_stamps(std::span<const DeviceStamp> stamps, const StampMap& map);

}  // namespace ws::prof
