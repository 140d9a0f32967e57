#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <unordered_map>

#include "profiling/base/clock.h"
#include "profiling/base/failure.h"
#include "profiling/analysis/card.h"
#include "profiling/formats/nsys_pools.h"
#include "profiling/formats/nsys_rows.h"
#include "profiling/formats/nsys_samples.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/nsys_threads.h"
#include "profiling/formats/trace_builder.h"
#include "profiling/trace/kernel_names.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {

namespace {

constexpr size_t kMostStrings = 1 << 22;
constexpr int64_t kNoStream = 0xffffffff;  // for a wait for no particular stream

uint32_t as_correlation(int64_t value) { return value > 0 && value <= 0xffffffff ? static_cast<uint32_t>(value) : 0; }

// "cudaLaunchKernel_ptsz_v7000" without the version and the suffix of the default stream.
std::string plain_call(std::string name) {
  const size_t at = name.rfind("_v");
  const bool version = at != name.npos && at + 2 < name.size() &&
                       name.find_first_not_of("0123456789", at + 2) == name.npos && name.size() - at > 5;
  if (version) name.resize(at);
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) name.resize(name.size() - 5);
  return name;
}

// Source and destination from CUPTI's copy kind alone.
CopyEnds ends_of_oper(int64_t kind) {
  using enum MemoryPlace;
  switch (kind) {
    case 1:
      return {Host, Device};
    case 2:
      return {Device, Host};
    case 8:
    case 10:
      return {Device, Device};
    case 9:
      return {Host, Host};
    default:
      return {};
  }
}

class NsysReader {
 public:
  explicit NsysReader(const std::string& path) : db_(path, Database::Mode::Read) {
    if (!db_.has_table("StringIds")) throw Failure(path + " is a database, but not an export of Nsight Systems.");
  }

  RunData read() {
    part("StringIds", [&] { read_strings(); });
    part("ThreadNames", [&] { threads_.read(db_, [&](int64_t id) -> const std::string& { return string(id); }); });
    part("CUPTI_ACTIVITY_KIND_KERNEL", [&] { find_processes(); });
    part("CUPTI_ACTIVITY_KIND_KERNEL", [&] { read_kernels(); });
    part("CUPTI_ACTIVITY_KIND_MEMCPY", [&] { read_copies(); });
    part("CUPTI_ACTIVITY_KIND_MEMSET", [&] { read_memsets(); });
    part("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", [&] { read_graphs(); });
    part("CUPTI_ACTIVITY_KIND_RUNTIME", [&] { read_calls(); });
    part("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", [&] { read_waits(); });
    part("NVTX_EVENTS", [&] { read_ranges(); });
    part(kSampleFrames, [&] { read_stacks(); });
    part("CUDA_GPU_MEMORY_USAGE_EVENTS", [&] { read_memory(); });
    part("CUDA_GPU_MEMORY_POOL_EVENTS", [&] { pools_.read(db_, [&](int64_t global) { return is_foreign(global); }); });
    pools_.draw(builder_);
    part("GPU_METRICS", [&] { read_metrics(); });
    part("TARGET_INFO_GPU", [&] { read_card(); });
    part("TARGET_INFO_SESSION_START_TIME", [&] {
      NsysRows rows(db_, "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"});
      if (rows.next() && rows.integer(0) > 0) run_.summary.created = utc_text(rows.integer(0) / 1'000'000'000);
    });
    run_.trace = builder_.finish(run_.problems);
    run_.summary.origin = "nsys";
    run_.summary.status = "finished";
    return std::move(run_);
  }

 private:
  void read_card() {
    NsysRows rows(db_, "TARGET_INFO_GPU", {"name", "computeMajor", "computeMinor", "smCount"});
    if (!rows.next()) return;
    const auto number = [&rows](int column) {
      return static_cast<int>(std::clamp<int64_t>(rows.integer(column), 0, 4096));
    };
    run_.summary.device = rows.text(0);
    run_.summary.machine = machine_text({rows.text(0), number(1), number(2), number(3)});
  }

