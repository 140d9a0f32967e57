// Time by module, and what the host did, of a recorded program.
#include "profiling/analysis/program_tables.h"
#include "profiling/analysis/covered_time.h"
#include "profiling/analysis/launch_stacks.h"
#include "profiling/analysis/source_lines.h"

#include "profiling/analysis/flame_tree.h"
#include "profiling/analysis/trace_queries.h"
#include "profiling/analysis/waiting_threads.h"
#include "profiling/analysis/why_left_out.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/trace/code_places.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ws::prof {
namespace {

using StackTexts = std::map<std::string, int64_t>;  // "main (a.py:9);hot (a.py:3)"

StackTexts texts(const HostStacks& stacks) {
  StackTexts all;
  for (const auto& [stack, ns] : stacks) {
    std::string text;
    for (const CodeFrame& frame : stack) text += (text.empty() ? "" : ";") + frame_text(frame);
    all[text] += ns;
  }
  return all;
}

class ProgramTables : public ::testing::Test {
 protected:
  OpTag op(const char* name, const char* layer, const char* phase, const char* line = "") {
    trace.ops.push_back({name, "", layer, phase, Meaning::Other, 0, 0, stack_from_text(line)});
    return static_cast<OpTag>(trace.ops.size() - 1);
  }
  void span(TrackKind kind, const char* row, int depth, SpanKind what, TimeNs begin, TimeNs end, const char* name, OpTag tag) {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin), span.op = tag;
    span.kind = static_cast<uint64_t>(what), span.name = trace.intern(name);
    trace.append(trace.track(kind, row, kind == TrackKind::Stream ? "GPU 0" : "CPU", depth), span);
  }
  void kernel(TimeNs begin, TimeNs end, OpTag tag) {
    span(TrackKind::Stream, "stream 7", 0, SpanKind::Kernel, begin, end, "gemm", tag);
  }
  void range(int depth, TimeNs begin, TimeNs end, OpTag tag) {
    span(TrackKind::Ranges, "thread 5 ranges", depth, SpanKind::Phase, begin, end, trace.ops[tag].name.c_str(), tag);
  }
  void sample(TimeNs begin, TimeNs end, const char* stack) {
    span(TrackKind::Samples, "samples of MainThread", 0, SpanKind::Other, begin, end, stack, kNoOp);
  }
  void sample(TimeNs begin, TimeNs end, std::vector<CodeFrame> frames) {
    Span span;
    span.start = begin, span.duration = static_cast<uint64_t>(end - begin), span.kind = static_cast<uint64_t>(SpanKind::Other);
    const size_t count = frames.size();
    span.name = trace.intern(std::make_shared<CodeStack>(CodeStack{std::move(frames), count}));
    trace.append(trace.track(TrackKind::Samples, "samples of MainThread", "CPU"), span);
  }
  Trace trace;
};

TEST(CoveredTime, OverlapsCountOnce) {
  const CoveredTime time({{50, 60}, {10, 20}, {15, 30}, {12, 13}, {70, 65}});
  EXPECT_EQ(time.within({0, 100}), 30);
  EXPECT_EQ(time.within({15, 55}), 20);
  EXPECT_EQ(time.within({30, 50}), 0);
  EXPECT_EQ(time.within({59, 61}), 1);
  EXPECT_EQ(time.within({55, 20}), 0) << "a part that ends before it begins";
  EXPECT_EQ(CoveredTime().within({0, 10}), 0);
}

TEST_F(ProgramTables, FewSamplesSayHowSureTheirSharesAre) {
  const std::vector<TimeRange> whole{{-kAlways, kAlways}};
  EXPECT_EQ(few_samples_text(trace, whole), "") << "nothing was sampled";
  for (int i = 0; i < 25; ++i) sample(10 * i, 10 * i + 10, i % 2 ? "f (net.py:1)" : "g (net.py:2)");
  EXPECT_EQ(few_samples_text(trace, whole), "only 25 stacks were sampled: a share of 50 % is known to ± 20 %");
  EXPECT_EQ(few_samples_text(trace, {{5, 12}, {12, 18}}), "only 2 stacks were sampled: a share of 50 % is known to ± 69 %") << "one lies in both ranges";
  for (int i = 25; i < 100; ++i) sample(10 * i, 10 * i + 10, "f (net.py:1)");
  EXPECT_EQ(few_samples_text(trace, whole), "");
}

