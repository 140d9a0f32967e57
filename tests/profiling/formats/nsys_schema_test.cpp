// Exports of Nsight Systems as its versions lay them out: columns come and go, tables are there only when something is
// in them, texts are given in two ways.
#include <set>

#include "profiling/trace/span_walk.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/sqlite.h"
#include "tests/profiling/formats/interop_support.h"

namespace ws::prof {
namespace {

constexpr int64_t kProcess = int64_t{4321} << 24, kThread = kProcess | 4322;

// Nsight Systems 2021: nothing may be NULL, so what is not known is 0; no enumerations.
constexpr const char* k2021 = R"sql(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, launchType INTEGER, cacheConfig INTEGER,
  registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
INSERT INTO StringIds VALUES (1, 'void gemm<float>(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
  (4, 'cudaMemcpyAsync_ptsz_v7000'), (5, 'cuLaunchKernel'), (6, 'step 8');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 1900, 0, 1, 7, 100, :pid, 1, 2, 0, 0, 40, 4, 1, 1, 128, 1, 1, 512,
  1024, 0, 0, 1, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1100, 1200, 0, :tid, 100, 3, 0, NULL), (1210, 1290, 0, :tid, 101, 4, 0, NULL),
  (1300, 1310, 1, :tid, 102, 5, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1300, 1400, 0, 1, 7, 101, :pid, 4096, 1, NULL, NULL, NULL, NULL);
INSERT INTO NVTX_EVENTS VALUES (1000, 2000, 59, NULL, NULL, NULL, NULL, :tid, NULL, 6, 0);
)sql";

// Nsight Systems 2024 (schema 3.16): enumerations, waits, graphs, memory, names of threads.
constexpr const char* k2024 = R"sql(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
  registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
  blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
  gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
  srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
  graphNodeId INTEGER, virtualAddress INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  syncType INTEGER NOT NULL, eventId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, nameId INTEGER NOT NULL, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
  memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER,
  localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER,
  importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,
  uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL,
  jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_NAME', 'NVIDIA Nsight Systems'), ('EXPORT_SCHEMA_VERSION', '3.16.1');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1763703634000000123, '2025-11-21 05:40:34', NULL);
INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', '0000:19:00.0', 1);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
INSERT INTO StringIds VALUES (1, 'void gemm<float>(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
  (4, 'cudaMemcpyAsync_v3020'), (5, 'cudaMalloc_v3020'), (6, 'iteration 8'), (7, 'cudaStreamSynchronize_v3020'),
  (8, 'cudaGraphLaunch_v10000'), (9, '_Z4gemmIfEvPT_'), (10, 'python3');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1500, 1900, 0, 1, NULL, 7, 100, :pid, 1, 2, 9, 1, 0, 40, 4, 1, 1, 128, 1, 1,
  512, 1024, 0, 0, 1, 102400, NULL, 0), (3000, 3100, 0, 1, NULL, 7, 104, :pid, 1, 2, 9, 1, 0, 40, 4, 1, 1, 128, 1, 1, 512,
  1024, 0, 0, 2, 102400, 77, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1100, 1200, 0, :tid, 100, 3, 0, NULL), (1210, 1290, 0, :tid, 101, 4, 0, NULL),
  (1300, 1310, 0, :tid, 102, 5, 0, NULL), (1905, 2200, 0, :tid, 103, 7, 0, NULL), (2900, 2950, 0, :tid, 104, 8, 0, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1300, 1400, 0, 1, NULL, 7, 101, :pid, 4096, 2, NULL, 2, 1, 0, 1, 0, 1, NULL,
  NULL, NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1410, 1420, 0, 1, NULL, 7, 105, :pid, 0, 64, NULL, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1910, 2190, 0, 1, NULL, 7, 103, :pid, 3, 4294967295);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (3200, 3500, 0, 1, NULL, 7, 106, :pid, 5, 6);
INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (10, 20, 0, :tid, 8, 77, NULL);
INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1305, :pid, 0, 1, 4096, 0, 1024, 2, 0, NULL, 102, 0, NULL, NULL, NULL, NULL, NULL, NULL),
  (1306, :pid, 0, 1, 8192, 0, 99999, 1, 0, NULL, 102, 0, NULL, NULL, NULL, NULL, NULL, NULL),
  (1900, :pid, 0, 1, 4096, 0, 1024, 2, 1, NULL, 103, 7, 65536, 0, 33554432, 2048, NULL, NULL);