  // Reads the metrics that our own sampling also has, for one card. An export contains dozens.
  void read_metrics() {
    std::map<int64_t, std::string> tracks;
    std::optional<int64_t> card;
    NsysRows names(db_, "TARGET_INFO_GPU_METRICS", {"typeId", "metricId", "metricName"}, " ORDER BY typeId");
    while (names.next()) {
      const std::string counter = counter_of_nsys_metric(names.text(2));
      if (counter.empty() || names.integer(0) != card.value_or(names.integer(0))) continue;
      card = names.integer(0);
      tracks.try_emplace(names.integer(1), counter);
    }
    NsysRows rows(db_, "GPU_METRICS", {"timestamp", "typeId", "metricId", "value"}, " ORDER BY timestamp");
    while (rows.next())
      if (const auto track = tracks.find(rows.integer(2)); track != tracks.end() && rows.integer(1) == card)
        builder_.add_point(track->second, "%", {rows.integer(0), static_cast<double>(rows.integer(3))});
  }

  // Tables exist only if they have rows. A damaged table does not affect other tables.
  template <class Read>
  void part(const char* table, Read read) {
    try {
      if (db_.has_table(table)) read();
    } catch (const Failure& failure) {
      run_.problems.push_back(std::string(table) + ": " + failure.what());
    }
  }

  void read_strings() {
    NsysRows rows(db_, "StringIds", {"id", "value"});
    while (rows.next() && strings_.size() < kMostStrings) strings_[rows.integer(0)] = rows.text(1);
  }

  const std::string& string(int64_t id) const {
    static const std::string kUnknown = "(unknown)";
    const auto at = strings_.find(id);
    return at == strings_.end() ? kUnknown : at->second;
  }

  // Several processes in one export number their calls independently and use the same stream numbers. Then rows of all
  // processes except the one with the most kernels show their process, and the steps belong to that process.
  void find_processes() {
    const auto present = db_.columns("CUPTI_ACTIVITY_KIND_KERNEL");
    if (std::ranges::find(present, "globalPid") == present.end()) return;
    NsysRows rows(db_, "CUPTI_ACTIVITY_KIND_KERNEL", {"globalPid"},
                  " GROUP BY globalPid ORDER BY count(*) DESC, globalPid");
    size_t processes = 0;
    for (; rows.next(); ++processes)
      if (processes == 0) busiest_ = process_of(rows.integer(0));
    several_ = processes > 1;
    if (!several_) return;
    run_.problems.push_back("The export holds " + std::to_string(processes) +
                            " processes that used the GPU; steps and memory are those of process " +
                            std::to_string(busiest_) + ".");
  }

  // Process id in a globalPid or globalTid.
  static int64_t process_of(int64_t global) { return global >> 24 & 0xffffff; }
  bool is_foreign(int64_t global) const { return several_ && process_of(global) != busiest_; }
  std::string mark_of(int64_t global) const {
    return is_foreign(global) ? " · process " + std::to_string(process_of(global)) : std::string();
  }
  uint32_t correlation_of(int64_t global, int64_t value) {
    const uint32_t own = as_correlation(value);
    if (!several_ || own == 0) return own;
    const auto next = static_cast<uint32_t>(correlations_.size() + 1);
    return correlations_.try_emplace(static_cast<uint64_t>(process_of(global)) << 32 | own, next).first->second;
  }

  void add(const TraceBuilder::Row& row, Span& span, const NsysRows& rows) { add(row, span, rows.integer(0), rows.integer(1)); }
  void add(const TraceBuilder::Row& row, Span& span, int64_t start, int64_t end) {
    int64_t duration = 0;
    if (__builtin_sub_overflow(end, start, &duration)) return builder_.leave_out("with a time out of range");
    builder_.add(row, span, start, duration);
  }

  Span span_of(SpanKind kind, Meaning meaning, const std::string& name, uint32_t correlation) {
    Span span;
    span.kind = static_cast<uint8_t>(kind);
    span.meaning = static_cast<uint8_t>(meaning);
    span.name = builder_.name(name);
    span.correlation = correlation;
    return span;
  }

  // The first columns, which all tables of GPU work have in common.
  NsysRows gpu_rows(const char* table, std::vector<std::string> more) {
    more.insert(more.begin(), {"start", "end", "deviceId", "streamId", "correlationId", "globalPid"});
    return NsysRows(db_, table, more);
  }
  static constexpr int kMore = 6;
  Span gpu_span(SpanKind kind, Meaning meaning, const std::string& name, const NsysRows& rows) {
    return span_of(kind, meaning, name, correlation_of(rows.integer(5), rows.integer(4)));
  }
  void add_gpu(TrackKind kind, const std::string& name, Span& span, const NsysRows& rows) {
    add({kind, name, gpu_name(rows.integer(2)) + mark_of(rows.integer(5))}, span, rows);
  }

