// What a run holds beyond eager kernels goes through other tools' formats and comes back: graphs node by node and as a
// whole, rows of the host, pauses of the tracing, evaluations, counters, and what is known of the card.
#include <cmath>
#include <set>
#include <tuple>

#include "app/core/comparison/comparison_text.h"
#include "profiling/trace/span_walk.h"
#include "profiling/analysis/step_breakdown.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/convert.h"
#include "profiling/run_file/sqlite.h"
#include "tests/profiling/formats/interop_support.h"
#include "tests/support/graph_run.h"

namespace ws::prof {
namespace {

Span span_of(Trace& trace, SpanKind kind, Meaning meaning, const char* name, TimeNs start, TimeNs ns) {
  return test::graph_run::span(trace, start, ns, kind, meaning, name, 0, 0);
}

struct GraphFormats : Interop {
  void SetUp() override {
    Interop::SetUp();
    run.trace = Trace();
    test::add_graph_run(run.trace, {}, 3);
    last = run.trace.last_time();
  }

  // A launch that was recorded as a whole, as most are at the level for long runs.
  void add_whole_graph(TimeNs start, uint32_t correlation) {
    Span graph = span_of(run.trace, SpanKind::GraphRun, Meaning::Launch, "graph 5", start, 30'000);
    graph.correlation = correlation;
    run.trace.append(run.trace.track(TrackKind::GraphLaunches, "stream 13 graphs", "GPU 0"), graph);
    Span call = span_of(run.trace, SpanKind::GraphLaunch, Meaning::Launch, "cudaGraphLaunch", start - 9000, 8000);
    call.correlation = correlation;
    run.trace.append(run.trace.track(TrackKind::Api, "thread 1 calls", "CPU"), call);
  }

  // "row depth: kind meaning flags" of each span of these kinds, in the order of time.
  static std::vector<std::string> kinds(const Trace& trace, bool gpu_only) {
    std::vector<std::pair<TimeNs, std::string>> found;
    for (const Track& track : trace.tracks())
      for (const Span& s : spans_of(track))
        if (!gpu_only || on_gpu(track))
          found.emplace_back(s.start, track.group + " " + track.name + ": " + trace.name(s.name) + " " +
                                          std::to_string(s.kind) + " " + std::to_string(s.meaning) + " " +
                                          std::to_string(s.flags & (kInGraph | kEstimated | kUnjoined)) + " " +
                                          std::to_string(s.correlation));
    std::ranges::sort(found);
    std::vector<std::string> lines;
    for (auto& [time, line] : found) lines.push_back(std::to_string(time) + " " + line);
    return lines;
  }

  TimeNs last = 0;
};

TEST_F(GraphFormats, GraphsComeBackAsGraphs) {
  add_whole_graph(last + 50'000, 9001);
  add_whole_graph(last + 90'000, 9002);
  const auto before = kinds(run.trace, true);
  ASSERT_EQ(before.size(), 3u * (50 * 32 + 1) + 2);
  const Breakdown parts = breakdown(run.trace);
  for (const char* name : {"a.json", "a.json.gz"}) {
    export_run(run, path(name));
    const RunData back = import_run(path(name));
    EXPECT_TRUE(back.problems.empty()) << back.problems[0];
    EXPECT_EQ(kinds(back.trace, true), before) << name;
    EXPECT_EQ(breakdown(back.trace).times, parts.times) << name;
    size_t in_graph = 0, whole = 0;
    for (const Track& track : back.trace.tracks())
      for (const Span& s : spans_of(track)) {
        in_graph += (s.flags & kInGraph) != 0;
        if (s.span_kind() != SpanKind::GraphRun) continue;
        ++whole;
        EXPECT_EQ(back.trace.name(s.name), "graph 5");
        EXPECT_EQ(track.kind, TrackKind::GraphLaunches);
      }
    EXPECT_EQ(in_graph, 3u * 50 * 32) << name;
    EXPECT_EQ(whole, 2u) << name;
  }
}

TEST_F(GraphFormats, CopiesAndMemsetsInGraphsToo) {
  Trace& trace = run.trace = Trace();
  const auto copies = trace.track(TrackKind::Copies, "stream 7 copies", "GPU 0");
  for (const SpanKind kind : {SpanKind::Copy, SpanKind::Memset}) {
    Detail detail;
    detail.bytes = 64, detail.copy_kind = kind == SpanKind::Copy ? "device → device" : "managed";
    Span s = span_of(trace, kind, Meaning::Copy, kind == SpanKind::Copy ? "copy device → device" : "memset",
                     kind == SpanKind::Copy ? 100 : 200, 50);
    s.correlation = 3, s.detail = trace.intern(detail);
    for (const bool in_graph : {false, true}) {
      s.flags = in_graph ? kInGraph : 0, s.start += 1000;
      trace.append(copies, s);
    }
  }
  export_run(run, path("a.json"));
  const Trace back = import_run(path("a.json")).trace;
  EXPECT_EQ(kinds(back, true), kinds(trace, true));
  for (const Span& s : spans_of(back.tracks().at(0)))
    EXPECT_EQ(back.detail(s.detail).copy_kind, s.span_kind() == SpanKind::Memset ? "managed" : "device → device");
}

// Written as by PyTorch's profiler: what was launched carries the number of the innermost op around its call.
TEST_F(GraphFormats, PythonFindsTheOpOfEachKernelByItsExternalId) {
  Trace& trace = run.trace = Trace();
  trace.ops.push_back({"outer", "", "", "forward", Meaning::Other, 0, 0});
  trace.ops.push_back({"inner", "", "fc1", "forward", Meaning::Matrix, 0, 0});
  const auto add = [&](TrackId track, SpanKind kind, const char* name, TimeNs start, TimeNs ns, uint32_t correlation,
                       OpTag op, uint8_t flags = 0) {
    Span s = span_of(trace, kind, Meaning::Other, name, start, ns);
    s.correlation = correlation, s.op = op, s.flags = flags, s.step = 1;
    trace.append(track, s);
  };
  const auto steps = trace.track(TrackKind::Steps, "steps", "CPU");
  const auto outer = trace.track(TrackKind::CpuThread, "thread 5", "CPU");
  const auto inner = trace.track(TrackKind::CpuThread, "thread 5", "CPU", 1);
  const auto other = trace.track(TrackKind::CpuThread, "thread 6", "CPU");
  const auto calls = trace.track(TrackKind::Api, "thread 5 calls", "CPU");
  const auto stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  add(steps, SpanKind::Step, "step", 0, 900, 0, 0);
  add(outer, SpanKind::Op, "outer", 100, 400, 0, 1);
  add(inner, SpanKind::Op, "inner", 200, 100, 0, 2);
  add(other, SpanKind::Op, "elsewhere", 0, 900, 0, 0);
  for (const auto& [name, at, correlation] :
       {std::tuple{"before", 50, 1u}, {"first", 110, 2u}, {"nested", 220, 3u}, {"graph", 320, 4u}, {"after", 600, 5u}})
    add(calls, SpanKind::Api, (std::string("call ") + name).c_str(), at, 20, correlation, 0);
  for (const auto& [name, correlation] : {std::tuple{"before", 1u}, {"first", 2u}, {"nested", 3u}, {"after", 5u}})
    add(stream, SpanKind::Kernel, name, 1000 + 10 * correlation, 5, correlation, 0);
  for (const TimeNs at : {1100, 1110}) add(stream, SpanKind::Kernel, "graph", at, 5, 4, 2, kInGraph);
  add(stream, SpanKind::Kernel, "marked", 1200, 5, 77, 2);               // its call was not recorded
  add(stream, SpanKind::Kernel, "lost node", 1210, 5, 78, 2, kInGraph);  // nor the launch of its graph
  export_run(run, path("a.json"));
  EXPECT_EQ(python(R"py(
import json, sys
ev = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
ids = [e["args"]["External id"] for e in ev if e["cat"] in ("cpu_op", "user_annotation")]
assert len(ids) == 4 and len(set(ids)) == 4 and min(ids) > 0
op = {e["args"]["External id"]: e["name"] for e in ev if e["cat"] == "cpu_op"}
for cat in ("cuda_runtime", "kernel"):
    print({e["name"]: op[e["args"]["External id"]] if "External id" in e["args"] else None for e in ev if e["cat"] == cat})
)py",
                   path("a.json")),
            "{'call before': None, 'call first': 'outer', 'call nested': 'inner', 'call graph': 'outer', 'call after': "
            "None}\n{'before': None, 'first': 'outer', 'nested': 'inner', 'after': None, 'graph': 'outer', 'marked': "
            "'inner', 'lost node': None}\n");
  // And back: a run of ours keeps the ops that it named itself.
  const Trace back = import_run(path("a.json")).trace;
  size_t named = 0;
  for (const Track& track : back.tracks())
    for (const Span& s : spans_of(track)) named += on_gpu(track) && s.op != kNoOp;
  EXPECT_EQ(named, 4u);
}

TEST_F(GraphFormats, PythonFindsEachNodeUnderItsNumber) {
  add_whole_graph(last + 50'000, 9001);
  export_run(run, path("a.json"));
  EXPECT_EQ(python(R"py(
import json, sys
ev = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "kernel"]
nodes = [e["args"] for e in ev if "graph node id" in e["args"]]
launches = {}
for a in nodes: launches.setdefault(a["correlation"], []).append((a["graph id"], a["graph node id"]))
first = launches[1]
assert all(ids == first for ids in launches.values())            # the same graph each time
assert len(set(first)) == 32 and all(n >> 32 == g for g, n in first)
assert all("graph id" not in e["args"] for e in ev if e["name"] == "evaluate")
print(len(nodes), first[0][0])
)py",
                   path("a.json")),
            "4800 6\n")
      << "after graph 5, which was recorded as a whole";
}

// Two graphs whose nodes differ are two, and parallel branches are kept apart by their streams.
TEST_F(GraphFormats, GraphsOfOtherNodesHaveOtherNumbers) {
  Trace& trace = run.trace = Trace();
  const auto a = trace.track(TrackKind::Stream, "stream 7", "GPU 0"),
             b = trace.track(TrackKind::Stream, "stream 8", "GPU 0");
  TimeNs now = 1000;
  for (uint32_t launch = 1; launch <= 6; ++launch, now += 1000)
    for (const char* name : {"gemm", launch % 2 ? "relu" : "tanh"}) {
      Span s = span_of(trace, SpanKind::Kernel, Meaning::Matrix, name, now += 10, 5);
      s.correlation = launch, s.flags = kInGraph;
      trace.append(a, s), trace.append(b, s);
    }
  export_run(run, path("a.json"));
  EXPECT_EQ(python(R"py(
import json, sys
k = [e["args"] for e in json.load(open(sys.argv[1]))["traceEvents"] if e.get("cat") == "kernel"]
print(sorted({(a["correlation"], a["graph id"]) for a in k}), len({a["graph node id"] for a in k}))
)py",
                   path("a.json")),
            "[(1, 1), (2, 2), (3, 1), (4, 2), (5, 1), (6, 2)] 8\n");
}

TEST_F(GraphFormats, NoDifferenceIsLeftBetweenARunAndItsTrace) {
  run.trace.ops.push_back({"fc1", "gemm fc1", "fc1", "forward", Meaning::Matrix, 1, 1});
  // Between two steps at no step's time, and in one step's time but of none: neither is given one on the way.
  Span lone = span_of(run.trace, SpanKind::Kernel, Meaning::Other, "set_clock", last + 9000, 500);
  lone.flags = kUnjoined;
  run.trace.append(run.trace.track(TrackKind::Stream, "stream 20", "GPU 0"), lone);
  lone.start = 1'010'000;
  run.trace.append(run.trace.track(TrackKind::Stream, "stream 20", "GPU 0"), lone);
  Span kernel = span_of(run.trace, SpanKind::Kernel, Meaning::Other, "tanh_kernel", last + 10'000, 900);
  kernel.op = 1, kernel.step = 7;
  run.trace.append(run.trace.track(TrackKind::Stream, "stream 13", "GPU 0"), kernel);
  RunSummary& s = run.summary;
  s.us_per_step = 17.25, s.steps = 2400, s.peak_bytes = 68096, s.test_loss = 0.07, s.final_accuracy = 0.978;
  s.allocator_calls_per_step = 3, s.spec = R"({"a": [1]})", s.tags = {"x"};
  s.machine = R"({"compute":"9.0"})";
  s.extra["driver_calls_per_step"] = "0.5";
  run.metrics.clear();
  for (int i = 0; i < 400; ++i)
    run.metrics.push_back({6 * i, 1e-4 * i + 1e-5 * (i * 7 % 5), 2.0 / (i + 1), i % 2 ? 0.5 : NAN});
  for (int i = 1; i <= 3; ++i) run.evaluations.push_back({800 * i, 1.0 * i, 0.01 * i, 0.1 / i, 0.9 + 0.02 * i});
  run.marks.push_back({40, 0.002, "learning rate 0.1 → 0.05"});
  run.trace.losses.unjoined_kernels = 2;
  export_run(run, path("a.wsrun"));
  for (const char* name : {"a.json", "b.json.gz"}) {
    convert(path("a.wsrun"), path(name));
    const RunData a = import_run(path("a.wsrun")), b = import_run(path(name));
    const app::ComparedRun of_a = app::compared_run(a), of_b = app::compared_run(b);
    EXPECT_EQ(to_text(compare(of_a, of_b)), to_text(compare(of_a, of_a))) << name;
    EXPECT_EQ(kinds(b.trace, false), kinds(a.trace, false));
    EXPECT_EQ(said(b.trace), said(a.trace)) << "steps";
    EXPECT_EQ(b.trace.losses.unjoined_kernels, 2u);
    EXPECT_EQ(b.summary.spec, s.spec);
    ASSERT_EQ(b.metrics.size(), 400u);
    EXPECT_EQ(b.metrics[3].step, 18);
    EXPECT_TRUE(std::isnan(b.metrics[2].accuracy));
    ASSERT_EQ(b.evaluations.size(), 3u);
    EXPECT_EQ(b.evaluations[2].step, 2400);
    EXPECT_DOUBLE_EQ(b.evaluations[2].epoch, 3);
    EXPECT_DOUBLE_EQ(b.evaluations[2].test_accuracy, run.evaluations[2].test_accuracy);
    ASSERT_EQ(b.marks.size(), 1u);
    EXPECT_EQ(b.marks[0].text, run.marks[0].text);
  }
}

// Rows that no category of Chrome's separates.
TEST_F(GraphFormats, RowsOfTheHostKeepTheirNamesAndKinds) {
  Trace& trace = run.trace = Trace();
  const auto add = [&](TrackKind row, const char* name, const char* group, SpanKind kind, const char* what,
                       int depth = 0) {
    const Span s = span_of(trace, kind, Meaning::Other, what, 1000 + 10 * depth, 500);
    trace.append(trace.track(row, name, group, depth), s);
  };
  add(TrackKind::Untraced, kUntracedTrack, "CPU", SpanKind::Overhead, "not traced");
  add(TrackKind::Overhead, "profiler", "CPU", SpanKind::Overhead, "Buffer Flush");
  add(TrackKind::Phases, "phases", "CPU", SpanKind::Phase, "forward");
  add(TrackKind::Phases, "phases", "CPU", SpanKind::Phase, "fc1", 1);
  add(TrackKind::Api, "thread 759 calls", "CPU", SpanKind::Alloc, "cudaMalloc");
  add(TrackKind::CpuThread, "thread 759", "CPU", SpanKind::Op, "gemm");
  add(TrackKind::CpuThread, "loader", "CPU", SpanKind::Other, "gather");
  add(TrackKind::Inner, "block 3", "GPU 0", SpanKind::Inner, "fc1");
  add(TrackKind::Steps, "steps", "", SpanKind::Step, "step");
  add(TrackKind::StreamWaits, "stream 13 waits", "GPU 0", SpanKind::Sync, "host waits for the stream");
  const auto rows = [](const Trace& of) {
    std::set<std::string> lines;
    for (const Track& t : of.tracks())
      lines.insert(std::to_string(int(t.kind)) + " " + t.group + " " + t.name + " " + std::to_string(t.depth) + " " +
                   std::to_string(int(spans_of(t).at(0).kind)) + " " + of.name(spans_of(t)[0].name));
    return lines;
  };
  export_run(run, path("a.json"));
  EXPECT_EQ(rows(import_run(path("a.json")).trace), rows(trace));
}

// A file that claims rows which its spans cannot be in is read by what its spans are.
TEST_F(GraphFormats, WrongClaimsAboutRowsChangeNothing) {
  std::ofstream(path("a.json")) << R"({"warpsight": {"steps": "many", "origin": "", "final_loss": "x"}, "traceEvents": [
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "t", "row": "steps", "group": "CPU"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "u", "row": "stream", "group": "GPU 0"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "v", "row": "no such", "group": 7}},
    {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"kind": "nothing", "meaning": "none"}},
    {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 2, "ts": 1, "dur": 1, "args": {"kind": 5, "graph id": -1}},
    {"ph": "X", "cat": "cpu_op", "name": "c", "pid": 1, "tid": 3, "ts": 1, "dur": 1},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "graph 7", "pid": 0, "tid": 3, "ts": 1, "dur": 1, "args": {"kind": "graph launch", "graph id": 7}},
    {"ph": "C", "name": "test loss", "ts": 1, "step": -9223372036854775808, "epoch": 1e308, "args": {"test loss": 3}}]})";
  const RunData back = import_run(path("a.json"));
  EXPECT_EQ(said(back.trace),
            (std::vector<std::string>{"CPU / t: a 1000+1000", "CPU / u: b 1000+1000", "CPU / v: c 1000+1000",
                                      "GPU 0 / stream 3 graphs: graph 7 1000+1000"}));
  for (const Track& track : back.trace.tracks())
    EXPECT_EQ(track.kind, track.group == "CPU" ? TrackKind::CpuThread : TrackKind::GraphLaunches);
  EXPECT_EQ(back.summary.origin, "chrome");
  EXPECT_EQ(back.evaluations.size(), 1u);
}