INSERT INTO NVTX_EVENTS(start, end, eventType, text, globalTid, textId, domainId, jsonText) VALUES
  (900, NULL, 75, 'CCCL', :tid, NULL, 1, NULL), (1000, 2300, 59, NULL, :tid, 6, 0, NULL), (1050, 1250, 60, 'forward', :tid, NULL, 0, NULL),
  (2400, 3600, 59, 'iteration 9', :tid, NULL, 0, NULL), (1100, NULL, 34, 'a mark', :tid, NULL, 0, '{}');
INSERT INTO OSRT_API VALUES (1, 2, 27, :tid, 1, 3, 0, NULL, 0);
)sql";

struct NsysSchema : Interop {
  // SQL with :pid and :tid for numbers of a process.
  static std::string sql(std::string text, int64_t pid = kProcess, int64_t tid = kThread) {
    for (const auto& [word, value] : {std::pair<std::string, int64_t>{":pid", pid}, {":tid", tid}})
      for (size_t at = 0; (at = text.find(word, at)) != text.npos;)
        text.replace(at, word.size(), std::to_string(value));
    return text;
  }
  static void exec(Database& db, const std::string& statements) {
    db.exec(("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF; BEGIN;" + statements + "COMMIT;").c_str());
  }
  RunData import(const std::string& statements) const {
    Database db(path("e.sqlite"), Database::Mode::Create);
    exec(db, statements);
    return import_run(path("e.sqlite"));
  }
  // An export of 2024 that somebody changed.
  RunData import_2024_and(const std::string& statements) const {
    if (!std::filesystem::exists(path("2024.sqlite"))) {
      Database db(path("2024.sqlite"), Database::Mode::Create);
      exec(db, sql(k2024));
    }
    std::filesystem::copy_file(path("2024.sqlite"), path("e.sqlite"),
                               std::filesystem::copy_options::overwrite_existing);
    Database db(path("e.sqlite"), Database::Mode::Update);
    exec(db, statements);
    return import_run(path("e.sqlite"));
  }
};

TEST_F(NsysSchema, Of2021) {
  const RunData e = import(sql(k2021));
  EXPECT_TRUE(e.problems.empty()) << e.problems[0];
  EXPECT_EQ(said(e.trace), (std::vector<std::string>{
                               "CPU / CUDA API, thread 4322: cuLaunchKernel 1300+10 step 8",
                               "CPU / CUDA API, thread 4322: cudaLaunchKernel 1100+100 step 8",
                               "CPU / CUDA API, thread 4322: cudaMemcpyAsync 1210+80 step 8",
                               "CPU / steps: step 1000+1000 step 8",
                               "GPU 0 / stream 7 copies: copy host → device 1300+100 step 8",
                               "GPU 0 / stream 7: void gemm<float>(float*) 1500+400 step 8",
                           }));
}

TEST_F(NsysSchema, Of2024) {
  const RunData e = import(sql(k2024));
  EXPECT_TRUE(e.problems.empty()) << e.problems[0];
  EXPECT_EQ(e.summary.device, "NVIDIA H200");
  EXPECT_EQ(e.summary.created, "2025-11-21T05:40:34Z");
  EXPECT_EQ(said(e.trace), (std::vector<std::string>{
                               "CPU / CUDA API, thread 4322: cudaGraphLaunch 2900+50 step 1",
                               "CPU / CUDA API, thread 4322: cudaLaunchKernel 1100+100 step 0",
                               "CPU / CUDA API, thread 4322: cudaMalloc 1300+10 step 0",
                               "CPU / CUDA API, thread 4322: cudaMemcpyAsync 1210+80 step 0",
                               "CPU / CUDA API, thread 4322: cudaStreamSynchronize 1905+295 step 0",
                               "CPU / steps: step 1000+1300 step 0",
                               "CPU / steps: step 2400+1200 step 1",
                               "CPU / thread 4322 ranges: forward 1050+200 step 0",
                               "CPU / thread 4322 ranges: iteration 8 1000+1300 step 0",
                               "CPU / thread 4322 ranges: iteration 9 2400+1200 step 1",
                               "GPU 0 / stream 7 copies: copy device → pinned 1300+100 step 0",
                               "GPU 0 / stream 7 copies: memset 1410+10 step 0",
                               "GPU 0 / stream 7 graphs: graph 5 3200+300 step 1",
                               "GPU 0 / stream 7 waits: host waits for the stream 1910+280 step 0",
                               "GPU 0 / stream 7: void gemm<float>(float*) 1500+400 step 0",
                               "GPU 0 / stream 7: void gemm<float>(float*) 3000+100 step 1",
                           }));
  ASSERT_EQ(e.trace.memory().size(), 2u) << "pinned memory is none of the GPU's";
  EXPECT_EQ(e.trace.memory()[0].bytes, 1024u);
  EXPECT_EQ(e.trace.memory()[1].kind, MemoryAction::Free);
  ASSERT_EQ(e.trace.counters().size(), 2u);
  EXPECT_EQ(e.trace.counters()[0].name, "pool reserved");
  EXPECT_DOUBLE_EQ(e.trace.counters()[0].points.at(0).value, 33554432);
  for (const Track& track : e.trace.tracks())
    if (track.kind == TrackKind::Stream) {
      EXPECT_EQ(track.blocks[0].spans[1].flags & kInGraph, kInGraph);
      const Detail& d = e.trace.detail(track.blocks[0].spans[0].detail);
      EXPECT_EQ(d.registers, 40);
      EXPECT_EQ(d.dynamic_shared, 1024);
    }
}