  void read_kernels() {
    NsysRows rows = gpu_rows("CUPTI_ACTIVITY_KIND_KERNEL",
                             {"demangledName", "shortName", "registersPerThread", "gridX", "gridY", "gridZ", "blockX",
                              "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"});
    const auto number = [&rows](int column) { return as_int(rows.integer(kMore + column)); };
    while (rows.next()) {
      const std::string& name = string(rows.integer(rows.null(kMore) ? kMore + 1 : kMore));
      Span span = gpu_span(SpanKind::Kernel, meaning_of_kernel(name), name, rows);
      Detail d;
      d.registers = number(2);
      for (int i = 0; i < 3; ++i) d.grid[i] = number(3 + i), d.block[i] = number(6 + i);
      d.static_shared = number(9);
      d.dynamic_shared = number(10);
      span.detail = builder_.trace().intern(d);
      if (rows.integer(kMore + 11) != 0) span.flags = kInGraph;
      add_gpu(TrackKind::Stream, stream_name(rows.integer(3)), span, rows);
    }
  }

  std::map<int64_t, MemoryPlace> memory_kinds() {
    std::map<int64_t, MemoryPlace> kinds;
    for (int i = 0; i <= 7; ++i) kinds[i] = static_cast<MemoryPlace>(i);
    if (!db_.has_table("ENUM_CUDA_MEM_KIND")) return kinds;
    NsysRows rows(db_, "ENUM_CUDA_MEM_KIND", {"id", "label"});
    while (rows.next()) kinds[rows.integer(0)] = place_of(rows.text(1));
    return kinds;
  }

  void put_transfer(SpanKind kind, const std::string& name, Detail d, const NsysRows& rows, int node) {
    d.bytes = static_cast<uint64_t>(std::max<int64_t>(rows.integer(kMore), 0));
    Span span = gpu_span(kind, Meaning::Copy, name, rows);
    if (rows.integer(node) != 0) span.flags = kInGraph;
    span.detail = builder_.trace().intern(d);
    add_gpu(TrackKind::Copies, stream_name(rows.integer(3)) + " copies", span, rows);
  }

  void read_copies() {
    const auto kinds = memory_kinds();
    NsysRows rows = gpu_rows("CUPTI_ACTIVITY_KIND_MEMCPY", {"bytes", "srcKind", "dstKind", "copyKind", "graphNodeId"});
    while (rows.next()) {
      const CopyEnds roughly = ends_of_oper(rows.integer(kMore + 3));
      const auto place = [&](int column, MemoryPlace otherwise) {
        const auto at = rows.null(column) ? kinds.end() : kinds.find(rows.integer(column));
        return at == kinds.end() || at->second == MemoryPlace::Unknown ? otherwise : at->second;
      };
      Detail d;
      d.copy_kind = copy_kind_text({place(kMore + 1, roughly.from), place(kMore + 2, roughly.to)});
      put_transfer(SpanKind::Copy, "copy " + d.copy_kind, d, rows, kMore + 4);
    }
  }

  void read_memsets() {
    const auto kinds = memory_kinds();
    NsysRows rows = gpu_rows("CUPTI_ACTIVITY_KIND_MEMSET", {"bytes", "memKind", "graphNodeId"});
    while (rows.next()) {
      const auto place = rows.null(kMore + 1) ? kinds.end() : kinds.find(rows.integer(kMore + 1));
      Detail d;
      d.copy_kind = place_name(place == kinds.end() ? MemoryPlace::Device : place->second);
      put_transfer(SpanKind::Memset, "memset", d, rows, kMore + 2);
    }
  }