// PyTorch's profiler has written what it makes of each kernel of this file: ours must come to the same.
TEST_F(GraphFormats, KernelsFillTheCardAsPyTorchReports) {
  const std::string torch = WARPSIGHT_TEST_DATA "/torch_steps.json.gz";
  export_run(import_chrome(torch), path("a.json"));
  EXPECT_EQ(python(R"py(
import gzip, json, sys
ours, torch = json.load(open(sys.argv[1])), json.load(gzip.open(")py" +
                       torch + R"py("))
kernels = lambda t: {(e["args"]["correlation"], e["name"]): e["args"] for e in t["traceEvents"] if e.get("cat") == "kernel"}
a, b = kernels(ours), kernels(torch)
assert set(a) == set(b), set(a) ^ set(b)
for k in a:
    for key in ("blocks per SM", "warps per SM", "est. achieved occupancy %", "registers per thread", "shared memory", "grid", "block"):
        assert a[k][key] == b[k][key], (k, key, a[k][key], b[k][key])
card, theirs = ours["deviceProperties"][0], torch["deviceProperties"][0]
assert all(theirs[key] == card[key] for key in card), (card, theirs)
print(len(a), len(card))
)py",
                   path("a.json")),
            "60 10\n");
}

// What is not known of a card is not said of its kernels.
TEST_F(GraphFormats, AnUnknownCardFillsNothing) {
  for (const char* device : {"", "Some Card 9000", "NVIDIA H200 MIG 1g.18gb"}) {
    run.summary.device = device;
    export_run(run, path("a.json"));
    EXPECT_EQ(
        python("import json, sys\nk = [e['args'] for e in json.load(open(sys.argv[1]))['traceEvents'] if e.get('cat') "
               "== 'kernel']\nprint(sum('SM' in key or 'occ' in key for a in k for key in a))",
               path("a.json")),
        "0\n")
        << device;
  }
}