// Each event reports one pool: several hold more than the last one reported, and one that is gone holds nothing.
TEST_F(NsysSchema, PoolsAreCountedTogether) {
  const RunData e = import_2024_and(
      "DELETE FROM CUDA_GPU_MEMORY_USAGE_EVENTS;"
      "INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, contextId, address, pc, bytes, memKind, "
      "memoryOperationType, localMemoryPoolAddress, localMemoryPoolSize, localMemoryPoolUtilizedSize) VALUES "
      "(2000, 0, 0, 1, 4096, 0, 64, 2, 0, 11, 1000, 64), (2100, 0, 0, 1, 8192, 0, 32, 2, 0, 12, 500, 32), "
      "(2200, 0, 0, 1, 4096, 0, 64, 2, 1, 11, 1000, 0);"
      "CREATE TABLE ENUM_CUDA_MEMPOOL_OPER(id INTEGER, name TEXT, label TEXT);"
      "INSERT INTO ENUM_CUDA_MEMPOOL_OPER VALUES (0, 'C', 'Created'), (1, 'D', 'Destroyed'), (2, 'T', 'Trimmed');"
      "CREATE TABLE CUDA_GPU_MEMORY_POOL_EVENTS(start INTEGER, globalPid INTEGER, deviceId INTEGER, address INTEGER, "
      "operationType INTEGER, poolType INTEGER, correlationId INTEGER, minBytesToKeep INTEGER, "
      "localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER);"
      "INSERT INTO CUDA_GPU_MEMORY_POOL_EVENTS VALUES (2300, 0, 0, 12, 1, 1, 0, 0, 0, 500, 32), "
      "(2150, 0, 0, 11, 2, 1, 0, 0, 0, 600, 64), (1900, 0, 0, 11, 0, 1, 0, 0, 0, NULL, NULL);");
  EXPECT_TRUE(e.problems.empty()) << e.problems[0];
  std::map<std::string, std::vector<std::pair<TimeNs, double>>> drawn;
  for (const CounterTrack& track : e.trace.counters())
    for (const CounterPoint& point : track.points) drawn[track.name].emplace_back(point.time, point.value);
  using Points = std::vector<std::pair<TimeNs, double>>;
  EXPECT_EQ(drawn["pool reserved"], (Points{{2000, 1000}, {2100, 1500}, {2150, 1100}, {2200, 1500}, {2300, 1000}}));
  EXPECT_EQ(drawn["pool used"], (Points{{2000, 64}, {2100, 96}, {2150, 96}, {2200, 32}, {2300, 0}}));
}

// Nsight Systems stores the moments of its samples, with rows for scheduled threads among them.
TEST_F(NsysSchema, SamplesLastUntilTheNextOne) {
  const RunData e = import_2024_and(sql(
      "INSERT INTO StringIds VALUES (20, 'main'), (21, 'hot'), (22, '/usr/bin/program'), (23, '/usr/lib/libm.so.6');"
      "INSERT INTO ThreadNames VALUES (10, 10, :tid);"
      "CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER, "
      "globalTid INTEGER, cpuCycles INTEGER NOT NULL);"
      "INSERT INTO COMPOSITE_EVENTS VALUES (1, 1000, 0, 1, :tid, 9), (2, 1100, 0, 1, :tid, 9), (3, 1200, 0, 1, :tid, 9), "
      "(4, 9000, 0, 1, :tid, 9), (5, 9050, 0, 2, :tid, 0);"
      "CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, kernelMode INTEGER, "
      "thumbCode INTEGER, unresolved INTEGER, specialEntry INTEGER, originalIP INTEGER, unwindMethod INTEGER, stackDepth INTEGER NOT NULL);"
      "INSERT INTO SAMPLING_CALLCHAINS SELECT id, 20, 22, 0, 0, 0, 0, 1, 1, 1 FROM COMPOSITE_EVENTS WHERE threadState = 1;"
      "INSERT INTO SAMPLING_CALLCHAINS SELECT id, 21, 23, 0, 0, 0, 0, 1, 1, 0 FROM COMPOSITE_EVENTS WHERE threadState = 1;"));
  EXPECT_TRUE(e.problems.empty()) << e.problems[0];
  std::vector<std::string> lines;
  for (const std::string& line : said(e.trace))
    if (line.find("samples of") != line.npos) lines.push_back(line.substr(0, line.find(" step ")));
  const std::string row = "CPU / samples of python3 4322: hot (/usr/lib/libm.so.6) < main (/usr/bin/program) ";
  EXPECT_EQ(lines, (std::vector<std::string>{row + "1000+100", row + "1100+100", row + "1200+100", row + "9000+100"}));
}