  void read_graphs() {
    NsysRows rows = gpu_rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {"graphId"});
    while (rows.next()) {
      const std::string name = "graph " + std::to_string(rows.integer(kMore));
      Span span = gpu_span(SpanKind::GraphRun, Meaning::Launch, name, rows);
      add_gpu(TrackKind::GraphLaunches, stream_name(rows.integer(3)) + " graphs", span, rows);
    }
  }

  void read_waits() {
    NsysRows rows = gpu_rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", {"syncType"});
    while (rows.next()) {
      const int64_t stream = rows.integer(3);
      Span span = gpu_span(SpanKind::Sync, Meaning::Sync, wait_name(rows.integer(kMore)), rows);
      add_gpu(TrackKind::StreamWaits, waits_name(stream == kNoStream ? -1 : stream), span, rows);
    }
  }

  void read_calls() {
    NsysRows rows(db_, "CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"});
    while (rows.next()) {
      const std::string name = plain_call(string(rows.integer(4)));
      const CallClass call = class_of_call(name);
      Span span = span_of(call.kind, call.meaning, name, correlation_of(rows.integer(2), rows.integer(3)));
      add({TrackKind::Api, "CUDA API, " + threads_.text(rows.integer(2)), "CPU" + mark_of(rows.integer(2))}, span, rows);
    }
  }

  // Ranges called "step 12" or "ProfilerStep#12" are steps.
  static int64_t step_of(const std::string& text) {
    for (const char* head : {"step ", "Step ", "ProfilerStep#", "step_"}) {
      if (text.starts_with(head) && text.find_first_not_of("0123456789", std::string_view(head).size()) == text.npos)
        return number_in(text, -1);
    }
    return -1;
  }

  void read_ranges() {
    NsysRows rows(db_, "NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId"});
    while (rows.next()) {
      if (rows.null(1)) continue;  // a mark, or a range that was still open
      add_step_or_phase(rows.null(3) ? string(rows.integer(4)) : rows.text(3), rows);
    }
  }

  void add_step_or_phase(const std::string& text, const NsysRows& rows) {
    const int64_t step = step_of(text);
    if (step < 0 || step >= 0xfffffffe || is_foreign(rows.integer(2))) {
      Span range = span_of(SpanKind::Phase, Meaning::Other, text, 0);
      return add({TrackKind::Ranges, threads_.text(rows.integer(2)) + " ranges", "CPU" + mark_of(rows.integer(2))}, range, rows);
    }
    Span span = span_of(SpanKind::Step, Meaning::Other, "step", 0);
    span.step = static_cast<uint32_t>(step + 1);
    add({TrackKind::Steps, "steps", "CPU"}, span, rows);
  }

  void read_stacks() {
    if (!db_.has_table(kSampleEvents)) return;
    const auto text = [this](int64_t id) -> const std::string& { return string(id); };
    for (const NsysSample& sample : read_samples(db_, builder_, text)) {
      Span span;
      span.kind = static_cast<uint8_t>(SpanKind::Other);
      span.meaning = static_cast<uint8_t>(Meaning::Other);
      span.name = sample.name;
      add({TrackKind::Samples, std::string(kSamplesOf) + threads_.text(sample.thread), "CPU" + mark_of(sample.thread)}, span,
          sample.start, sample.end);
    }
  }

  void read_memory() {
    NsysRows rows(db_, "CUDA_GPU_MEMORY_USAGE_EVENTS",
                  {"start", "address", "bytes", "memoryOperationType", "name", "memKind", "localMemoryPoolSize",
                   "localMemoryPoolUtilizedSize", "globalPid", "localMemoryPoolAddress", "deviceId"},
                  " ORDER BY start");
    const auto kinds = memory_kinds();
    while (rows.next()) {
      const auto place = rows.null(5) ? kinds.end() : kinds.find(rows.integer(5));
      if (place != kinds.end() && on_host(place->second)) continue;
      if (is_foreign(rows.integer(8))) continue;
      pools_.add(rows.integer(0), rows.integer(9), rows, 6);
      const std::string name = rows.text(4);
      MemoryEvent event{rows.integer(0),
                        static_cast<uint64_t>(rows.integer(1)),
                        static_cast<uint64_t>(std::max<int64_t>(rows.integer(2), 0)),
                        0,
                        kNoOp,
                        rows.integer(3) == 1 ? MemoryAction::Free : MemoryAction::Allocate,
                        0};
      builder_.add_memory(event, name.empty() || name.size() > 100 ? allocator_on("cuda", rows.integer(10)) : name);
    }
  }

  NsysPools pools_;
  Database db_;
  RunData run_;
  TraceBuilder builder_;
  std::unordered_map<int64_t, std::string> strings_;
  NsysThreads threads_;
  bool several_ = false;  // processes
  int64_t busiest_ = 0;
  std::unordered_map<uint64_t, uint32_t> correlations_;  // only used if there are several processes
};

}  // namespace

RunData import_nsys(const std::string& path) {
  RunData run = NsysReader(path).read();
  if (run.summary.name.empty()) run.summary.name = std::filesystem::path(path).filename().string();
  return run;
}

}  // namespace ws::prof
