#include "profiling/cupti/cupti_parse.h"

#include <cstdlib>

#include "profiling/collectors/nccl_calls.h"
#include "profiling/collectors/ring_board.h"
#include "profiling/cupti/late_calls.h"
#include "profiling/cupti/ring_copier.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr int kRounds = 64;                 // attempts to join a kernel before it counts as unjoined
constexpr uint32_t kNoStream = 0xffffffff;  // a wait that concerns no particular stream
constexpr size_t kMostWaiting = 200'000;

const char* copy_side(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return "pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return "pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
      return "device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return "array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      return "managed";
    default:
      return "memory";
  }
}

const char* overhead_name(CUpti_ActivityOverheadKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "driver compiles";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "profiler flushes";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "profiler instruments";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "profiler allocates";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return "module loads";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return "function loads";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return "launch queue full";
    default:
      return "profiler";
  }
}

}  // namespace

RecordParser::RecordParser(TraceContext& context) : context_(context) {}

void RecordParser::parse(uint8_t* buffer, size_t valid_bytes, NextRecord next) {
  CUpti_Activity* record = nullptr;
  for (;;) {
    const CUptiResult result = next(buffer, valid_bytes, &record);
    if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) return;
    if (result != CUPTI_SUCCESS || !record) {  // a damaged record: the start of the next one is not known
      ++context_.batch.losses().invalid_records;
      return;
    }
    ++records_;
    if (context_.full) {
      ++context_.batch.losses().dropped_records;
      if (record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
        std::free(reinterpret_cast<CUpti_ActivityOverhead3*>(record)->overheadData);
      }
      continue;
    }
    dispatch(*record);
  }
}

