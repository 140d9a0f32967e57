#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "profiling/analysis/steps_of_run.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/failure.h"
#include "profiling/base/text.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/sqlite.h"
#include "profiling/trace/track_names.h"
#include "tests/profiling/formats/interop_support.h"
#include "profiling/trace/code_places.h"
#include "tests/support/file_size_limit.h"

namespace ws::prof {
namespace {

namespace fs = std::filesystem;

void expect_same_work(const Trace& a, const Trace& b) {
  for (const SpanKind kind : {SpanKind::Kernel, SpanKind::Copy, SpanKind::Api, SpanKind::Step}) {
    const auto left = sorted_spans(a, kind), right = sorted_spans(b, kind);
    ASSERT_EQ(left.size(), right.size()) << static_cast<int>(kind);
    for (size_t i = 0; i < left.size(); ++i) {
      ASSERT_EQ(left[i].start, right[i].start);
      ASSERT_EQ(left[i].duration, right[i].duration);
      ASSERT_EQ(left[i].correlation, right[i].correlation);
      ASSERT_EQ(left[i].step, right[i].step);
      const bool kernel = kind == SpanKind::Kernel;
      ASSERT_TRUE(!kernel || a.name(left[i].name) == b.name(right[i].name));
      const Detail &x = a.detail(left[i].detail), &y = b.detail(right[i].detail);
      ASSERT_EQ(x.bytes, y.bytes);
      ASSERT_EQ(x.copy_kind, y.copy_kind);
      for (int k = 0; k < 3; ++k) ASSERT_TRUE(x.grid[k] == y.grid[k] && x.block[k] == y.block[k]);
    }
  }
}

TEST_F(Interop, ChromeTraceComesBackTheSame) {
  for (const char* name : {"a.json", "a.json.gz"}) {
    export_run(run, path(name));
    const RunData back = import_run(path(name));
    expect_same_work(run.trace, back.trace);
    EXPECT_EQ(back.summary.name, run.summary.name);
    EXPECT_EQ(back.summary.device, "NVIDIA H200");
    EXPECT_EQ(back.trace.memory().size(), run.trace.memory().size());
    EXPECT_EQ(back.trace.memory()[3].address, run.trace.memory()[3].address);
    ASSERT_EQ(back.metrics.size(), 5u);
    EXPECT_DOUBLE_EQ(back.metrics[4].loss, run.metrics[4].loss);
    EXPECT_DOUBLE_EQ(back.metrics[4].wall_s, run.metrics[4].wall_s);
    const auto before = sorted_spans(run.trace, SpanKind::Kernel), after = sorted_spans(back.trace, SpanKind::Kernel);
    EXPECT_EQ(back.trace.ops[after[0].op].layer, run.trace.ops[before[0].op].layer);
    EXPECT_EQ(after[0].meaning, before[0].meaning);
    EXPECT_TRUE(back.problems.empty()) << back.problems[0];
  }
  EXPECT_LT(fs::file_size(path("a.json.gz")), fs::file_size(path("a.json")) / 5);
}

// Viewers of the format show the stack of an event from "sf" and "stackFrames".
TEST_F(Interop, StacksOfLaunchesComeBackFromAChromeTrace) {
  RunData few;
  few.summary.origin = "recorded";
  few.trace.ops.push_back({"aten::mm", "", "net", "forward", Meaning::Matrix, 0, 0,
                           stack_from_text("net.py:12 in Net.forward > lib.py:7 in act < train.py:60 in main")});
  few.trace.ops.push_back({"aten::add", "", "net", "forward", Meaning::Pointwise, 0, 0,
                           stack_from_text("net.py:13 in Net.forward < train.py:60 in main")});
  for (int i = 0; i < 4; ++i) {
    Span span;
    span.start = i * 1000, span.duration = 500, span.kind = static_cast<uint8_t>(SpanKind::Kernel);
    span.op = static_cast<OpTag>(1 + i % 2), span.name = few.trace.intern("gemm");
    few.trace.append(few.trace.track(TrackKind::Stream, "stream 7", "GPU 0"), span);
  }
  export_run(few, path("stacks.json"));
  EXPECT_EQ(python(R"(
import json, sys
trace = json.load(open(sys.argv[1]))
frames = trace["stackFrames"]
def stack(number):
    return (stack(frames[number]["parent"]) if "parent" in frames[number] else []) + [frames[number]["name"]]
for e in trace["traceEvents"][-9:]:
    if e["ph"] == "X":
        print(len(frames), "; ".join(stack(e["sf"])))
        break
)",
                   path("stacks.json")),
            "4 main (train.py:60); Net.forward (net.py:12); act (lib.py:7)\n");
  const RunData back = import_run(path("stacks.json"));
  const auto kernels = sorted_spans(back.trace, SpanKind::Kernel);
  ASSERT_EQ(kernels.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const OpInfo &was = few.trace.ops[1 + i % 2], &is = back.trace.ops[kernels[i].op];
    ASSERT_TRUE(is.stack);
    EXPECT_EQ(*is.stack, *was.stack);
  }
}

struct SampledRun {
  RunData run;
  std::string at = "/a < b > c (d:5)/";
  std::shared_ptr<CodeStack> stack = std::make_shared<CodeStack>(
      CodeStack{{{at + "train.py", 60, "main"}, {at + "train.py", 7, "hot"}, {"libtorch.so", 0, "at::mm (x)"}}, 3});
  static constexpr std::array kRows = {"samples of MainThread", "samples of python3 4322", "samples of thread 17"};
  SampledRun() {
    run.summary.origin = "recorded";
    for (size_t i = 0; i < 3 * kRows.size(); ++i) {
      Span span;
      span.start = static_cast<TimeNs>(i) * 1000, span.duration = 500 + i, span.kind = static_cast<uint8_t>(SpanKind::Other);
      span.name = i % 3 == 1 ? run.trace.intern("makes a batch") : run.trace.intern(stack);
      run.trace.append(run.trace.track(TrackKind::Samples, kRows[i / 3], "CPU"), span);
    }
  }
  void expect_same(const RunData& back) const {
    EXPECT_TRUE(back.problems.empty());
    const auto spans = sorted_spans(back.trace, SpanKind::Other);
    ASSERT_EQ(spans.size(), 3 * kRows.size());
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].duration, 500 + i);
      EXPECT_EQ(back.trace.name(spans[i].name), i % 3 == 1 ? "makes a batch" : stack_text(*stack));
      EXPECT_EQ(back.trace.stack(spans[i].name) != nullptr, i % 3 != 1);
    }
    EXPECT_EQ(sampled_frames(back.trace, spans[0].name), stack->frames);
    EXPECT_EQ(spans[2].name, spans[0].name);
    std::vector<std::string> rows;
    for (const Track& track : back.trace.tracks())
      if (track.kind == TrackKind::Samples) rows.push_back(track.name);
    std::ranges::sort(rows);
    EXPECT_EQ(rows, std::vector<std::string>(kRows.begin(), kRows.end()));
  }
};

