#include "profiling/collectors/host_spans.h"

#include <algorithm>
#include <iterator>

#include "profiling/trace/kernel_names.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

struct CallInfo {
  const char* name;
  MemoryAction kind;
  bool on_device;
  uint32_t StepAllocations::*count;
};

const CallInfo& info_of(const HostEvent& event) {
  static constexpr CallInfo kCalls[] = {  // in the order of AllocatorCall
      {"cudaMalloc", MemoryAction::Allocate, true, &StepAllocations::allocations},
      {"cudaFree", MemoryAction::Free, true, &StepAllocations::frees},
      {"cudaMallocAsync", MemoryAction::Allocate, true, &StepAllocations::async_allocations},
      {"cudaFreeAsync", MemoryAction::Free, true, &StepAllocations::async_frees},
      {"cudaMallocHost", MemoryAction::Allocate, false, &StepAllocations::host_allocations},
      {"cudaFreeHost", MemoryAction::Free, false, &StepAllocations::host_frees}};
  static_assert(std::size(kCalls) == static_cast<size_t>(AllocatorCall::FreeHost) + 1);
  return kCalls[static_cast<size_t>(event.what)];
}

StepAllocations counted(const HostEvent& event) {
  StepAllocations counts{.step = event.step, .op = event.op};
  counts.*info_of(event).count = 1;
  counts.time_ns = event.end - event.start;
  counts.bytes = event.b;
  return counts;
}

}  // namespace

void HostSpans::take(const HostEvent& event) {
  if (event.type == HostEventType::GraphLaunch) {
    context_.join.graph_launched(event.correlation, static_cast<uint32_t>(event.a), static_cast<uint32_t>(event.b));
    return;
  }
  if (event.type == HostEventType::Launch || event.type == HostEventType::Call) {
    context_.join.launched(event.correlation, {event.op, event.step});
    if (event.type == HostEventType::Launch) {
      const NcclWork work{event.a, static_cast<uint32_t>(event.b)};
      if (work.any()) context_.join.communicates(event.correlation, work);
      return;
    }
  }
  if (event.type == HostEventType::Allocation) return allocation(event);
  if (context_.full) {
    ++context_.batch.losses().dropped_records;
    return;
  }
  switch (event.type) {
    case HostEventType::Step:
      return step(event);
    case HostEventType::Phase:
      return phase(event);
    case HostEventType::Op:
      return op(event);
    case HostEventType::Range:
      return range(event);
    case HostEventType::ProgramStep:
      return program_step(event);
    case HostEventType::Call:
      return call(event);
    default:
      return memory(event);
  }
}

Span HostSpans::span_of(const HostEvent& event, SpanKind kind, Meaning meaning) const {
  Span span;
  span.start = context_.from_steady(event.start);
  span.duration = static_cast<uint64_t>(std::max<int64_t>(event.end - event.start, 0));
  span.kind = static_cast<uint64_t>(kind);
  span.meaning = static_cast<uint64_t>(meaning);
  span.op = event.op;
  span.step = event.step;
  span.correlation = event.correlation;
  return span;
}

void HostSpans::step(const HostEvent& event) {
  Span span = span_of(event, SpanKind::Step, Meaning::Other);
  span.name = context_.batch.id(context_.batch.name("step"));
  context_.batch.row(TrackKind::Steps, "steps", "CPU", 0, event.rank).spans.push_back(span);
}

void HostSpans::phase(const HostEvent& event) {
  Span span = span_of(event, SpanKind::Phase, Meaning::Other);
  const auto* name = reinterpret_cast<const char*>(static_cast<uintptr_t>(event.a));
  span.name = context_.batch.id(context_.batch.name(name ? name : "phase"));
  context_.batch.row(TrackKind::Phases, "phases", "CPU", static_cast<int>(event.b)).spans.push_back(span);
}

void HostSpans::op(const HostEvent& event) {
  BatchBuilder::Row*& row = rows_[event.thread].ops[event.b % MarkedThread::kDepth];
  if (!row || row->rank != event.rank) {
    row = &context_.batch.row(TrackKind::CpuThread, "thread " + std::to_string(event.thread), "CPU",
                              static_cast<int>(event.b), event.rank);
  }
  Span span = span_of(event, SpanKind::Op, context_.meaning_of(event.op));
  span.name = context_.batch.id(context_.name_of(event.op));
  row->spans.push_back(span);
}

void HostSpans::range(const HostEvent& event) {
  constexpr uint64_t kDeepest = 15;
  const uint64_t depth = std::min(event.b, kDeepest);
  BatchBuilder::Row*& row = rows_[event.thread].ranges[depth];
  if (!row || row->rank != event.rank) {
    row = &context_.batch.row(TrackKind::Ranges, "thread " + std::to_string(event.thread) + " ranges", "CPU",
                              static_cast<int>(depth), event.rank);
  }
  BatchBuilder::Name& name = context_.name_of(event.op);
  Span span = span_of(event, SpanKind::Phase, meaning_of_range(*name.text));
  span.name = context_.batch.id(name);
  row->spans.push_back(span);
}