void RecordParser::dispatch(const CUpti_Activity& r) {
  switch (r.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      kernel(reinterpret_cast<const CUpti_ActivityKernel10&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      graph_run(reinterpret_cast<const CUpti_ActivityGraphTrace2&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      copy(reinterpret_cast<const CUpti_ActivityMemcpy6&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      peer_copy(reinterpret_cast<const CUpti_ActivityMemcpyPtoP4&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      memset(reinterpret_cast<const CUpti_ActivityMemset4&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      overhead(reinterpret_cast<const CUpti_ActivityOverhead3&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      wait(reinterpret_cast<const CUpti_ActivitySynchronization2&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      memory(reinterpret_cast<const CUpti_ActivityMemory4&>(r));
      break;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      pool(reinterpret_cast<const CUpti_ActivityMemoryPool3&>(r));
      break;
    default:
      break;  // a kind that this version does not draw
  }
}

void RecordParser::cut(const GraphCut& at) {
  constexpr size_t kMost = 8;
  cuts_.push_back(at);
  if (cuts_.size() > kMost) cuts_.pop_front();
}

// Launch numbers have 32 bits and wrap around, so they are compared modulo 2^32. Records that begin a minute later are
// not affected by the cut.
template <class Record>
bool RecordParser::cut_off(const Record& r) {
  constexpr uint64_t kReach = 60'000'000'000;
  if (r.graphNodeId == 0) return false;
  for (const GraphCut& cut : cuts_) {
    if (r.end <= cut.time || r.start > cut.time + kReach) continue;
    if (r.start >= cut.time && static_cast<int32_t>(r.correlationId - cut.launch) > 0) continue;
    context_.batch.losses().dropped_records += cut.counts;
    return true;
  }
  return false;
}

// A record with impossible times is counted but not drawn.
bool RecordParser::begin_span(Span& span, uint64_t start, uint64_t end, SpanKind kind, Meaning meaning) {
  if (start == 0 || end < start) {
    ++context_.batch.losses().invalid_records;
    return false;
  }
  span.start = context_.from_gpu(start);
  span.duration = end - start;
  span.kind = static_cast<uint64_t>(kind);
  span.meaning = static_cast<uint64_t>(meaning);
  return true;
}

// Also rejects work between two clock windows, which nobody asked for.
bool RecordParser::begin_work(Span& span, uint64_t start, uint64_t end, SpanKind kind, Meaning meaning) {
  return begin_span(span, start, end, kind, meaning) && !context_.gaps.clock.at(span.start + context_.origin);
}

void RecordParser::put(const Span& span, BatchBuilder::Row& row) { row.spans.push_back(span); }

void RecordParser::join(Span& span, uint64_t node) {
  const OpAt at = context_.join.find(span.correlation, node);
  span.op = at.op;
  span.step = at.step;
  if (at.op == kNoOp || span.span_kind() != SpanKind::Kernel || context_.program_ranges) return;
  // An op without a meaning, as the trial of several algorithms, leaves the meaning of the kernel's name.
  if (const Meaning meaning = context_.meaning_of(at.op); meaning != Meaning::Other) span.meaning = static_cast<uint64_t>(meaning);
}

RecordParser::KernelName& RecordParser::kernel_name(const char* pointer) {
  const auto hash = reinterpret_cast<uintptr_t>(pointer) * 0x9e3779b97f4a7c15u;
  KernelName& known = kernel_names_[hash >> 54];
  const char* text = pointer ? pointer : "";
  if (known.name && known.pointer == pointer && known.mangled == text) return known;
  const std::string readable = readable_kernel_name(pointer);
  known = {pointer, text, &context_.batch.name(readable), nullptr, meaning_of_kernel(readable)};
  return known;
}

BatchBuilder::Shape& RecordParser::kernel_shape(KernelName& known, const CUpti_ActivityKernel10& k) {
  if (known.meaning == Meaning::Communication)
    return new_shape(k, context_.join.work(k.correlationId, k.graphNodeId));
  if (known.shape) {
    const Detail& d = *known.shape->detail;
    if (d.grid[0] == k.gridX && d.grid[1] == k.gridY && d.grid[2] == k.gridZ && d.block[0] == k.blockX &&
        d.block[1] == k.blockY && d.block[2] == k.blockZ && d.dynamic_shared == k.dynamicSharedMemory &&
        d.registers == k.registersPerThread && d.static_shared == k.staticSharedMemory) {
      return *known.shape;
    }
  }
  known.shape = &new_shape(k, {});
  return *known.shape;
}

BatchBuilder::Shape& RecordParser::new_shape(const CUpti_ActivityKernel10& k, const NcclWork& work) {
  Detail detail;
  detail.grid[0] = k.gridX, detail.grid[1] = k.gridY, detail.grid[2] = k.gridZ;
  detail.block[0] = k.blockX, detail.block[1] = k.blockY, detail.block[2] = k.blockZ;
  detail.registers = k.registersPerThread;
  detail.static_shared = k.staticSharedMemory;
  detail.dynamic_shared = k.dynamicSharedMemory;
  detail.bytes = work.bytes;
  if (work.text > 0) detail.copy_kind = NcclCalls::instance().text(work);
  return context_.batch.shape(detail);
}

// The driver runs each branch of a graph on a stream of its own that no program knows. All work of one launch is drawn
// where its first record is; branches that run at the same time get rows below each other.
uint32_t RecordParser::stream_of(uint32_t stream, uint32_t correlation, uint64_t node) {
  if (node == 0) return stream;
  if (const uint32_t* first = graph_streams_.find(correlation)) return *first;
  graph_streams_.put(correlation, stream);
  return stream;
}

BatchBuilder::Row& RecordParser::stream_row(TrackKind kind, uint32_t device, uint32_t stream) {
  const uint64_t key = (uint64_t{static_cast<uint8_t>(kind)} << 56) | (uint64_t{device} << 32) | stream;
  const int rank = context_.rank_of_gpu(device);
  if (last_row_ && key == last_row_key_ && last_row_->rank == rank) return *last_row_;
  BatchBuilder::Row*& row = rows_[key];
  if (!row || row->rank != rank) {
    std::string name = "stream " + std::to_string(stream);
    if (kind == TrackKind::Copies) name += " copies";
    if (kind == TrackKind::GraphLaunches) name += " graphs";
    if (kind == TrackKind::StreamWaits) name = waits_name(stream == kNoStream ? -1 : int64_t{stream});
    row = &context_.batch.row(kind, name, "GPU " + std::to_string(device), 0, rank);
  }
  last_row_key_ = key;
  last_row_ = row;
  return *row;
}

void RecordParser::kernel(const CUpti_ActivityKernel10& k) {
  if (cut_off(k) || OwnStreams::contain(k.contextId, k.streamId)) return;
  graph_kernels_ += k.graphNodeId != 0;
  Span span;
  KernelName& known = kernel_name(k.name);
  if (!begin_work(span, k.start, k.end, SpanKind::Kernel, known.meaning)) return;
  span.correlation = k.correlationId;
  span.flags = k.graphNodeId != 0 ? kInGraph : 0;
  join(span, k.graphNodeId);
  BatchBuilder::Row& row = stream_row(TrackKind::Stream, k.deviceId, stream_of(k.streamId, k.correlationId, k.graphNodeId));
  learn_device(k.contextId, k.deviceId);
  keep_for_stamps(span, k.deviceId);
  if (span.op == kNoOp && context_.expects_ops && waiting_.size() < kMostWaiting) {
    // Ids of a batch are not valid after it. So a waiting span has no ids until it is put into a batch.
    waiting_.push_back({span, &row, k.graphNodeId, 0, known.name, &kernel_shape(known, k), k.deviceId});
    return;
  }
  if (span.op == kNoOp && context_.expects_ops) {
    span.flags = span.flags | kUnjoined;
    ++context_.batch.losses().unjoined_kernels;
  }
  span.name = context_.batch.id(*known.name);
  span.detail = context_.batch.id(kernel_shape(known, k));
  put(span, row);
}

void RecordParser::learn_device(uint32_t context, uint32_t device) {
  if (context != last_context_) device_of_[last_context_ = context] = device;
}

void RecordParser::keep_for_stamps(const Span& kernel, uint32_t device) {
  const bool rings = RingBoard::instance().announced();
  const size_t kMost = rings ? 16'384 : 1024;
  if (!rings && (kernel.op == kNoOp || !StampBoard::instance().announced())) return;
  context_.resident_kernels.push_back({kernel.op, kernel.step, kernel.start, kernel.end(), device});
  if (context_.resident_kernels.size() > kMost) context_.resident_kernels.pop_front();
}

void RecordParser::retry_waiting(bool last) {
  size_t kept = 0;
  for (Waiting& waiting : waiting_) {
    join(waiting.span, waiting.node);
    const bool timed_out = last || ++waiting.rounds >= kRounds;
    if (waiting.span.op == kNoOp && !timed_out) {
      waiting_[kept++] = waiting;
      continue;
    }
    if (waiting.span.op == kNoOp) {
      waiting.span.flags = waiting.span.flags | kUnjoined;
      ++context_.batch.losses().unjoined_kernels;
    }
    keep_for_stamps(waiting.span, waiting.device);
    waiting.span.name = context_.batch.id(*waiting.name);
    waiting.span.detail = context_.batch.id(*waiting.shape);
    put(waiting.span, *waiting.row);
  }
  waiting_.resize(kept);
}

void RecordParser::graph_run(const CUpti_ActivityGraphTrace2& g) {
  Span span;
  if (!begin_work(span, g.start, g.end, SpanKind::GraphRun, Meaning::Launch)) return;
  span.correlation = g.correlationId;
  join(span, 0);
  span.name = context_.batch.id(context_.batch.name("graph " + std::to_string(g.graphId)));
  put(span, stream_row(TrackKind::GraphLaunches, g.deviceId, g.streamId));
}

void RecordParser::put_transfer(Span& span, TrackKind kind, uint32_t device, uint32_t stream, const Detail& detail,
                                uint64_t node) {
  span.flags = node != 0 ? kInGraph : 0;
  join(span, node);
  span.detail = context_.batch.id(context_.batch.shape(detail));
  put(span, stream_row(kind, device, stream_of(stream, static_cast<uint32_t>(span.correlation), node)));
}

void RecordParser::copy(const CUpti_ActivityMemcpy6& m) {
  if (cut_off(m) || OwnStreams::contain(m.contextId, m.streamId)) return;
  learn_device(m.contextId, m.deviceId);
  Span span;
  if (!begin_work(span, m.start, m.end, SpanKind::Copy, Meaning::Copy)) return;
  Detail detail;
  detail.bytes = m.bytes;
  detail.copy_kind = std::string(copy_side(m.srcKind)) + " → " + copy_side(m.dstKind);
  span.correlation = m.correlationId;
  span.name = context_.batch.id(context_.batch.name("copy " + detail.copy_kind));
  put_transfer(span, TrackKind::Copies, m.deviceId, m.streamId, detail, m.graphNodeId);
}

void RecordParser::peer_copy(const CUpti_ActivityMemcpyPtoP4& m) {
  if (cut_off(m)) return;
  Span span;
  if (!begin_work(span, m.start, m.end, SpanKind::Copy, Meaning::Copy)) return;
  Detail detail;
  detail.bytes = m.bytes;
  detail.copy_kind = "GPU " + std::to_string(m.srcDeviceId) + " → GPU " + std::to_string(m.dstDeviceId);
  span.correlation = m.correlationId;
  span.name = context_.batch.id(context_.batch.name("copy " + detail.copy_kind));
  put_transfer(span, TrackKind::Copies, m.deviceId, m.streamId, detail, m.graphNodeId);
}

void RecordParser::memset(const CUpti_ActivityMemset4& m) {
  if (cut_off(m)) return;
  learn_device(m.contextId, m.deviceId);
  Span span;
  if (!begin_work(span, m.start, m.end, SpanKind::Memset, Meaning::Copy)) return;
  Detail detail;
  detail.bytes = m.bytes;
  detail.copy_kind = copy_side(m.memoryKind);
  span.correlation = m.correlationId;
  span.name = context_.batch.id(context_.batch.name("memset"));
  put_transfer(span, TrackKind::Copies, m.deviceId, m.streamId, detail, m.graphNodeId);
}

void RecordParser::overhead(const CUpti_ActivityOverhead3& o) {
  std::free(o.overheadData);
  Span span;
  if (!begin_span(span, o.start, o.end, SpanKind::Overhead, Meaning::Other)) return;
  span.correlation = o.correlationId;
  span.name = context_.batch.id(context_.batch.name(overhead_name(o.overheadKind)));
  put(span, context_.batch.row(TrackKind::Overhead, "profiler", "CPU"));
}

// Adds which stream was waited for, which the call does not tell. A wait for an event has no particular stream.
void RecordParser::wait(const CUpti_ActivitySynchronization2& w) {
  if (OwnStreams::contain(w.contextId, w.streamId)) return;
  Span span;
  if (!begin_work(span, w.start, w.end, SpanKind::Sync, Meaning::Sync)) return;
  span.correlation = w.correlationId;
  join(span, 0);
  span.name = context_.batch.id(context_.batch.name(wait_name(w.type)));
  const auto device = device_of_.find(w.contextId);
  put(span, stream_row(TrackKind::StreamWaits, device == device_of_.end() ? 0 : device->second, w.streamId));
}

// Allocator calls are counted in callbacks. These records add the pool size, which only the driver knows.
void RecordParser::memory(const CUpti_ActivityMemory4& m) {
  if (!m.isAsync || m.timestamp == 0) return;
  const TimeNs time = context_.from_gpu(m.timestamp);
  if (m.memoryPoolConfig.memoryPoolType == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) {
    const PoolSize size{m.memoryPoolConfig.pool.size, m.memoryPoolConfig.utilizedSize};
    context_.draw_pools(time, context_.pools.recorded(m.memoryPoolConfig.address, size));
  }
}

void RecordParser::pool(const CUpti_ActivityMemoryPool3& p) {
  if (p.timestamp == 0 || p.memoryPoolType != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL) return;
  const bool gone = p.memoryPoolOperationType == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
  const PoolSize all =
      gone ? context_.pools.destroyed(p.address) : context_.pools.recorded(p.address, {p.size, p.utilizedSize});
  context_.draw_pools(context_.from_gpu(p.timestamp), all);
}

}  // namespace ws::prof