TEST_F(Interop, StacksOfSamplesComeBackFromAChromeTrace) {
  const SampledRun sampled;
  export_run(sampled.run, path("samples.json"));
  sampled.expect_same(import_run(path("samples.json")));
}

TEST_F(Interop, BlocksComeBackWithTheirOpStepAndAllocator) {
  RunData few;
  few.summary.origin = "recorded";
  few.trace.ops.push_back({"aten::mm", "", "net", "forward", Meaning::Matrix, 0, 0,
                           stack_from_text("net.py:12 in Net.forward < train.py:60 in main")});
  few.trace.ops.push_back({"aten::add", "", "net", "backward", Meaning::Pointwise, 0, 0});
  few.trace.memory_sources = {"PyTorch", "PyTorch GPU 1", "cudaMalloc"};
  for (int i = 0; i < 12; ++i)
    few.trace.append_memory({i * 1000, 0x1000u + static_cast<uint64_t>(i / 2 * 512), 512, static_cast<uint32_t>(i / 4),
                             static_cast<OpTag>(i % 3), i % 2 ? MemoryAction::Free : MemoryAction::Allocate,
                             static_cast<uint8_t>(i % 3)});
  const auto texts = [](const Trace& trace) {
    std::vector<std::string> lines;
    for (const MemoryEvent& e : trace.memory()) {
      const OpInfo& op = trace.ops.at(e.op);
      lines.push_back(formatted("{} {} {} {} step {} {}: {} {} {} {} {}", e.time, e.address, e.bytes, static_cast<int>(e.kind),
                                e.step, trace.memory_sources.at(e.source), op.name, op.layer, op.phase,
                                static_cast<int>(op.meaning), op.stack ? stack_text(*op.stack) : ""));
    }
    return lines;
  };
  export_run(few, path("blocks.json"));
  EXPECT_EQ(texts(import_run(path("blocks.json")).trace), texts(few.trace));
  EXPECT_EQ(texts(import_run(path("blocks.json")).trace).size(), 12u);
  EXPECT_EQ(python(R"py(
import json, sys
events = [e["args"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e["name"] == "[memory]"]
print([(a["Device Id"], a["Total Allocated"]) for a in events[:3]])
)py",
                   path("blocks.json")),
            "[(0, 512), (1, -512), (0, 1024)]\n");
}