TEST_F(GraphFormats, NsightsHardwareCountersAreOurs) {
  {
    Database db(path("a.sqlite"), Database::Mode::Create);
    db.exec("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INTEGER, metricId INTEGER, metricName TEXT);"
            "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (0, 1, 'SMs Active [Throughput %]'), (0, 2, 'DRAM Write Bandwidth [Throughput %]'),"
            "(0, 3, 'Warps of another kind'), (1, 1, 'SMs Active [Throughput %]');"
            "CREATE TABLE GPU_METRICS(timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);"
            "INSERT INTO GPU_METRICS VALUES (1000, 0, 1, 82), (1000, 0, 2, 7), (1000, 0, 3, 5), (1000, 1, 1, 50), (2000, 0, 1, 83);");
  }
  const RunData back = import_run(path("a.sqlite"));
  ASSERT_EQ(back.trace.counters().size(), 2u) << "of one card, and only those that our own sampling has";
  EXPECT_EQ(back.trace.counters()[0].name, "SM active");
  EXPECT_EQ(back.trace.counters()[0].points.at(1).value, 83);
  EXPECT_EQ(back.trace.counters()[1].name, "DRAM write");
  EXPECT_EQ(back.summary.origin, "nsys");
}

}  // namespace
}  // namespace ws::prof
