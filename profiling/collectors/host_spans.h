// Converts queued marks and allocator calls into spans, memory events and counts.
#pragma once
#include <unordered_map>

#include "profiling/collectors/marks.h"
#include "profiling/collectors/trace_context.h"

namespace ws::prof {

class HostSpans {
 public:
  explicit HostSpans(TraceContext& context) : context_(context) {}
  void take(const MarkedThread& thread, const HostEvent& event);

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
  std::unordered_map<uint64_t, uint64_t> bytes_at_;  // bytes of live driver allocations by address
};

}  // namespace ws::prof