// The seconds spent training begin after the trace does, and stand still in a pause.
TEST_F(Interop, ALossStandsWhereItsStepEndsInAChromeTrace) {
  RunData late;
  const TrackId steps = late.trace.track(TrackKind::Steps, "steps", "CPU");
  for (const auto& [step, start] : {std::pair{0, 64'000'000}, {1, 65'000'000}, {2, 90'000'000}}) {
    Span span;
    span.start = start, span.duration = 900'000, span.step = static_cast<uint32_t>(step) + 1;
    span.kind = static_cast<uint8_t>(SpanKind::Step);
    late.trace.append(steps, span);
  }
  for (int step = 0; step < 4; ++step) late.metrics.push_back({step, 0.001 * (step + 1), 1, 0.5});
  late.evaluations.push_back({4, 1, 0.0045, 0.9, 0.7});
  late.marks.push_back({1, 0.002, "train.lr: 0.1 → 0.2"});
  export_run(late, path("late.json"));
  const std::string said = python(R"(
import json, sys
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e["ph"] == "C" and "loss" in e["name"] or e.get("cat") == "change":
        print(e["cat"], e["name"].split(":")[0], e["step"], e["ts"])
)",
                                  path("late.json"));
  EXPECT_EQ(said,
            "counter loss 0 64900.0\ncounter loss 1 65900.0\ncounter loss 2 90900.0\n"
            "counter loss 3 91900.0\n"  // not traced: 1 ms of training later
            "counter test loss 4 92400.0\nchange train.lr 1 65900.0\n");
  const RunData back = import_run(path("late.json"));
  EXPECT_DOUBLE_EQ(back.metrics.at(3).wall_s, 0.004);
  EXPECT_DOUBLE_EQ(back.evaluations.at(0).wall_s, 0.0045);
  EXPECT_DOUBLE_EQ(back.marks.at(0).wall_s, 0.002);
}

// A call's number is also on what the profiler did for it; kernels and copies of a stream share a row.
TEST_F(Interop, OnlyCallsBeginTheArrowsOfAChromeTrace) {
  RunData few;
  const auto add = [&](TrackKind kind, const char* row, const char* group, SpanKind what, TimeNs start) {
    Span span;
    span.start = start, span.duration = 500, span.kind = static_cast<uint8_t>(what), span.correlation = 9;
    few.trace.append(few.trace.track(kind, row, group), span);
  };
  add(TrackKind::Copies, "stream 7 copies", "GPU 0", SpanKind::Copy, 100);
  add(TrackKind::Stream, "stream 7", "GPU 0", SpanKind::Kernel, 5000);
  add(TrackKind::Overhead, "profiler", "CPU", SpanKind::Overhead, 1200);
  add(TrackKind::Api, "thread 1 calls", "CPU", SpanKind::Api, 1000);
  export_run(few, path("few.json"));
  EXPECT_EQ(python(R"(
import json, sys
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e["ph"] in "sf": print(e["ph"], e["ts"])
    if e["name"] == "thread_name": print(e["tid"], e["args"]["name"])
)",
                   path("few.json")),
            "7 stream 7\n3 profiler\n4 thread 1 calls\nf 0.1\nf 5.0\ns 1.0\n");
}