// A run file may claim any number of frames; the tables go inwards one by one.
TEST_F(ProgramTables, AStackOfAnyDepthIsPrinted) {
  std::string line = "net.py:1 in f", sampled = "f (net.py:1)";
  for (int i = 0; i < 100'000; ++i) line += " < lib.py:2 in g", sampled += " < g (lib.py:2)";
  kernel(0, 100, op("aten::mm", "", "", line.c_str()));
  sample(0, 100, sampled.c_str());
  EXPECT_NE(launch_text(launch_stacks(trace, TimeRange{-kAlways, kAlways})).find("aten::mm"), std::string::npos);
  EXPECT_NE(host_text(host_stacks(trace)).find("f (net.py:1)"), std::string::npos);
}

TEST_F(ProgramTables, AModuleHasTheTimeOfThoseInside) {
  const OpTag fc1 = op("aten::addmm", "encoder.0.fc1", "forward"), fc2 = op("aten::addmm", "encoder.0.fc2", "forward");
  const OpTag back = op("aten::mm", "encoder.0.fc1", "backward"), other = op("add", "head", "optimizer");
  kernel(0, 100, fc1), kernel(100, 130, fc2), kernel(200, 250, back), kernel(300, 305, other), kernel(400, 500, kNoOp);
  range(0, 0, 1000, fc1);
  range(1, 100, 400, fc2);
  const auto tree = module_tree(trace);
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[0].path, "encoder");
  EXPECT_EQ(tree[0].all.forward_ns, 130);
  EXPECT_EQ(tree[0].all.backward_ns, 50);
  EXPECT_EQ(tree[0].all.kernels, 3u);
  EXPECT_EQ(tree[0].all.host_ns, 1000) << "an inner range is not counted twice";
  EXPECT_EQ(tree[0].own.kernels, 0u);
  EXPECT_EQ(tree[1].path, "encoder.0");
  EXPECT_EQ(tree[2].name, "fc1");
  EXPECT_EQ(tree[2].depth, 2);
  EXPECT_EQ(tree[2].all.host_ns, 700);
  EXPECT_EQ(tree[4].path, "head");
  EXPECT_EQ(tree[4].all.other_ns, 5);
  EXPECT_EQ(nlohmann::json::parse(to_json(tree, {}))["modules"].size(), 5u);
  EXPECT_NE(to_text(tree, {}).find("fc1"), std::string::npos);
}

// A hook of the backward pass launches it while any module's backward runs.
TEST_F(ProgramTables, ACollectiveBelongsToNoModule) {
  const OpTag linear = op("LinearBackward", "fc1", "backward", "net.py:3 in Net.forward");
  kernel(0, 100, linear);
  Span span;
  span.start = 100, span.duration = 900, span.op = linear, span.name = trace.intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  span.meaning = static_cast<uint64_t>(Meaning::Communication);
  trace.append(trace.track(TrackKind::Stream, "stream 20", "GPU 0"), span);
  const auto tree = module_tree(trace);
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree[0].path, kCollectives);
  EXPECT_EQ(tree[0].all.other_ns, 900);
  EXPECT_EQ(tree[1].all.backward_ns, 100);
  for (const GroupBy by : {GroupBy::Op, GroupBy::Layer, GroupBy::Line}) {
    const auto rows = kernel_table(trace, -kAlways, kAlways, by);
    ASSERT_EQ(rows.size(), 2u) << to_string(by);
    EXPECT_EQ(rows[0].key, kCollectives);
  }
  const StackTexts stacks = texts(launch_stacks(trace, TimeRange{-kAlways, kAlways}));
  EXPECT_TRUE(std::ranges::any_of(stacks, [](const auto& entry) { return entry.first.starts_with("(no line);collectives;") && entry.second == 900; }));
}

