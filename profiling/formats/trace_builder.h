// Builds a trace from imported spans in any order: it makes rows without overlaps, finds steps and checks numbers.
#pragma once
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profiling/base/budget.h"
#include "profiling/trace/run_data.h"

namespace ws::prof {

// Converts a number from a file to the int of a span's details, clamped.
inline int as_int(int64_t value) {
  return static_cast<int>(std::clamp<int64_t>(value, 0, std::numeric_limits<int>::max()));
}

class TraceBuilder {
 public:
  struct Row {
    TrackKind kind;
    std::string name, group;
    int rank = -1;
    bool operator<(const Row& other) const {
      const TrackKind own = broad_kind(kind), others = broad_kind(other.kind);
      return std::tie(group, own, name, rank) < std::tie(other.group, others, other.name, other.rank);
    }
  };
  Trace& trace() { return trace_; }
  const std::map<Row, std::vector<Span>>& rows() const { return rows_; }
  OpTag op(const OpInfo& info);
  NameId name(std::string_view text);  // takes the memory of a new name from the budget first
  NameId name(const std::shared_ptr<const CodeStack>& stack);
  // Returns false if the times are impossible; such spans are counted and left out. `external`: number of the op that
  // launched the span, 0: unknown. It determines the op of a span without one.
  bool add(const Row& row, Span span, int64_t start, int64_t duration, int64_t external = 0);
  void add_external(int64_t number, NameId op, int64_t start, int64_t duration);
  void add_memory(MemoryEvent event, const std::string& source);
  void add_point(std::string_view counter, std::string_view unit, CounterPoint point);
  void take_memory(uint64_t bytes) { budget_.take(bytes); }  // for memory that the importer itself keeps
  void leave_out(const std::string& what) { ++left_out_[what]; }

  void keep_steps() { find_steps_ = false; }       // spans without a step belong to no step
  void set_other_clock() { other_clock_ = true; }  // times do not count from the begin of the run
  TimeNs began() const { return began_; }          // the original time of trace time 0, once finished

  Trace finish(std::vector<std::string>& problems);

 private:
  struct ExternalOp {
    NameId name;
    int64_t start, end;  // end before start: several ops have this number
  };
  struct Launched {
    std::vector<Span>* row;
    size_t index;
    int64_t external;
  };

  void join_ops();
  const ExternalOp* launcher_of(const Launched& launched);
  void find_steps();
  void lay_out(const Row& row, std::vector<Span>& spans);
  TimeNs first_time() const;
  template <class Items, class Item>
  void begin_at(TimeNs begin, Items& items, TimeNs Item::*time);

  Budget budget_;
  Trace trace_;
  std::vector<std::vector<CounterPoint>> points_;  // by counter index in the trace
  std::deque<MemoryEvent> memory_;
  std::map<Row, std::vector<Span>> rows_;
  std::map<std::string, OpTag> ops_;
  std::unordered_map<int64_t, ExternalOp> external_;
  std::vector<Launched> launched_;
  std::unordered_map<uint32_t, TimeNs> calls_;  // start of the call by correlation
  std::map<std::string, int64_t> left_out_;
  bool other_clock_ = false, find_steps_ = true;
  TimeNs began_ = 0;
};

}  // namespace ws::prof