// A wait stands with its stream, beside the call that waited, and is no call of its own.
TEST_F(Interop, WaitsKeepTheirStream) {
  Span wait;
  wait.start = 5'000'000, wait.duration = 7000, wait.correlation = 77;
  wait.kind = static_cast<uint8_t>(SpanKind::Sync), wait.meaning = static_cast<uint8_t>(Meaning::Sync);
  wait.name = run.trace.intern(wait_name(3));
  run.trace.append(run.trace.track(TrackKind::StreamWaits, waits_name(13), "GPU 1"), wait);
  wait.name = run.trace.intern(wait_name(4));
  run.trace.append(run.trace.track(TrackKind::StreamWaits, waits_name(-1), "GPU 1"), wait);
  const uint64_t calls = trace_stats(run.trace).api_calls;
  export_run(run, path("a.json"));
  const Trace back = import_run(path("a.json")).trace;
  std::map<std::string, std::string> waits;
  for (const Track& track : back.tracks())
    if (track.kind == TrackKind::StreamWaits) waits[track.group + ", " + track.name] = back.name(spans_of(track)[0].name);
  EXPECT_EQ(waits, (std::map<std::string, std::string>{{"GPU 1, stream 13 waits", "host waits for the stream"},
                                                       {"GPU 1, waits", "host waits for the device"}}));
  EXPECT_EQ(trace_stats(back).api_calls, calls);
}

TEST_F(Interop, PythonReadsTheChromeTrace) {
  export_run(run, path("a.json"));
  const std::string text = python(R"py(
import json, sys
t = json.load(open(sys.argv[1]))
assert t["schemaVersion"] == 1 and t["displayTimeUnit"] == "ms" and t["deviceProperties"][0]["name"] == "NVIDIA H200"
ev = t["traceEvents"]
kernels = [e for e in ev if e.get("cat") == "kernel"]
k = kernels[0]
assert k["ph"] == "X" and {"device","context","stream","correlation","registers per thread","shared memory","grid","block"} <= set(k["args"])
starts = {e["id"] for e in ev if e["ph"] == "s"}; ends = {e["id"] for e in ev if e["ph"] == "f"}
assert starts == ends and all(e["cat"] == "ac2g" for e in ev if e["ph"] in "sf") and all(e["bp"] == "e" for e in ev if e["ph"] == "f")
copies = [e for e in ev if e.get("cat") == "gpu_memcpy"]
assert copies[0]["name"] == "Memcpy HtoD (Pageable -> Device)" and copies[0]["args"]["bytes"] == 4096
assert any(e["name"] == "ProfilerStep#7" and e["cat"] == "user_annotation" for e in ev)
assert ev[-1]["name"] == "Record Window End"
print(len(kernels), len(copies), len(starts))
)py",
                                  path("a.json"));
  EXPECT_EQ(text, "4000 200 4000\n");
}

TEST_F(Interop, NsysNamesLoseTheirVersionAndMissingTablesAreNoError) {
  {
    Database db(path("b.sqlite"), Database::Mode::Create);
    db.exec(
        R"py(CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES(1, 'cudaLaunchKernel_v7000'), (2, 'Robert''); DROP TABLE x;--');
      CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId); INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(10, 20, 5, 9, 1), (50, 20, 5, 9, 1);
      CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, streamId, correlationId, demangledName); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(30, 40, 0, 7, 9, 2), (-9223372036854775807, 9223372036854775807, 0, 7, 9, 77);
      CREATE TABLE NVTX_EVENTS(start, end, text, globalTid); INSERT INTO NVTX_EVENTS VALUES(5, 60, 'step 4', 5), (6, NULL, 'open', 5))py");
  }
  const RunData run_b = import_run(path("b.sqlite"));
  const auto calls = sorted_spans(run_b.trace, SpanKind::Api), kernels = sorted_spans(run_b.trace, SpanKind::Kernel);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(run_b.trace.name(calls[0].name), "cudaLaunchKernel");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(run_b.trace.name(kernels[0].name), "Robert'); DROP TABLE x;--");
  EXPECT_EQ(kernels[0].step, 5u);
  ASSERT_EQ(run_b.problems.size(), 2u);
  EXPECT_EQ(run_b.problems[0], "1 event with a negative duration.");
}

