// Converts queued marks and allocator calls into spans, memory events and counts.
#pragma once
#include <unordered_map>
#include <vector>

#include "profiling/collectors/marks.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

class HostSpans {
 public:
  explicit HostSpans(TraceContext& context) : context_(context) {}
  void take(const MarkedThread& thread, const HostEvent& event);
  // Passes on the memory events until this time (steady clock), in their order. Threads are drained one after another,
  // and a block that one thread took may be given back by another.
  void pass_memory(int64_t until);

 private:
  struct Rows {
    BatchBuilder::Row* ops[MarkedThread::kDepth] = {};
    BatchBuilder::Row* ranges[MarkedThread::kDepth] = {};
    BatchBuilder::Row* calls = nullptr;
  };

  void step(const HostEvent& event);
  void phase(const HostEvent& event);
  void op(const MarkedThread& thread, const HostEvent& event);
  void range(const MarkedThread& thread, const HostEvent& event);
  void program_step(const HostEvent& event);
  void allocation(const MarkedThread& thread, const HostEvent& event);
  void memory(const HostEvent& event);
  struct TimedMemory {
    int64_t time;  // steady clock
    MemoryEvent event;
    const char* owner;
  };
  void call(const MarkedThread& thread, const HostEvent& event);
  struct Call {
    BatchBuilder::Name* name = nullptr;
    SpanKind kind = SpanKind::Api;
    Meaning meaning = Meaning::Other;
  };
  const Call& call_of(uint32_t id, bool driver);
  BatchBuilder::Row& call_row(const MarkedThread& thread);
  Span span_of(const HostEvent& event, SpanKind kind, Meaning meaning) const;

  TraceContext& context_;
  std::unordered_map<long, Rows> rows_;
  std::unordered_map<uint32_t, Call> calls_[2];      // [0] runtime calls, [1] driver calls
  std::vector<TimedMemory> memory_;                  // not passed on yet
  std::unordered_map<uint64_t, uint64_t> bytes_at_;  // bytes of live driver allocations by address
};

}  // namespace ws::prof