// Ten steps after a warm-up step. The last step is open.
TEST_F(ProgramTables, TablesCountTheStepsThatTheSplitCounts) {
  const OpTag linear = op("aten::addmm", "fc1", "forward");
  TimeNs at = 0;
  for (int step = 0; step < 12; ++step) {
    const TimeNs length = step == 0 ? 50'000 : 1'000;
    span(TrackKind::Steps, "steps", 0, SpanKind::Step, at, at + length, "step", kNoOp);
    kernel(at + length / 10, at + length / 2, linear);
    sample(at, at + length, "main (train.py:9)");
    at += length;
  }
  const CountedSteps counted = counted_steps(StepsOfRun::of(trace).sample());
  EXPECT_EQ(counted.text, "10 of 12 steps; the first and the last are left out");
  EXPECT_EQ(why_left_out(StepsOfRun::of(trace).sample()), "Left out: the first step (warm-up) and the last step (no next step marks the end).");
  EXPECT_EQ(counted.steps, 10);
  EXPECT_EQ(module_tree(trace, counted)[0].all.forward_ns, 10 * 400);
  EXPECT_EQ(module_tree(trace, counted)[0].all.kernels, 10u);
  EXPECT_NE(to_text(module_tree(trace, counted), counted).find("mean of 10 of 12 steps"), std::string::npos);
  EXPECT_EQ(host_stacks(trace, {.ranges = counted.stretches}).begin()->second, 10'000);
  EXPECT_EQ(host_stacks(trace, {.gaps_only = true, .ranges = counted.stretches}).begin()->second, 6'000);
  EXPECT_EQ(texts(launch_stacks(trace, counted.stretches)).begin()->second, 4'000);
  EXPECT_EQ(counted_steps({}).text, "the whole trace");
}

// The root of a model has the name of its class; the paths below do not begin with it.
TEST_F(ProgramTables, TheRootOfAModelHoldsItsModules) {
  const OpTag net = op("Net", "Net", "forward"), stem = op("Linear", "stem", "forward"), body = op("Linear", "body.0", "forward");
  const OpTag other = op("Critic", "Critic", "forward");
  for (TimeNs at : {0, 10'000}) {
    range(0, at, at + 1000, net);
    range(1, at + 100, at + 300, stem);
    range(1, at + 400, at + 900, body);
    range(0, at + 2000, at + 2400, other);
  }
  range(0, 30'000, 30'100, op("backward of Linear", "stem", "backward"));
  const auto tree = module_tree(trace);
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[0].name, "Net");
  EXPECT_EQ(tree[0].all.host_ns, 2100);
  EXPECT_EQ(tree[0].own.host_ns, 600);
  EXPECT_EQ(tree[1].path, "body");
  EXPECT_EQ(tree[1].depth, 1);
  EXPECT_EQ(tree[2].path, "body.0");
  EXPECT_EQ(tree[3].path, "stem");
  EXPECT_EQ(tree[4].name, "Critic");
  EXPECT_EQ(tree[4].depth, 0);
  EXPECT_NE(to_text(tree, {}).find("stem Linear\n"), std::string::npos) << to_text(tree, {});
  EXPECT_EQ(to_text(tree, {}).find("Net Net"), std::string::npos);
}

// A process that loads data is not sampled, but it reports each batch and where it was made.
TEST_F(ProgramTables, LoaderProcessesStandBesideTheThreads) {
  sample(0, 1000, "wait (queue.py:3) < main (train.py:9)");
  span(TrackKind::Loader, "loader worker 0", 0, SpanKind::Other, 100, 700, "train.py:31 in __getitem__", kNoOp);
  span(TrackKind::Loader, "loader worker 0", 0, SpanKind::Other, 800, 900, "makes a batch", kNoOp);
  const StackTexts all = texts(host_stacks(trace));
  EXPECT_EQ(all.at("loader worker 0;__getitem__ (train.py:31)"), 600);
  EXPECT_EQ(all.at("loader worker 0;makes a batch"), 100);
  EXPECT_NE(host_text(host_stacks(trace)).find("__getitem__ (train.py:31)"), std::string::npos);
}

// Like PyTorch's backward pass: a hook opens the range of the module inside of an op, and a later op closes it.
TEST_F(ProgramTables, EachMomentOfRangesThatOverlapCountsOnce) {
  const OpTag outer = op("evaluate_function", "", "backward"), module = op("Linear", "fc", "backward"), inner = op("mm", "", "backward");
  range(0, 0, 600, outer);
  range(1, 100, 1000, module);
  range(2, 150, 400, inner), range(2, 700, 800, inner);
  std::map<std::string, int64_t> own;
  each_own_range(trace, -kAlways, kAlways, [&](const Span& span, int64_t ns) { own[trace.ops[span.op].name] += ns; });
  EXPECT_EQ(own["evaluate_function"], 100);
  EXPECT_EQ(own["mm"], 350);
  EXPECT_EQ(own["Linear"], 550);
}

TEST_F(ProgramTables, AModuleHasTheMemoryOfThoseInside) {
  const OpTag fc1 = op("aten::addmm", "encoder.fc1", "forward"), fc2 = op("aten::addmm", "encoder.fc2", "forward");
  trace.memory_sources = {"cudaMalloc", "PyTorch"};
  trace.append_memory({1, 100, 1 << 20, 1, fc1, MemoryAction::Allocate, 1});
  trace.append_memory({2, 900, 512 << 10, 1, fc2, MemoryAction::Allocate, 1});
  trace.append_memory({3, 7000, 64 << 20, 1, fc2, MemoryAction::Allocate, 0});  // of the driver: the pool that they lie in
  trace.append_memory({4, 100, 0, 1, kNoOp, MemoryAction::Free, 1});
  const auto tree = module_tree(trace);
  ASSERT_EQ(tree.size(), 3u);
  EXPECT_EQ(tree[0].all.peak_bytes, (1u << 20) + (512u << 10));
  EXPECT_EQ(tree[0].own.peak_bytes, 0u);
  EXPECT_NE(to_text(tree, {}).find("1.50 MiB  encoder"), std::string::npos) << to_text(tree, {});
  EXPECT_EQ(nlohmann::json::parse(to_json(tree, {}))["modules"][1]["peak_bytes"], 1 << 20);
}

TEST_F(ProgramTables, ATraceWithoutModulesReportsWhatToDo) {
  kernel(0, 10, kNoOp);
  EXPECT_TRUE(module_tree(trace).empty());
  EXPECT_NE(to_text(module_tree(trace), CountedSteps{}).find("--level modules"), std::string::npos);
}

TEST_F(ProgramTables, KernelsByLine) {
  const OpTag first = op("aten::mm", "a", "forward", "net.py:3 in forward"), second = op("aten::add", "b", "forward", "net.py:3 in forward");
  kernel(0, 10, first), kernel(20, 50, second), kernel(60, 61, op("aten::mul", "", "")), kernel(70, 72, kNoOp);
  const auto rows = kernel_table(trace, -kAlways, kAlways, GroupBy::Line);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].key, "net.py:3 in forward");
  EXPECT_EQ(rows[0].time.total, 40);
  EXPECT_EQ(rows[1].key, "(no op)");
  EXPECT_EQ(rows[2].key, "(no line)");
}

TEST_F(ProgramTables, ALineThatCallsOthersHasTheirTime) {
  const OpTag first = op("aten::mm", "a", "forward", "net.py:3 in forward > /usr/lib/python3/f.py:8 in linear < train.py:9 in step");
  const OpTag second = op("aten::add", "", "forward", "net.py:4 in forward < train.py:9 in step");
  const OpTag step = op("aten::zero_", "", "", "train.py:9 in step");
  kernel(0, 10, first), kernel(20, 50, second), kernel(60, 62, step), kernel(70, 72, kNoOp);
  const auto rows = work_table(trace, -kAlways, kAlways, GroupBy::Line);
  std::map<std::string, std::pair<int64_t, int64_t>> times;
  for (const KernelRow& row : rows) times[row.key] = {row.time.total, row.with_calls};
  EXPECT_EQ(times, (std::map<std::string, std::pair<int64_t, int64_t>>{{"net.py:3 in forward", {10, 10}},
                                                                       {"net.py:4 in forward", {30, 30}},
                                                                       {"train.py:9 in step", {2, 42}},
                                                                       {"(no op)", {2, 0}}}));
  EXPECT_EQ(time_by_line(trace, {-kAlways, kAlways}, "train.py"), (std::map<int, int64_t>{{9, 42}}));
  EXPECT_EQ(time_by_line(trace, {25, 30}, "train.py"), (std::map<int, int64_t>{{9, 30}})) << "kernels that touch the range";
}

TEST_F(ProgramTables, ALineThatOnlyCallsHasARow) {
  const OpTag first = op("aten::mm", "a", "forward", "net.py:3 in forward < /usr/lib/python3/x.py:8 in call < main.py:5 in main < main.py:5 in main");
  kernel(0, 10, first);
  const auto rows = work_table(trace, -kAlways, kAlways, GroupBy::Line);
  ASSERT_EQ(rows.size(), 2u) << "Python's own lines have none";
  EXPECT_EQ(rows[1].key, "main.py:5 in main");
  EXPECT_EQ(rows[1].time.count, 0u);
  EXPECT_EQ(rows[1].with_calls, 10) << "recursion counts once";
}

TEST_F(ProgramTables, KernelsStandInTheStackThatLaunchedThem) {
  const OpTag forward = op("aten::mm", "a", "forward", "net.py:3 in Net.forward < train.py:9 in <module>");
  const OpTag backward = op("MmBackward0", "a", "backward", "net.py:3 in Net.forward < train.py:9 in <module>");
  kernel(0, 10, forward), kernel(20, 50, backward), kernel(60, 90, forward), kernel(95, 96, kNoOp);
  const HostStacks stacks = launch_stacks(trace, TimeRange{-kAlways, kAlways});
  EXPECT_EQ(texts(stacks), (StackTexts{{"<module> (train.py:9);Net.forward (net.py:3);aten::mm;gemm", 40},
                                {"<module> (train.py:9);Net.forward (net.py:3);MmBackward0;gemm", 30},
                                {"(no line);(no op);gemm", 1}}));
  const std::string text = launch_text(stacks);
  EXPECT_NE(text.find("  98.59  <module> (train.py:9)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  56.34      aten::mm\n"), std::string::npos) << text;
}

// Without a GPU the table is of the program's ranges, each without what runs inside.
TEST_F(ProgramTables, RangesOfAProgramOnTheCpu) {
  const OpTag outer = op("Net", "Net", "forward"), inner = op("aten::mm", "fc", "forward", "net.py:3 in forward");
  range(0, 0, 100, outer), range(1, 10, 40, inner), range(1, 50, 60, inner);
  const auto rows = work_table(trace, -kAlways, kAlways, GroupBy::Op);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].key, "Net");
  EXPECT_EQ(rows[0].time.total, 60);
  EXPECT_EQ(rows[1].key, "fc · aten::mm");
  EXPECT_EQ(rows[1].time.count, 2u);
  EXPECT_DOUBLE_EQ(rows[1].share, 0.4);
}