TEST_F(Interop, ReadsATraceAsPyTorchWritesIt) {
  std::ofstream(path("p.json"))
      << R"py({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 1}],
    "displayTimeUnit": "ms", "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 77, "tid": 77, "ts": 5829143219876.123, "dur": 90.001, "args": {"External id": 3}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 77, "tid": 77, "ts": 5829143219880.000, "dur": 10.5, "args": {}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 77, "tid": 77, "ts": 5829143219890.000, "dur": 4, "args": {"cbid": 211, "correlation": 12}},
    {"ph": "s", "id": 12, "pid": 77, "tid": 77, "ts": 5829143219890.000, "cat": "ac2g", "name": "ac2g"},
    {"ph": "f", "id": 12, "pid": 0, "tid": 7, "ts": 5829143219900.000, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "X", "cat": "kernel", "name": "void sgemm<float>(float*)", "pid": 0, "tid": 7, "ts": 5829143219900.500, "dur": 3.264,
     "args": {"External id": 3, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 12, "registers per thread": 32, "shared memory": 4096,
     "blocks per SM": 0.1, "grid": [4, 2, 1], "block": [256, 1, 1], "occupancy": {"limitingFactors": "REGS"}, "est. achieved occupancy %": 3}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 77, "tid": 77, "ts": 5829143219870.000, "dur": 200, "args": {}},
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 77, "tid": 77, "ts": 5829143219881.0,
     "args": {"Total Reserved": 2097152, "Total Allocated": 512, "Bytes": 512, "Addr": 140300000000000, "Device Id": 0, "Device Type": 1, "Ev Idx": 1}},
    {"name": "process_name", "ph": "M", "ts": 5829143219870.000, "pid": 77, "tid": 0, "args": {"name": "python"}},
    {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 5829143219999.0}
    ], "traceName": "p.json"
})py";
  const RunData torch = import_run(path("p.json"));
  const auto kernels = sorted_spans(torch.trace, SpanKind::Kernel), steps = sorted_spans(torch.trace, SpanKind::Step);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].start - steps.at(0).start, 30500);
  EXPECT_EQ(kernels[0].duration, 3264u);
  EXPECT_EQ(kernels[0].step, 4u);
  EXPECT_EQ(kernels[0].span_meaning(), Meaning::Matrix);
  EXPECT_EQ(torch.trace.detail(kernels[0].detail).grid[1], 2);
  EXPECT_EQ(torch.trace.detail(kernels[0].detail).registers, 32);
  EXPECT_EQ(sorted_spans(torch.trace, SpanKind::Op).size(), 2u);
  EXPECT_EQ(torch.trace.memory().at(0).bytes, 512u);
  int deepest = 0;
  for (const Track& track : torch.trace.tracks()) deepest = std::max(deepest, track.depth);
  EXPECT_EQ(deepest, 1);
}

TEST_F(Interop, RunFilesKeepWhatOtherFormatsHold) {
  export_run(run, path("a.wsrun"));
  convert(path("a.wsrun"), path("b.json"));
  convert(path("b.json"), path("c.wsrun"));
  expect_same_work(run.trace, import_run(path("c.wsrun")).trace);
  EXPECT_THROW(convert(path("a.wsrun"), path("a.wsrun")), Failure);
  EXPECT_THROW(import_run(path("missing.json")), Failure);
  for (const char* name : {"x.unknown", "x.sqlite", "x.csv"}) EXPECT_THROW(export_run(run, path(name)), Failure) << name;
}