// Tables are made when there is something to put into them: any of them may be missing.
TEST_F(NsysSchema, AnyTableMayBeMissing) {
  Database db(path("e.sqlite"), Database::Mode::Create);
  db.exec(sql(k2024).c_str());
  std::vector<std::string> tables;
  Statement names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'StringIds'");
  while (names.step()) tables.emplace_back(names.text(0));
  ASSERT_EQ(tables.size(), 17u);
  for (const std::string& gone : tables) {
    const RunData e = import_2024_and("DROP TABLE " + gone + ";");
    EXPECT_TRUE(e.problems.empty()) << gone << ": " << e.problems[0];
    EXPECT_GE(e.trace.span_count(), 10u) << gone;
  }
  std::string all;
  for (const std::string& gone : tables) all += "DROP TABLE " + gone + ";";
  EXPECT_EQ(import_2024_and(all).trace.span_count(), 0u);
}

// Columns that a version does not have read as nothing, and the rest is used.
TEST_F(NsysSchema, AnyColumnMayBeMissing) {
  for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS"}) {
    std::vector<std::string> columns;
    {
      Database db(path("e.sqlite"), Database::Mode::Create);
      db.exec(sql(k2024).c_str());
      columns = db.columns(table);
    }
    for (const std::string& gone : columns) {
      if (gone == "start" || gone == "end") continue;
      const RunData e = import_2024_and(std::string("ALTER TABLE ") + table + " DROP COLUMN \"" + gone + "\";");
      EXPECT_TRUE(e.problems.empty()) << table << '.' << gone << ": " << e.problems[0];
      EXPECT_GE(e.trace.span_count(), 11u) << table << '.' << gone;
    }
  }
  const std::string short_only = "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN demangledName;";
  const RunData e = import_2024_and(short_only);
  EXPECT_NE(said(e.trace)[14].find(": gemm 1500+400"), std::string::npos) << said(e.trace)[14];
}

TEST_F(NsysSchema, ThreadsHaveTheirNames) {
  const RunData e =
      import_2024_and(sql("INSERT INTO StringIds VALUES (900, 'pt_autograd_0'); "
                          "INSERT INTO ThreadNames VALUES (900, 10, :tid), (901, 10, :pid);"));
  EXPECT_TRUE(e.problems.empty());
  const auto lines = said(e.trace);
  const auto with = [&](const std::string& text) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.starts_with(text); });
  };
  EXPECT_EQ(with("CPU / CUDA API, pt_autograd_0 4322: "), 5);
  EXPECT_GT(with("CPU / pt_autograd_0 4322 ranges: "), 0);
}

// Two processes number their calls alike and use streams of the same numbers.
TEST_F(NsysSchema, ProcessesAreKeptApart) {
  const int64_t other = int64_t{99} << 24;
  std::string more = sql(k2024, other, other | 100);
  more = more.substr(more.find("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL"));
  const RunData e = import(sql(k2024) + more +
                           sql("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM "
                               "CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid = :pid LIMIT 1;"));
  ASSERT_EQ(e.problems.size(), 1u);
  EXPECT_NE(e.problems[0].find("2 processes that used the GPU; steps and memory are those of process 4321"),
            std::string::npos)
      << e.problems[0];
  const auto lines = said(e.trace);
  const auto with = [&](const std::string& text) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.starts_with(text); });
  };
  EXPECT_EQ(with("GPU 0 / stream 7: "), 3);
  EXPECT_EQ(with("GPU 0 · process 99 / stream 7: "), 2);
  EXPECT_EQ(with("CPU · process 99 / CUDA API, thread 100: "), 5);
  EXPECT_EQ(with("CPU / steps"), 2);
  EXPECT_EQ(e.trace.memory().size(), 2u);
  std::set<uint32_t> launches;
  for (const Track& track : e.trace.tracks())
    if (track.kind == TrackKind::Api)
      for (const SpanBlock& block : track.blocks)
        for (const Span& span : block.spans) launches.insert(span.correlation);
  EXPECT_EQ(launches.size(), 10u);
}

}  // namespace
}  // namespace ws::prof
