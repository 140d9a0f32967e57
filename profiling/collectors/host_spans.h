// Converts queued marks and allocator calls into spans, memory events and counts.
#pragma once
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiling/collectors/marks.h"
#include "profiling/collectors/trace_context.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

class HostSpans {
 public:
  explicit HostSpans(TraceContext& context) : context_(context) {}
  void take(const HostEvent& event);
  // Passes on the memory events until this time (steady clock), in their order. Threads are drained one after another,
  // and a block that one thread took may be given back by another.
  void pass_memory(int64_t until);
  // A capture range ended at this time (steady clock): what becomes of its blocks later is not recorded, so they end with it.
  // Events of that time may still follow until end_blocks().
  void range_ended(int64_t time) { ended_.push_back(context_.from_steady(time)); }
  void end_blocks();

 private:
  struct Rows {
    BatchBuilder::Row* ops[MarkedThread::kDepth] = {};
    BatchBuilder::Row* ranges[MarkedThread::kDepth] = {};
    BatchBuilder::Row* calls = nullptr;
  };

  void step(const HostEvent& event);
  void phase(const HostEvent& event);
  void op(const HostEvent& event);
  void range(const HostEvent& event);
  void program_step(const HostEvent& event);
  void allocation(const HostEvent& event);
  void memory(const HostEvent& event);
  struct TimedMemory {
    int64_t time;  // steady clock
    MemoryEvent event;
    const char* owner;
  };
  void keep(TimedMemory&& event, const char* freed_by);
  struct Block;
  bool end_block(const Block& block, TimeNs until);
  void call(const HostEvent& event);
  struct Call {
    BatchBuilder::Name* name = nullptr;
    CallClass call{};
  };
  const Call& call_of(uint32_t id, bool driver);
  BatchBuilder::Row& call_row(int32_t thread);
  Span span_of(const HostEvent& event, SpanKind kind, Meaning meaning) const;

  TraceContext& context_;
  std::unordered_map<int32_t, Rows> rows_;
  std::unordered_map<uint32_t, Call> calls_[2];      // [0] runtime calls, [1] driver calls
  std::vector<TimedMemory> memory_;                  // not passed on yet
  std::unordered_map<uint64_t, uint64_t> bytes_at_;  // bytes of live driver allocations by address
  struct Block {
    MemoryEvent event;
    const char* freed_by;
  };
  // Only with capture ranges, by address and by who reports it: an allocator's first block has the address of its segment.
  std::map<std::pair<uint64_t, std::string_view>, Block> blocks_;
  std::vector<TimeNs> ended_;
};

}  // namespace ws::prof