TEST_F(Interop, CountedAllocatorCallsAreKeptAndShown) {
  run.allocations = {{.step = 1, .op = 0, .allocations = 2, .frees = 1, .time_ns = 9000, .bytes = 4'000'000},
                     {.step = 2, .op = 0, .async_allocations = 3, .time_ns = 3000}};
  run.trace.losses.invalid_records = 3, run.trace.losses.unjoined_kernels = 12;
  export_run(run, path("a.wsrun"));
  convert(path("a.wsrun"), path("b.wsrun"));
  const RunData back = import_run(path("b.wsrun"));
  ASSERT_EQ(back.allocations.size(), 2u);
  EXPECT_EQ(back.allocations[1].async_allocations, 3u);
  EXPECT_EQ(back.allocations[0].time_ns, 9000);
  AllocatorHistory calls;
  calls.take(back.allocations);
  const std::string table = allocator_text(back.trace, calls, 2);
  EXPECT_NE(table.find("         5          1       12.000        2.000      4.000  (no op)"), std::string::npos)
      << table;
  EXPECT_EQ(allocator_text(back.trace, {}, 2), "");
  const std::string text = to_text(trace_stats(back.trace));
  EXPECT_NE(text.find("3 damaged, 12 not matched to an op"), std::string::npos) << text;
  EXPECT_NE(text.find("launch delay"), std::string::npos) << text;
  EXPECT_NE(text.find("of the copies in the whole trace ran"), std::string::npos) << text;
  EXPECT_EQ(losses_text({}), "");
}

// The disk is full after a few kilobytes: what was there before stays, and nothing else is left.
TEST_F(Interop, AnExportThatCannotBeWrittenLeavesWhatWasThere) {
  RunData big;
  big.trace = std::move(MadeTrace(4000).trace);
  for (int i = 0; i < 20'000; ++i) big.metrics.push_back({i, 0.25 * i, 2.0 / (i + 1), 0.5});
  for (const char* name : {"a.wsrun", "a.json", "a.json.gz"}) {
    std::ofstream(path(name)) << "before";
    {
      const test::FileSizeLimit full(20'000);
      EXPECT_THROW(export_run(big, path(name)), Failure) << name;
    }
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    EXPECT_EQ(text.str(), "before") << name;
    fs::remove(path(name));
    EXPECT_TRUE(fs::is_empty(folder)) << name << " left " << fs::directory_iterator(folder)->path();
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove(entry.path());
  }
}

TEST_F(Interop, StatsAgreeWithWhatWasMade) {
  const TraceStats stats = trace_stats(run.trace);
  EXPECT_EQ(stats.steps, 200u);
  EXPECT_EQ(stats.kernels, 4000u);
  EXPECT_EQ(stats.copies, 200u);
  EXPECT_EQ(stats.copied_bytes, 200u * 4096);
  EXPECT_EQ(stats.api_calls, 4000u);
  EXPECT_EQ(stats.by_name.size(), 20u);
  std::ofstream(path("s.json")) << to_json(stats);
  EXPECT_EQ(python("import json, sys\ns = json.load(open(sys.argv[1]))\nprint(list(s)[:8], list(s['by_name'][0])[:6])",
                   path("s.json")),
            "['version', 'steps', 'kernels', 'copies', 'memsets', 'api', 'allocations', 'driver_allocations'] ['name', 'count', "
            "'total_us', 'mean_us', 'p50_us', 'p99_us']\n");
}

TEST_F(Interop, ABombIsRefused) {
  const gzFile file = gzopen(path("bomb.json.gz").c_str(), "wb9");
  const std::string zeros(1 << 20, ' ');
  for (int i = 0; i < 200; ++i) gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  try {
    import_run(path("bomb.json.gz"));
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("unpacks to more"), std::string::npos) << failure.what();
  }
}

TEST_F(Interop, DamagedDatabasesAreRefusedOrReadInPart) {
  {
    Database db(path("a.sqlite"), Database::Mode::Create);
    db.exec("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES(1, 'kernel');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, streamId, correlationId, demangledName);"
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 5000) "
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 0, 7, i, 1 FROM c");
  }
  fs::resize_file(path("a.sqlite"), fs::file_size(path("a.sqlite")) / 2);
  const RunData half = import_run(path("a.sqlite"));
  EXPECT_FALSE(half.problems.empty());
  std::ofstream(path("x.sqlite")) << "no database at all, though long enough to be taken for one by its size";
  EXPECT_THROW(import_run(path("x.sqlite")), Failure);
  {
    Database(path("y.sqlite"), Database::Mode::Create)
        .exec("CREATE TABLE t(x); CREATE VIEW StringIds AS SELECT 1 AS id, 2 AS value");
  }
  EXPECT_THROW(import_run(path("y.sqlite")), Failure);
}

}  // namespace
}  // namespace ws::prof