TEST_F(ProgramTables, StacksOfTheHostAndThoseWhileTheGpuWaited) {
  sample(0, 1'000'000, "hot (a.py:3) < main (a.py:9)");
  sample(1'000'000, 3'000'000, "main (a.py:9)");
  sample(3'000'000, 4'000'000, "hot (a.py:3) < main (a.py:9)");
  kernel(500'000, 2'000'000, kNoOp), kernel(1'500'000, 2'500'000, kNoOp);
  const HostStacks all = host_stacks(trace);
  EXPECT_EQ(texts(all), (StackTexts{{"MainThread;main (a.py:9)", 2'000'000}, {"MainThread;main (a.py:9);hot (a.py:3)", 2'000'000}}));
  const HostStacks gaps = host_stacks(trace, {.gaps_only = true});
  EXPECT_EQ(texts(gaps), (StackTexts{{"MainThread;main (a.py:9)", 500'000}, {"MainThread;main (a.py:9);hot (a.py:3)", 1'500'000}}));
  EXPECT_EQ(collapsed_text(all), "MainThread;main (a.py:9) 2000\nMainThread;main (a.py:9);hot (a.py:3) 2000\n");
  const std::string text = host_text(all);
  EXPECT_NE(text.find("      2.00   50.00       4.00  main (a.py:9)"), std::string::npos) << text;
  EXPECT_EQ(text.find("MainThread"), std::string::npos) << "a thread is no function";
}

// A folder may have any name.
TEST_F(ProgramTables, NoPathIsCut) {
  const std::string path = "/a < b > c;d (e:7) in f/train.py";
  sample(0, 100, {{path, 9, "main"}, {path, 3, "hot"}});
  sample(100, 150, {{path, 9, "main"}, {path, 3, "hot"}});
  const HostStacks stacks = host_stacks(trace);
  EXPECT_EQ(stacks, (HostStacks{{{{"", 0, "MainThread"}, {path, 9, "main"}, {path, 3, "hot"}}, 150}}));
  const FlameTree tree = flame_tree(stacks);
  ASSERT_EQ(tree.size(), 4u);
  EXPECT_EQ(tree[3].path, path);
  EXPECT_EQ(tree[3].lines, (std::map<int, double>{{3, 150}}));
  EXPECT_NE(host_text(stacks).find("hot (" + path + ":3)"), std::string::npos);
  const auto frames = nlohmann::json::parse(speedscope_json(stacks, "x"))["shared"]["frames"];
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[2]["file"], path);
  EXPECT_EQ(std::ranges::count(collapsed_text(stacks), ';'), 2) << "between frames only";
  Trace part;
  copy_trace(trace, {0, 100}, part);
  EXPECT_EQ(host_stacks(part).begin()->first, stacks.begin()->first);
}

TEST_F(ProgramTables, SymbolsThatTheRecorderCouldNotReadAreShort) {
  sample(0, 1'000'000, "_ZN3c1012function_refIFvPPcPKlllEE11callback_fnIZ (libtorch_cpu.so) < main (a.py:9)");
  EXPECT_EQ(texts(host_stacks(trace)), (StackTexts{{"MainThread;main (a.py:9);c10::function_ref<…> (libtorch_cpu.so)", 1'000'000}}));
}

TEST_F(ProgramTables, SpeedscopeReadsFramesOnceAndWeights) {
  const auto json = nlohmann::json::parse(speedscope_json({{{{"", 0, "T"}, {"a.py", 3, "a"}, {"", 0, "b"}}, 2000}, {{{"", 0, "T"}, {"a.py", 3, "a"}}, 1000}}, "train.py"));
  ASSERT_EQ(json["shared"]["frames"].size(), 3u);
  EXPECT_EQ(json["shared"]["frames"][1], (nlohmann::json{{"name", "a (a.py:3)"}, {"file", "a.py"}, {"line", 3}}));
  EXPECT_EQ(json["profiles"][0]["samples"].size(), 2u);
  EXPECT_EQ(json["profiles"][0]["endValue"], 3.0);
  double sum = 0;
  for (const auto& weight : json["profiles"][0]["weights"]) sum += weight.get<double>();
  EXPECT_EQ(sum, 3.0);
}

TEST_F(ProgramTables, ANameAddsNoRow) {
  const char* name = "k\n 99.00 forged\x1b[2J";
  const OpTag tag = op(name, name, "forward", name);
  span(TrackKind::Stream, "stream 7", 0, SpanKind::Kernel, 0, 10, name, tag);
  trace.memory_sources = {name};
  trace.append_memory({0, 1, 512, 1, tag, MemoryAction::Allocate, 0});
  sample(0, 10, name);
  RunData run;
  run.trace = std::move(trace);
  const HostStacks stacks = host_stacks(run.trace);
  for (const std::string& text :
       {to_text(run_stats(run)), to_text(run_stats(run, GroupBy::Line)), to_text(module_tree(run.trace), CountedSteps{}), host_text(stacks),
        collapsed_text(stacks)}) {
    EXPECT_EQ(text.find("\n 99.00"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
}

// A file may claim anything.
TEST_F(ProgramTables, APathOfAMillionDotsIsLeftOut) {
  kernel(0, 10, op("mm", std::string(1'000'000, '.').c_str(), "forward"));
  EXPECT_TRUE(module_tree(trace).empty());
}

TEST_F(ProgramTables, AFlameTreeHasTheTimeOfWhatIsCalled) {
  sample(0, 100, "hot (train.py:3) < main (train.py:9)");
  sample(100, 160, "hot (train.py:4) < main (train.py:9)");
  sample(160, 200, "read (/usr/lib/python3.11/io.py:7) < main (train.py:11)");
  const FlameTree tree = flame_tree(host_stacks(trace));
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[0].ns, 200);
  const FlameNode& main = tree[tree[tree[0].inside.at(0)].inside.at(0)];
  EXPECT_EQ(main.function, "main");
  EXPECT_EQ(main.depth, 2);
  EXPECT_EQ(main.alone, 0);
  ASSERT_EQ(main.inside.size(), 2u);
  const FlameNode& hot = tree[main.inside[0]];
  EXPECT_EQ(hot.function, "hot") << "most time first, its lines together";
  EXPECT_EQ(hot.ns, 160);
  EXPECT_EQ(hot.lines, (std::map<int, double>{{3, 100}, {4, 60}}));
  EXPECT_TRUE(is_own_path(hot.path));
  EXPECT_FALSE(is_own_path(tree[main.inside[1]].path));
  int64_t all = 0;  // one source: what the export has
  for (const auto& [stack, ns] : host_stacks(trace)) all += ns;
  EXPECT_EQ(static_cast<int64_t>(tree[0].ns), all);
}

// Own functions stand in own functions. What the innermost one calls is one frame, with a public name if there is one.
TEST_F(ProgramTables, LibrariesFoldToOneFrame) {
  const std::string modules = "/usr/lib/python3/dist-packages/torch/nn/modules", call = "_call_impl (" + modules + "/module.py:1501)";
  sample(0, 100, ("conv2d (" + modules + "/conv.py:9) < " + call + " < forward (net.py:3) < " + call + " < main (train.py:9)").c_str());
  sample(100, 130, (call + " < forward (net.py:4) < " + call + " < main (train.py:9)").c_str());
  sample(130, 140, ("get (/usr/lib/python3.10/queue.py:320) < DataLoader.__next__ (" + modules + "/loader.py:7) < main (train.py:9)").c_str());
  const HostStacks stacks = host_stacks(trace), folded = folded_libraries(stacks);
  const FlameTree tree = flame_tree(folded);
  ASSERT_EQ(tree.size(), 7u) << "root, thread, main, forward, conv2d, _call_impl, __next__";
  const FlameNode& main = tree[tree[tree[0].inside[0]].inside[0]];
  ASSERT_EQ(main.inside.size(), 2u);
  const FlameNode& forward = tree[main.inside[0]];
  EXPECT_EQ(forward.function, "forward");
  EXPECT_EQ(forward.ns, 130);
  ASSERT_EQ(forward.inside.size(), 2u);
  EXPECT_EQ(tree[forward.inside[0]].function, "conv2d");
  EXPECT_EQ(tree[forward.inside[0]].alone, 100);
  EXPECT_EQ(tree[forward.inside[1]].function, "_call_impl") << "it has no other name";
  EXPECT_EQ(tree[main.inside[1]].function, "DataLoader.__next__");
  EXPECT_EQ(tree[0].ns, flame_tree(stacks)[0].ns) << "no time is lost";
  EXPECT_EQ(folded_libraries(folded), folded);
  trace = {};
  sample(0, 100, "wait (/usr/lib/python3.10/threading.py:320) < run (/usr/lib/python3.10/threading.py:9)");
  EXPECT_EQ(folded_libraries(host_stacks(trace)), host_stacks(trace)) << "nothing would be left";
}

TEST_F(ProgramTables, NativeFramesStandInsideTheLineThatCalledThem) {
  sample(0, 100, "at::mm (libtorch_cpu.so.2) < hot (train.py:3) < main (train.py:9)");
  const FlameTree tree = flame_tree(host_stacks(trace));
  ASSERT_EQ(tree.size(), 5u);
  EXPECT_EQ(tree[4].function, "at::mm");
  EXPECT_EQ(tree[4].path, "libtorch_cpu.so.2");
  EXPECT_TRUE(tree[4].lines.empty());
  EXPECT_EQ(tree[4].alone, 100);
  EXPECT_EQ(tree[tree[4].parent].function, "hot");
  EXPECT_FALSE(is_own_path(tree[4].path));
  EXPECT_EQ(module_of_path("/home/me/train.py"), "train.py");
  EXPECT_EQ(module_of_path("/usr/lib/python3/dist-packages/torch/nn/modules/conv.py"), "torch");
  EXPECT_EQ(module_of_path("/usr/lib/python3.11/threading.py"), "python");
  EXPECT_EQ(module_of_path("/usr/lib/libtorch_cpu.so.1.13"), "libtorch_cpu");
  EXPECT_TRUE(is_own_path("trainer")) << "a program of one's own";
  EXPECT_FALSE(is_own_path("/usr/bin/python3.12")) << "the interpreter";
  EXPECT_EQ(module_of_path("/usr/bin/python3.12"), kPythonModule);
  EXPECT_TRUE(is_own_path("/home/me/python_net"));
  EXPECT_EQ(module_of_path(""), "");
  EXPECT_TRUE(is_own_path("my.software/train.py"));
}

TEST(SourceLines, APlaceIsAPathAndALine) {
  EXPECT_EQ(source_place("net.py:12 in Net.forward"), (SourcePlace{"net.py", 12}));
  EXPECT_EQ(source_place("a b/ü in x:1.py:3 in f"), (SourcePlace{"a b/ü in x:1.py", 3}));
  EXPECT_EQ(source_place("net.py:7"), (SourcePlace{"net.py", 7}));
  for (const char* none : {"", "net.py", ":3 in f", "net.py:x in f", "net.py:0 in f", "net.py:99999999999 in f"})
    EXPECT_EQ(source_place(none), std::nullopt) << none;
}

TEST(SourceLines, OnlySourceFilesAreRead) {
  EXPECT_FALSE(read_source("/", "dev/zero", 0).problem.empty());
  EXPECT_FALSE(read_source("/nowhere", "net.py", 0).problem.empty());
  const SourceFile self = read_source(WARPSIGHT_SOURCE_DIR, "CMakeLists.txt", INT64_MAX);
  EXPECT_TRUE(self.problem.empty());
  EXPECT_FALSE(self.changed);
  EXPECT_FALSE(self.lines.empty());
}

TEST_F(ProgramTables, StacksOfARangeAreCutAtItsEnds) {
  sample(0, 100, "hot (train.py:3)");
  sample(100, 200, "cold (train.py:4)");
  const HostStacks part = host_stacks(trace, {.ranges = {{50, 120}}});
  EXPECT_EQ(texts(part), (StackTexts{{"MainThread;cold (train.py:4)", 20}, {"MainThread;hot (train.py:3)", 50}}));
  EXPECT_TRUE(flame_tree(host_stacks(trace, {.ranges = {{300, 400}}})).empty());
}

TEST(FlameTree, ADifferenceIsAStep) {
  const CodeFrame main{"", 0, "main"};
  const HostStacks before{{{main, {"a.py", 1, "hot"}}, 1000}, {{main, {"a.py", 2, "gone"}}, 500}};
  const HostStacks after{{{main, {"a.py", 1, "hot"}}, 300}, {{main, {"a.py", 3, "fresh"}}, 200}};
  const FlameTree tree = flame_difference(before, 10, after, 5);
  std::map<std::string, std::pair<double, double>> times;
  for (const FlameNode& node : tree) times[node.function] = {node.before, node.ns};
  EXPECT_EQ(times["hot"], (std::pair<double, double>{100, 60}));
  EXPECT_EQ(times["gone"], (std::pair<double, double>{50, 0}));
  EXPECT_EQ(times["fresh"], (std::pair<double, double>{0, 40}));
  EXPECT_EQ(times["main"], (std::pair<double, double>{150, 100}));
}

TEST(FlameTree, ThreadsOfTwoRunsAreMatchedWithoutTheirNumbers) {
  const CodeFrame work{"a.py", 1, "work"};
  const auto run = [&](const char* number) { return HostStacks{{{{"", 0, std::string("training ") + number}, work}, 1000}}; };
  const FlameTree tree = flame_difference(run("30560"), 10, run("607"), 10);
  ASSERT_EQ(tree.size(), 3u);  // the root, one thread, one function
  EXPECT_EQ(tree[1].function, "training");
  EXPECT_EQ(tree[2].before, tree[2].ns);
}

// The main thread keeps its waits: they are the program's. Nothing of the time is lost.
TEST(WaitingThreads, WaitsOfOtherThreadsAreTakenOutByTheirInnermostFrame) {
  const std::string lib = "/usr/lib/python3.11/";
  const CodeFrame feed{"data.py", 3, "feed"};
  const auto stack = [&](const char* thread, std::vector<CodeFrame> inner) {
    FrameStack all{{"", 0, thread}, feed};
    all.insert(all.end(), inner.begin(), inner.end());
    return all;
  };
  const HostStacks waits{{stack("feeder", {{lib + "threading.py", 320, "Condition.wait"}}), 1},
                         {stack("feeder", {{lib + "threading.py", 320, "wait"}}), 2},
                         {stack("feeder", {{lib + "threading.py", 320, "Condition.wait"}, {"python3.11", 0, "acquire_timed"}}), 4},
                         {stack("pin", {{lib + "multiprocessing/connection.py", 930, "wait"}}), 8},
                         {{{{"", 0, "pool 7"}, {"libgomp.so.1", 0, "gomp_barrier"}, {"libc.so.6", 0, "__futex_abstimed_wait"}}}, 16},
                         {{{{"", 0, "pool 8"}, {"/lib/libc.so.6", 0, "poll@@GLIBC_2.2.5"}}}, 32},
                         {{{{"", 0, "pool 9"}, {"libc.so.6", 0, "sched_yield"}}}, 64}};
  const HostStacks works{{stack("MainThread", {{lib + "threading.py", 320, "Condition.wait"}}), 128},
                         {stack("feeder", {{lib + "threading.py", 90, "Thread.run"}}), 256},
                         {stack("feeder", {{"own/threading.py", 9, "wait"}}), 512},
                         {stack("feeder", {{"libc.so.6", 0, "memcpy"}}), 1024},
                         {{{{"", 0, "pool 7"}, {"libown.so", 0, "poll"}}}, 2048}};
  HostStacks all = waits;
  all.insert(works.begin(), works.end());
  const WorkingStacks found = without_waits(all);
  EXPECT_EQ(texts(found.stacks), texts(works));
  EXPECT_EQ(found.waited_ns, 127);
  EXPECT_EQ(found.waiting, 5u);
  EXPECT_EQ(waiting_text(found), "5 waiting threads, 0.1 µs");
  EXPECT_EQ(waiting_text(without_waits(works)), "");
}

}  // namespace
}  // namespace ws::prof