// Draws the step as a range, like ranges of NVTX, so that the step finder sees it. It has its own row because it does
// not nest. Only the first steps have their number in the name, so that a long run has few names.
void HostSpans::program_step(const HostEvent& event) {
  constexpr uint64_t kNumberedSteps = 64;
  Span span = span_of(event, SpanKind::Phase, Meaning::Other);
  span.step = static_cast<uint32_t>(event.a + 1);
  const std::string name = event.a < kNumberedSteps ? "step " + std::to_string(event.a) : "step #";
  span.name = context_.batch.id(context_.batch.name(name));
  context_.batch.row(TrackKind::ProgramSteps, kProgramSteps, "CPU").spans.push_back(span);
}

// Counts are exact even if no more spans can be stored.
void HostSpans::allocation(const HostEvent& event) {
  const CallInfo& info = info_of(event);
  const bool frees = info.kind == MemoryAction::Free;
  uint64_t bytes = event.b;
  if (!frees) {
    bytes_at_[event.a] = bytes;
  } else if (const auto at = bytes_at_.find(event.a); at != bytes_at_.end()) {
    bytes = at->second;
    bytes_at_.erase(at);
  }
  context_.batch.allocations(counted(event));
  if (info.on_device) {
    const char* const freed_by = event.what == static_cast<uint8_t>(AllocatorCall::AllocateAsync) ||
                                         event.what == static_cast<uint8_t>(AllocatorCall::FreeAsync)
                                     ? "cudaFreeAsync"
                                     : "cudaFree";
    keep({event.end, {context_.from_steady(event.end), event.a, bytes, event.step, event.op, info.kind, 0}, info.name}, freed_by);
  }
  if (context_.full) return;
  Span span = span_of(event, frees ? SpanKind::Free : SpanKind::Alloc, Meaning::Allocation);
  span.name = context_.batch.id(context_.batch.name(info.name));
  Detail detail;
  detail.bytes = bytes;
  span.detail = context_.batch.id(context_.batch.shape(detail));
  call_row(event.thread).spans.push_back(span);
}

BatchBuilder::Row& HostSpans::call_row(int32_t thread) {
  BatchBuilder::Row*& row = rows_[thread].calls;
  if (!row) row = &context_.batch.row(TrackKind::Api, "thread " + std::to_string(thread) + " calls", "CPU");
  return *row;
}

const HostSpans::Call& HostSpans::call_of(uint32_t id, bool driver) {
  Call& known = calls_[driver][id];
  if (known.name) return known;
  const std::string name = context_.call_name ? context_.call_name(driver, id) : "call " + std::to_string(id);
  return known = {&context_.batch.name(name), class_of_call(name)};
}

void HostSpans::call(const HostEvent& event) {
  const Call& known = call_of(static_cast<uint32_t>(event.b), event.what != 0);
  Span span = span_of(event, known.call.kind, known.call.meaning);
  span.name = context_.batch.id(*known.name);
  call_row(event.thread).spans.push_back(span);
}

void HostSpans::memory(const HostEvent& event) {
  const auto* owner = reinterpret_cast<const char*>(static_cast<uintptr_t>(event.end));
  const auto action = static_cast<MemoryAction>(event.what & 3);
  if (!owner) owner = "program";
  keep({event.start, {context_.from_steady(event.start), event.a, event.b, event.step, event.op, action, 0}, owner}, owner);
}

void HostSpans::keep(TimedMemory&& event, const char* freed_by) {
  if (context_.captures) {
    const std::pair<uint64_t, std::string_view> key{event.event.address, freed_by};
    if (const auto at = blocks_.find(key); at != blocks_.end() && end_block(at->second, event.event.time)) blocks_.erase(at);
    if (event.event.kind == MemoryAction::Allocate) blocks_.insert_or_assign(key, Block{event.event, freed_by});
    if (event.event.kind == MemoryAction::Free) blocks_.erase(key);
  }
  memory_.push_back(std::move(event));
}

// True if a range ended between the begin of the block and `until`.
bool HostSpans::end_block(const Block& block, TimeNs until) {
  for (const TimeNs end : ended_) {
    if (end < block.event.time || end > until) continue;
    MemoryEvent freed = block.event;
    freed.kind = MemoryAction::Free, freed.time = end;
    memory_.push_back({end + context_.origin, freed, block.freed_by});
    return true;
  }
  return false;
}

void HostSpans::end_blocks() {
  if (ended_.empty()) return;
  std::erase_if(blocks_, [this](const auto& entry) { return end_block(entry.second, kAlways); });
  ended_.clear();
}

void HostSpans::pass_memory(int64_t until) {
  const auto later = std::stable_partition(memory_.begin(), memory_.end(),
                                           [until](const TimedMemory& each) { return each.time <= until; });
  std::stable_sort(memory_.begin(), later, [](const TimedMemory& a, const TimedMemory& b) { return a.time < b.time; });
  for (auto at = memory_.begin(); at != later; ++at) {
    at->event.source = context_.batch.memory_source(at->owner);
    context_.batch.memory(at->event);
  }
  memory_.erase(memory_.begin(), later);
}

}  // namespace ws::prof
