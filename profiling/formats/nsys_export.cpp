#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>

#include "profiling/trace/span_walk.h"
#include "profiling/analysis/card.h"
#include "profiling/formats/graph_numbers.h"
#include "profiling/formats/nsys_samples.h"
#include "profiling/formats/nsys_sqlite.h"
#include "profiling/run_file/run_schema.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/trace/batch_codec.h"
#include "profiling/trace/track_names.h"
#include "profiling/base/version.h"

namespace ws::prof {

namespace {

constexpr int64_t kPushPopRange = 59;

constexpr const char* kSchema = R"sql(
CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT(name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_GPU(vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER,
  totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER, smMajor INTEGER,
  smMinor INTEGER);
CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE PROCESSES(globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE WARPSIGHT_STEPS(start INTEGER NOT NULL, place INTEGER NOT NULL, step INTEGER NOT NULL, "end" INTEGER NOT NULL, op INTEGER NOT NULL);
CREATE TABLE WARPSIGHT_OPS(op INTEGER NOT NULL PRIMARY KEY, name TEXT, detail TEXT, layer TEXT, phase TEXT, meaning INTEGER, flops INTEGER,
  bytes INTEGER, stack BLOB);
CREATE TABLE ThreadNames(nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE ANALYSIS_DETAILS(globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_NSYS_EVENT_TYPE(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL,
  gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,
  staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER NOT NULL, "end" INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL,
  deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,
  migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL,
  graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS(start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL,
  address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT,
  correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER,
  localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER, op INTEGER, step INTEGER);
CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT,
  globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL,
  uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES(0,'UNKNOWN','Unknown'),(1,'HTOD','Host-to-Device'),(2,'DTOH','Device-to-Host'),(8,'DTOD','Device-to-Device'),
  (9,'HTOH','Host-to-Host'),(10,'PTOP','Peer-to-Peer');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES(0,'PAGEABLE','Pageable'),(1,'PINNED','Pinned'),(2,'DEVICE','Device'),(3,'ARRAY','Array'),(4,'MANAGED','Managed'),
  (5,'DEVICE_STATIC','Device Static'),(6,'MANAGED_STATIC','Managed Static'),(7,'UNKNOWN','Unknown');
INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES(0,'ALLOCATION','Allocation'),(1,'DEALLOCATION','Deallocation');
INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES(34,'NvtxMark','NvtxMark'),(59,'NvtxPushPopRange','NvtxPushPopRange'),(60,'NvtxStartEndRange','NvtxStartEndRange');
)sql";

// Created only if there is data for them.
constexpr const char* kMetricSchema = R"sql(
CREATE TABLE GPU_METRICS(timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL, typeName TEXT, sourceId INTEGER);
)sql";

std::string short_name(const std::string& name) {
  constexpr std::string_view kNoNamespace = "(anonymous namespace)";  // its bracket does not begin an argument list
  const size_t unnamed = name.find(kNoNamespace);
  const size_t from_here = unnamed < name.find('<') ? unnamed + kNoNamespace.size() : 0;
  const std::string head = name.substr(0, std::min(name.find('<', from_here), name.find('(', from_here)));
  const size_t space = head.rfind(' '), colon = head.rfind(':');
  const size_t from = std::max(space == head.npos ? 0 : space + 1, colon == head.npos ? 0 : colon + 1);
  return head.substr(from);
}

int copy_oper(CopyEnds ends) {
  if (ends.from == MemoryPlace::Unknown || ends.to == MemoryPlace::Unknown) return 0;
  if (on_host(ends.from)) return on_host(ends.to) ? 9 : 1;
  return on_host(ends.to) ? 2 : 8;
}

int memory_kind(MemoryPlace place) {
  // Nsight Systems has no value for Host
  return static_cast<int>(place == MemoryPlace::Host ? MemoryPlace::Unknown : place);
}

class NsysWriter {
 public:
  NsysWriter(const RunData& run, const std::string& path)
      : run_(run), graphs_(run.trace), db_(path, Database::Mode::Create) {}

  void write() {
    db_.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
    db_.exec(kSchema);
    db_.exec("BEGIN");
    prepare();
    const auto& tracks = run_.trace.tracks();
    for (size_t t = 0; t < tracks.size(); ++t) write_track(tracks[t], static_cast<int64_t>(t));
    write_ops();
    write_memory();
    write_counters();
    write_about();
    db_.exec("COMMIT");
  }

 private:
  void prepare() {
    string_.emplace(db_.prepare("INSERT INTO StringIds VALUES(?, ?)"));
    kernel_.emplace(
        db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, \"end\", deviceId, contextId, streamId, "
                    "correlationId, globalPid, demangledName, shortName, "
                    "mangledName, launchType, cacheConfig, registersPerThread, gridX, gridY, gridZ, blockX, blockY, "
                    "blockZ, staticSharedMemory, dynamicSharedMemory, "
                    "localMemoryPerThread, localMemoryTotal, gridId, graphNodeId) VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?, ?, "
                    "1, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, nullif(?, 0))"));
    call_.emplace(db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?, ?, ?, ?, ?, ?, 0, NULL)"));
    copy_.emplace(
        db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY(start, \"end\", deviceId, contextId, streamId, "
                    "correlationId, globalPid, bytes, "
                    "copyKind, srcKind, dstKind, graphNodeId) VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0))"));
    memset_.emplace(
        db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET(start, \"end\", deviceId, contextId, streamId, "
                    "correlationId, globalPid, value, "
                    "bytes, memKind, graphNodeId) VALUES(?, ?, ?, 1, ?, ?, ?, 0, ?, ?, nullif(?, 0))"));
    graph_.emplace(
        db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start, \"end\", deviceId, contextId, streamId, "
                    "correlationId, globalPid, "
                    "graphId, graphExecId) VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?)"));
    wait_.emplace(
        db_.prepare("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, \"end\", deviceId, contextId, streamId, "
                    "correlationId, globalPid, syncType, eventId) VALUES(?, ?, ?, 1, ?, ?, ?, ?, 0)"));
    range_.emplace(
        db_.prepare("INSERT INTO NVTX_EVENTS(start, \"end\", eventType, text, globalTid, domainId, category) "
                    "VALUES(?, ?, ?, ?, ?, 0, nullif(?, 0))"));
    step_.emplace(db_.prepare("INSERT INTO WARPSIGHT_STEPS VALUES(?, ?, ?, ?, ?)"));
  }

  int64_t string_id(const std::string& text) {
    const auto [at, fresh] = strings_.try_emplace(text, static_cast<int64_t>(strings_.size()));
    if (fresh) string_->run(at->second, text);
    return at->second;
  }

  void write_track(const Track& track, int64_t index) {
    if (track.kind == TrackKind::Steps && track.group.starts_with("GPU")) return;  // skips the GPU's copy of the steps
    const int64_t device = gpu_number(track.group), stream = number_in(track.name, 0);
    const bool samples = is_sample_row(track);
    const std::string row = samples ? sampled_thread(track) : track.name;
    const RowThread owner = samples && !row.starts_with("thread ") ? RowThread{row} : thread_of_row(row);
    const int64_t thread = global_pid_ | (owner.number > 0 ? owner.number : kThreads + index);
    if (!on_gpu(track) && named_.insert(thread).second)
      db_.prepare("INSERT INTO ThreadNames VALUES(?, 10, ?)").run(string_id(owner.name), thread);
    const int64_t place = on_gpu(track)                                ? stream
                          : track.kind == TrackKind::Other && !samples ? number_in(track.name, kNoStream)
                                                                       : thread;
    each_span(track, -kAlways, kAlways, [&](const Span& span) {
      if ((span.step != 0 && span.span_kind() != SpanKind::Step) || span.op != kNoOp)
        step_->run(span.start, place, span.step, span.end(), span.op);
      if (is_stream_wait(track, span))
        write_wait(span, device, number_in(track.name, kNoStream));
      else if (on_gpu(track))
        write_gpu(span, device, stream);
      else if (samples)
        samples_.write(run_.trace, span, thread);
      else
        write_host(span, thread, untraced(track));
    });
  }

  void write_gpu(const Span& s, int64_t device, int64_t stream) {
    const Detail& d = run_.trace.detail(s.detail);
    const std::string& name = run_.trace.name(s.name);
    const auto bytes = static_cast<int64_t>(d.bytes);
    const int64_t node = s.flags & kInGraph ? graphs_.next(s).node : 0;
    if (s.span_kind() == SpanKind::Kernel) {
      const int64_t id = string_id(name);
      kernel_->run(s.start, s.end(), device, stream, s.correlation, global_pid_, id, string_id(short_name(name)), id,
                   d.registers, d.grid[0], d.grid[1], d.grid[2], d.block[0], d.block[1], d.block[2], d.static_shared,
                   d.dynamic_shared, ++grid_, node);
    } else if (s.span_kind() == SpanKind::Copy) {
      const CopyEnds ends = copy_ends(d.copy_kind);
      copy_->run(s.start, s.end(), device, stream, s.correlation, global_pid_, bytes, copy_oper(ends),
                 memory_kind(ends.from), memory_kind(ends.to), node);
    } else if (s.span_kind() == SpanKind::Memset) {
      const MemoryPlace place = place_of(d.copy_kind);
      memset_->run(s.start, s.end(), device, stream, s.correlation, global_pid_, bytes,
                   memory_kind(place == MemoryPlace::Unknown ? MemoryPlace::Device : place), node);
    } else if (s.span_kind() == SpanKind::GraphRun) {
      const int64_t graph = graph_number(run_.trace, s);
      graph_->run(s.start, s.end(), device, stream, s.correlation, global_pid_, graph, graph);
    }
  }

  void write_wait(const Span& s, int64_t device, int64_t stream) {
    wait_->run(s.start, s.end(), device, stream, s.correlation, global_pid_, wait_type(run_.trace.name(s.name)));
  }

  void write_host(const Span& s, int64_t thread, bool rests) {
    const std::string& name = run_.trace.name(s.name);
    const auto range = [&](const std::string& text, int64_t category) {
      range_->run(s.start, s.end(), kPushPopRange, text, thread, category);
    };
    switch (s.span_kind()) {
      case SpanKind::Api:
      case SpanKind::Alloc:
      case SpanKind::Free:
      case SpanKind::Sync:
      case SpanKind::GraphLaunch:
        call_->run(s.start, s.end(), name.starts_with("cuda") ? 0 : 1, thread, s.correlation, string_id(name));
        break;
      case SpanKind::Step:
        range("step " + std::to_string(int64_t{s.step} - 1), kStepCategory);
        break;
      case SpanKind::Phase:
        range(name, 0);
        break;
      case SpanKind::Op:
        range(name, kOpCategory + static_cast<int64_t>(s.span_meaning()));
        break;
      case SpanKind::Overhead:
        if (rests) range(name, kUntracedCategory);
        break;
      default:
        break;
    }
  }

  void write_ops() {
    Statement insert = db_.prepare("INSERT INTO WARPSIGHT_OPS VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const auto& ops = run_.trace.ops;
    for (size_t i = 1; i < ops.size(); ++i) {
      const OpInfo& op = ops[i];
      insert.run(static_cast<int64_t>(i), op.name, op.detail, op.layer, op.phase, static_cast<int>(op.meaning), op.flops, op.bytes,
                 Blob{op.stack ? encode_stack(*op.stack) : std::string()});
    }
  }

  void write_memory() {
    Statement insert = db_.prepare(
        "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, contextId, address, pc, bytes, memKind, "
        "memoryOperationType, name, op, step) VALUES(?, ?, ?, 1, ?, 0, ?, 2, ?, ?, nullif(?, 0), nullif(?, 0))");
    const auto& sources = run_.trace.memory_sources;
    for (const MemoryEvent& e : run_.trace.memory()) {
      if (e.kind != MemoryAction::Allocate && e.kind != MemoryAction::Free) continue;
      const std::string source = e.source < sources.size() ? sources[e.source] : std::string();
      insert.run(e.time, global_pid_, allocator_gpu(source), static_cast<int64_t>(e.address),
                 static_cast<int64_t>(e.bytes), e.kind == MemoryAction::Free ? 1 : 0, source, e.op, e.step);
    }
  }

  // Hardware counters: Nsight stores whole percents, and encodes the card in the type.
  void write_counters() {
    constexpr int64_t kType = 0;
    int64_t id = 0;
    for (const CounterTrack& track : run_.trace.counters()) {
      const std::string name = nsys_metric_name(track.name);
      if (name.empty()) continue;
      if (id == 0) db_.exec(kMetricSchema);
      db_.prepare("INSERT INTO TARGET_INFO_GPU_METRICS VALUES(?, ?, ?, 'GPU Metrics', 0)").run(kType, ++id, name);
      Statement insert = db_.prepare("INSERT INTO GPU_METRICS VALUES(?, ?, ?, ?)");
      for (const CounterPoint& point : track.points)
        if (std::isfinite(point.value))
          insert.run(point.time, kType, id, static_cast<int64_t>(std::llround(std::clamp(point.value, 0.0, 100.0))));
    }
  }

  void write_about() {
    Statement meta = db_.prepare("INSERT INTO META_DATA_EXPORT VALUES(?, ?)");
    meta.run("EXPORT_PRODUCT_NAME", "Warpsight");
    meta.run("EXPORT_PRODUCT_VERSION", version());
    meta.run("EXPORT_SCHEMA_VERSION", "3.16.1");
    for (const auto& [key, value] : to_meta(run_.summary)) meta.run(kOurMeta + key, value);
    const Card card = card_of(run_.summary);
    db_.prepare(
           "INSERT INTO TARGET_INFO_GPU(vmId, id, name, smCount, computeMajor, computeMinor) VALUES(0, 0, ?, nullif(?, "
           "0), nullif(?, 0), CASE ? WHEN 0 THEN NULL ELSE ? END)")
        .run(run_.summary.device, card.multiprocessors, card.major, card.major, card.minor);
    // Writes no row if the text is not a date.
    db_.prepare(
           "INSERT INTO TARGET_INFO_SESSION_START_TIME SELECT CAST(strftime('%s', ?1) AS INTEGER) * 1000000000, "
           "datetime(?1), NULL WHERE strftime('%s', ?1) NOT NULL")
        .run(run_.summary.created);
    db_.prepare("INSERT INTO PROCESSES VALUES(?, ?, 'warpsight')").run(global_pid_, pid_);
    const TimeNs first = run_.trace.first_time(), last = run_.trace.last_time();
    db_.prepare("INSERT INTO ANALYSIS_DETAILS VALUES(0, ?, ?, ?)").run(last - first, first, last);
  }

  const RunData& run_;
  GraphNumbers graphs_;
  Database db_;
  std::optional<Statement> string_, kernel_, call_, copy_, memset_, graph_, wait_, range_, step_;
  std::unordered_map<std::string, int64_t> strings_;
  NsysSampleWriter samples_{db_, [this](const std::string& text) { return string_id(text); }};
  std::set<int64_t> named_;  // threads
  int64_t pid_ = getpid() & 0xffffff, global_pid_ = pid_ << 24, grid_ = 0;
};

}  // namespace

void export_nsys(const RunData& run, const std::string& path) { NsysWriter(run, path).write(); }

}  // namespace ws::prof
