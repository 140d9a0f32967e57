// Ranges that a recorded program marks itself: their names, their paths, and how they are drawn.
#include "profiling/collectors/program_ranges.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "profiling/analysis/kernel_table.h"
#include "profiling/collectors/collector.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/xla_ranges.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

ProgramRanges& ranges() { return ProgramRanges::instance(); }
OpTag line_at(const std::string& text) { return ranges().line(*stack_from_text(text)); }
OpInfo open_range() { return op_info(Marks::thread().op()); }

Trace gathered(const std::function<void(Collector&)>& work, CollectorOptions options) {
  Collector collector;
  Trace trace;
  options.program_ranges = true;
  collector.start(options);
  work(collector);
  collector.stop();
  for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) append(trace, std::move(batch));
  return trace;
}

Trace gathered(const std::function<void()>& work, TraceLevel level = TraceLevel::Full) {
  return gathered([&](Collector&) { work(); }, {.level = level});
}

// Names of drawn ranges by depth.
std::multimap<int, std::string> drawn(const Trace& trace) {
  std::multimap<int, std::string> names;
  for (const Track& track : trace.tracks())
    if (broad_kind(track.kind) == TrackKind::Phases)
      each_span(track, -kAlways, kAlways, [&](const Span& span) { names.emplace(track.depth, trace.name(span.name)); });
  return names;
}

TEST(RangeText, NumbersOfPyTorchAreCutOff) {
  EXPECT_EQ(range_text("aten::addmm, seq = 12, op_id = 7").name, "aten::addmm");
  EXPECT_EQ(range_text("aten::addmm, seq = 12, op_id = 7").sequence, 12);
  EXPECT_EQ(range_text("aten::to, op_id = 3, sizes = [[1]]").name, "aten::to");
  EXPECT_EQ(range_text("aten::to, op_id = 3").sequence, -1);
  EXPECT_EQ(range_text("x, seq = 18446744073709551615").sequence, -1) << "no number of a node";
  EXPECT_EQ(range_text("").name, "");
  EXPECT_TRUE(is_backward_function("AddmmBackward0"));
  EXPECT_TRUE(is_backward_function("torch::autograd::AccumulateGrad"));
  EXPECT_FALSE(is_backward_function("aten::convolution_backward"));
}

TEST(ProgramRanges, AnInnerRangeHasThePathOfThoseAround) {
  ranges().push("epoch 3"), ranges().push("encoder"), ranges().push("layers.0"), ranges().push("aten::linear");
  ranges().push("aten::addmm");
  EXPECT_EQ(open_range().name, "aten::addmm");
  EXPECT_EQ(open_range().layer, "encoder/layers.0") << "neither the epoch nor the op around";
  for (int i = 0; i < 5; ++i) ranges().pop();
  EXPECT_EQ(Marks::thread().op(), kNoOp);
  ranges().pop();  // one more than there are
  EXPECT_EQ(Marks::thread().op_depth, 0);
}

TEST(ProgramRanges, WhatIsMarkedOnALineHasTheLine) {
  const OpTag module = ranges().place({"Linear", "", "fc", "forward", Meaning::Other});
  Marks::thread().line = line_at("net.py:12 in Net.forward");
  EXPECT_EQ(open_range().name, "Net.forward") << "a launch outside of any range belongs to the line";
  ranges().push(module), ranges().push("aten::addmm, seq = 3");
  EXPECT_EQ(line_of(open_range()), "net.py:12 in Net.forward");
  EXPECT_EQ(open_range().layer, "fc");
  ranges().pop(), ranges().pop();
  Marks::thread().line = kNoOp;
  ranges().push(module);
  EXPECT_EQ(line_of(open_range()), "");
  ranges().pop();
  EXPECT_EQ(Marks::thread().op(), kNoOp);
}

// JAX: XLA names the compiled function and each of its operations.
TEST(ProgramRanges, WhatXlaLaunchesHasItsScopePhaseAndOperation) {
  ranges().push("model"), ranges().push("XlaModule:#prefix=jit(step)/jit(main),hlo_module=jit_step,program_id=5#");
  EXPECT_EQ(open_range().name, "jit_step");
  const auto inside = [](const char* text) {
    ranges().push(text);
    const OpInfo op = open_range();
    ranges().pop();
    return op;
  };
  const OpInfo forward = inside("Thunk:#name=jvp(Net)/Dense_0/dot_general,hlo_op=gemm_fusion_dot.4#");
  EXPECT_EQ(forward.name, "dot_general · gemm_fusion_dot.4");
  EXPECT_EQ(forward.layer, "model/Net/Dense_0");
  EXPECT_EQ(forward.phase, "forward");
  const OpInfo backward = inside("Thunk:#name=transpose(jvp(Net))/Dense_0/reduce_sum[axes=(0,) a/b],hlo_op=input_reduce,unique_hlo_op_id=12#");
  EXPECT_EQ(backward.name, "reduce_sum · input_reduce");
  EXPECT_EQ(backward.layer, "model/Net/Dense_0");
  EXPECT_EQ(backward.phase, "backward");
  EXPECT_EQ(inside("Thunk:#hlo_op=copy.7#").name, "copy.7");
  EXPECT_EQ(inside("Thunk:#name=jvp(jit(relu))/max,hlo_op=loop_fusion#").layer, "model");
  const OpInfo fused = inside("Thunk:#name=transpose(jvp(encoder)),hlo_op=gemm_fusion_dot#");
  EXPECT_EQ(fused.name, "gemm_fusion_dot") << "what the fused operations have in common";
  EXPECT_EQ(fused.layer, "model/encoder");
  EXPECT_EQ(fused.phase, "backward");
  // Named as by jaxlib 0.11 on an H100.
  EXPECT_EQ(inside("Thunk:#name=jit(step),hlo_op=gemm_fusion_dot.3,unique_hlo_op_id=77#").name, "gemm_fusion_dot.3");
  const OpInfo pass = inside("XlaPass:#name=zero_sized_hlo_elimination,module=jit_stage,program_id=0#");
  EXPECT_EQ(pass.name, "XlaPass zero_sized_hlo_elimination");
  EXPECT_EQ(pass.layer, "model");
  ranges().push("XlaCompile:#module=jit_stage#");
  EXPECT_EQ(open_range().name, "XlaCompile jit_stage");
  EXPECT_EQ(inside("XlaPass:#name=algsimp,module=jit_stage,program_id=0#").layer, "model") << "no module of the program";
  ranges().pop();
  EXPECT_EQ(inside("XlaBufferAssignment:#").name, "XlaBufferAssignment:#");
  EXPECT_EQ(inside("Thunk:#cut off").name, "Thunk:#cut off");
  EXPECT_EQ(inside("Thunk:#name=,hlo_op=#").name, "Thunk:#name=,hlo_op=#");
  ranges().pop(), ranges().pop();
}

// HLO as XLA prints it for the payload of a range.
TEST(XlaRanges, AFusedKernelIsNamedByItsProduct) {
  const std::string own = "gemm_fusion_dot.3 = f32[512,16]{1,0} fusion(p.1, p.2), kind=kCustom, calls=gemm_fusion_dot.3_computation";
  const std::string backward =
      "\ngemm_fusion_dot.3_computation {\n"
      "  parameter_0 = f32[256,512]{1,0} parameter(0)\n"
      "  tanh.1 = f32[256,512]{1,0} tanh(parameter_0), metadata={op_name=\"jit(step)/jit(main)/jvp(encoder)/tanh\" source_line=7}\n"
      "  dot.4 = f32[512,16]{1,0} dot(tanh.1, parameter_1), metadata={op_name=\"jit(step)/jit(main)/transpose(jvp(head))/dot_general\"}\n"
      "  ROOT mul.2 = f32[512,16]{1,0} multiply(dot.4, parameter_2), metadata={op_name=\"jit(step)/jit(main)/mul\"}\n}\n";
  const std::string text = xla_text_with_path("Thunk:#name=,hlo_op=gemm_fusion_dot.3#", own, backward);
  const auto range = xla_range(text);
  ASSERT_TRUE(range) << text;
  EXPECT_EQ(range->name, "dot_general · gemm_fusion_dot.3");
  EXPECT_EQ(range->scope, "head");
  EXPECT_EQ(range->phase, "backward");
  EXPECT_EQ(xla_text_with_path("Thunk:#hlo_op=gemm_fusion_dot.3#", own, backward), text);
  EXPECT_EQ(xla_text_with_path("Thunk:#name=jvp(head)/dot_general,hlo_op=dot.1#", own, backward), "") << "it says enough";
}

TEST(XlaRanges, WithoutAProductTheResultNamesAFusedKernel) {
  const auto phase_and_name = [](const std::string& called) {
    const auto range = xla_range(xla_text_with_path("Thunk:#hlo_op=loop_fusion#", "x = f32[] fusion()", called));
    return range ? range->phase + " " + range->scope + " " + range->name : std::string();
  };
  const std::string forward = "a = f32[8]{0} add(b, c), metadata={op_name=\"jit(f)/jvp(net)/add\"}\n";
  const std::string result = "ROOT m = f32[8]{0} multiply(a, b), metadata={op_name=\"jit(f)/jvp(net)/\\\"odd\\\"/mul\"}\n";
  EXPECT_EQ(phase_and_name(forward + result), "forward net/\"odd\" mul · loop_fusion");
  EXPECT_EQ(phase_and_name(forward + "n = f32[8]{0} negate(a), metadata={op_name=\"jit(f)/transpose(jvp(net))/neg\"}\n" + result),
            "backward net neg · loop_fusion") << "it can only run in the backward pass";
  EXPECT_EQ(phase_and_name("ROOT t = (f32[8]{0}) tuple(a)\n"), "");
  EXPECT_EQ(phase_and_name("x op_name=\"cut off\\"), "  cut off\\ · loop_fusion");
  EXPECT_EQ(xla_text_with_path("XlaModule:#hlo_module=jit_f#", forward, forward), "");
}

OpTag g_line_now = kNoOp;

TEST(ProgramRanges, ALaunchOutsideOfOpsHasTheLineAtWhichItIs) {
  const OpTag one = line_at("k.py:1 in f"), other = line_at("k.py:2 in f");
  ranges().find_lines([] { return g_line_now; });
  const auto launched = [] { return op_info(ranges().op_at_launch(Marks::thread())); };
  g_line_now = one;
  EXPECT_EQ(line_of(launched()), "k.py:1 in f") << "in no range";
  ranges().push("fused kernel");
  g_line_now = other;
  EXPECT_EQ(launched().name, "fused kernel");
  EXPECT_EQ(line_of(launched()), "k.py:2 in f");
  ranges().push_op("aten::mul", -1, 3);
  g_line_now = one;
  EXPECT_EQ(line_of(launched()), "k.py:2 in f") << "an op keeps the line at which it began";
  ranges().pop(3);
  g_line_now = kNoOp;
  EXPECT_EQ(launched().name, "fused kernel") << "a thread without Python";
  ranges().pop();
  EXPECT_EQ(Marks::thread().op(), kNoOp);
  ranges().find_lines(nullptr);
}

// torch.compile: the code that it generated is no code of the program. Its kernel gets the ops that it was made from.
TEST(ProgramRanges, ALaunchOfAGeneratedKernelHasItsSourceOps) {
  ranges().find_lines([] { return g_line_now; });
  const auto launched = [] { return op_info(ranges().op_at_launch(Marks::thread())); };
  g_line_now = ranges().generated("aten.relu + aten.add", *stack_from_text("k.py:9 in step > /tmp/g.py:40 in call"));
  EXPECT_EQ(launched().name, "aten.relu + aten.add");
  const OpTag module = ranges().place({"Net", "", "net", "forward", Meaning::Other});
  ranges().push(module);
  EXPECT_EQ(launched().name, "aten.relu + aten.add");
  EXPECT_EQ(launched().layer, "net");
  EXPECT_EQ(line_of(launched()), "k.py:9 in step");
  ranges().pop();
  Marks::thread().line = line_at("k.py:9 in step");
  ranges().push_op("aten::addmm", 77, 3), ranges().pop(3);
  Marks::thread().line = kNoOp;
  g_line_now = ranges().generated("aten.mul", {});  // on a thread of autograd: no line of the program
  ranges().push_op("CompiledFunctionBackward", 77, 3);
  EXPECT_EQ(launched().name, "aten.mul");
  EXPECT_EQ(launched().phase, "backward");
  EXPECT_NE(line_of(launched()), "") << "that of the forward pass";
  ranges().pop(3);
  g_line_now = kNoOp;
  ranges().find_lines(nullptr);
}

// Runs a test that uses up what a process has, such as its tags, in a process of its own.
void in_own_process(const std::function<void()>& test) {
  EXPECT_EXIT(
      {
        test();
        _exit(testing::Test::HasFailure());
      },
      testing::ExitedWithCode(0), "");
}

void stacks_take_a_limited_amount_of_memory() {
  const std::string deep(8192, 'x');
  size_t whole = 0, cut = 0;
  for (int i = 0; i < 3000; ++i) {
    const OpTag tag = line_at("bound.py:" + std::to_string(i) + " in f < " + deep);
    ASSERT_EQ(line_of(op_info(tag)), "bound.py:" + std::to_string(i) + " in f");
    ++(stack_of(op_info(tag)).size() > 1 ? whole : cut);
  }
  EXPECT_GT(whole, 1000u);
  EXPECT_GT(cut, 500u);
}

// Without a bound, a program with very many deep stacks would fill the memory.
TEST(ProgramRanges, StacksTakeALimitedAmountOfMemory) { in_own_process(stacks_take_a_limited_amount_of_memory); }

TEST(CodePlaces, AStackHasItsCallersAndWhatTheLineCalls) {
  OpInfo op;
  op.stack = stack_from_text("net.py:12 in Net.forward > lib.py:7 in act > lib.py:9 in <lambda> < train.py:40 in step < train.py:60 in <module>");
  EXPECT_EQ(line_of(op), "net.py:12 in Net.forward");
  EXPECT_EQ(stack_of(op), (std::vector<CodeFrame>{{"train.py", 60, "<module>"}, {"train.py", 40, "step"}, {"net.py", 12, "Net.forward"},
                                                  {"lib.py", 7, "act"}, {"lib.py", 9, "<lambda>"}}));
  op.stack = stack_from_text("net.py:12 in Net.forward");
  EXPECT_EQ(stack_of(op).size(), 1u);
  op.stack = nullptr;
  EXPECT_TRUE(stack_of(op).empty());
  EXPECT_EQ(line_of(op), "");
}

// Paths may have any characters, and functions of C++ have parentheses.
TEST(CodePlaces, TextsOfFramesAreReadBack) {
  for (const CodeFrame& frame : {CodeFrame{"/a > b < c/my (old) net.py", 12, "Net.<locals>.<lambda>"},
                                 CodeFrame{"libtorch_cuda.so", 0, "at::(anonymous namespace)::gelu"},
                                 CodeFrame{"libtorch.so", 0, "void f<(Kind)1>(int)"}, CodeFrame{"net.py", 3, ""}}) {
    EXPECT_EQ(frame_from(place_text(frame)), frame) << place_text(frame);
    const CodeFrame back = frame_from_text(frame_text(frame));
    EXPECT_TRUE(back == frame || frame.function.empty()) << frame_text(frame);
  }
}

// A file may claim any number: a table of them takes a step inwards for each.
TEST(CodePlaces, AStackHasALimitedNumberOfFrames) {
  for (const std::string_view between : {" > ", " < "}) {
    std::string text = "net.py:1 in f";
    for (int i = 0; i < 100'000; ++i) text.append(between).append("lib.py:2 in g");
    const auto stack = stack_from_text(text);
    EXPECT_EQ(stack->frames.size(), kMostStackFrames);
    EXPECT_EQ(place_text(stack->frames[stack->own]), "net.py:1 in f") << "the innermost ones are kept";
    EXPECT_EQ(stack->own, between == " > " ? 0 : kMostStackFrames - 1);
  }
}

uint64_t g_next_number = 0;

// What autograd numbered inside a module is of it; the backward pass goes from one module to the next, and ends.
TEST(ProgramRanges, BackwardRangesComeFromTheModulesThatMadeTheirNumbers) {
  const OpTag a = ranges().place({"A", "", "a", "forward", Meaning::Other});
  const OpTag b = ranges().place({"B", "", "b", "forward", Meaning::Other});
  ranges().follow_sequence([] { return g_next_number; });
  g_next_number = 1000;
  const Trace trace = gathered([&] {
    ranges().enter(a, 1), g_next_number += 3;
    ranges().enter(b, 1), g_next_number += 2;
    ranges().leave(1), g_next_number += 1;
    ranges().leave(1);
    for (int64_t number = 1005; number >= 1000; --number) ranges().backward_reaches(number);
    ranges().end_backward();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  ranges().follow_sequence(nullptr);
  std::map<std::string, int> counts;
  std::map<std::string, uint64_t> longest;
  for (const Track& track : trace.tracks())
    if (broad_kind(track.kind) == TrackKind::Phases)
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        if (trace.ops[span.op].phase != "backward") return;
        ++counts[trace.ops[span.op].layer];
        auto& most = longest[trace.name(span.name)];
        most = std::max<uint64_t>(most, span.duration);
      });
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 2}, {"b", 1}})) << "a, b, and a again";
  EXPECT_LT(longest["A"], 15'000'000u) << "it ended with backward, not with the next step";
}

TEST(ProgramRanges, StepsOfTheProgramAreRangesOnARowOfTheirOwn) {
  const Trace trace = gathered([] {
    for (int step = -1; step < 3; ++step) ranges().step(step);
  });
  std::vector<std::string> names;
  for (const Track& track : trace.tracks())
    if (track.name == "steps of the program")
      each_span(track, -kAlways, kAlways, [&](const Span& span) { names.push_back(trace.name(span.name)); });
  EXPECT_EQ(names, (std::vector<std::string>{"step 0", "step 1", "step 2"}));
}

TEST(ProgramRanges, AStepDoesNotReachFromOneRecordingIntoTheNext) {
  gathered([] { ranges().step(0); ranges().step(1); });
  EXPECT_EQ(gathered([] { ranges().step(2); }).span_count(), 0u);
}

TEST(ProgramRanges, WhatPyTorchNamesAroundItsOpsIsNoModule) {
  ranges().push("Optimizer.step#SGD.step"), ranges().push("aten::add_");
  EXPECT_EQ(open_range().layer, "");
  ranges().pop(), ranges().pop();
}

TEST(ProgramRanges, ManyNumbersOfOneTextAreOneRange) {
  std::set<OpTag> tags;
  for (int i = 0; i < 5000; ++i) tags.insert(ranges().inside("request " + std::to_string(i), kNoOp));
  EXPECT_LE(tags.size(), 65u);
  EXPECT_GE(tags.size(), 64u) << "the first few are told apart";
  EXPECT_EQ(op_info(ranges().inside("request 123456", kNoOp)).name, "request #");
}

TEST(ProgramRanges, DomainsMayCloseInAnotherOrder) {
  ranges().push("ours"), ranges().push("theirs", 7);
  ranges().pop(0);
  EXPECT_EQ(open_range().name, "theirs");
  ranges().pop(7);
  EXPECT_EQ(Marks::thread().op_depth, 0);
}

TEST(ProgramRanges, DeepNestingKeepsTheDeepestThatFits) {
  constexpr int kDeep = 5000;
  for (int i = 0; i < kDeep; ++i) ranges().push("recursion");
  EXPECT_EQ(open_range().name, "recursion");
  for (int i = 0; i < kDeep; ++i) ranges().pop();
  EXPECT_EQ(Marks::thread().op_depth, 0);
}

TEST(ProgramRanges, TheyAreDrawnOnRowsOfTheirThread) {
  const Trace trace = gathered([] {
    for (int i = 0; i < 3; ++i) {
      ranges().push("forward"), ranges().push("aten::mm, seq = 1");
      ranges().pop(), ranges().pop();
    }
    const uint64_t open = ranges().start("download");
    std::thread([open] { ranges().end(open); }).join();
    ranges().end(open);  // twice
  });
  const auto names = drawn(trace);
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(std::count(names.begin(), names.end(), std::pair<const int, std::string>(0, "forward")), 3);
  EXPECT_EQ(std::count(names.begin(), names.end(), std::pair<const int, std::string>(1, "aten::mm")), 3);
  EXPECT_EQ(std::count(names.begin(), names.end(), std::pair<const int, std::string>(0, "download")), 1);
}

TEST(ProgramRanges, NothingIsDrawnWhileNobodyRecords) {
  ranges().push("before");
  const Trace trace = gathered([] { ranges().pop(); });
  EXPECT_TRUE(drawn(trace).empty()) << "its begin was not timed";
  ranges().push("after"), ranges().pop();
  EXPECT_TRUE(drawn(gathered([] {})).empty());
}

void very_many_places_fall_back_to_text_without_numbers() {
  OpTag last = kNoOp;
  for (int i = 0; i < 100'000; ++i) {
    last = ranges().place({"Linear", "", "blocks." + std::to_string(i) + ".fc", "forward", Meaning::Other});
    ASSERT_NE(last, kNoOp) << i;
  }
  EXPECT_EQ(op_info(last).layer, "blocks.#.fc");
  EXPECT_EQ(op_info(last).name, "Linear");
}

// 100,000 modules: the trace has 65,534 ops at most.
TEST(ProgramRanges, VeryManyPlacesFallBackToTextWithoutNumbers) {
  in_own_process(very_many_places_fall_back_to_text_without_numbers);
}

// Lines differ, so their tags do; the table by op has one row for all calls of an op in one module.
TEST(ProgramRanges, TheTableByOpJoinsTheLinesOfAnOp) {
  Trace trace;
  const TrackId stream = trace.track(TrackKind::Stream, "stream 7", "GPU 0");
  for (int line = 1; line <= 3; ++line) {
    trace.ops.push_back({"aten::mm", "", "fc", "forward", Meaning::Other, 0, 0, stack_from_text("train.py:" + std::to_string(line) + " in f")});
    Span span;
    span.start = line * 100, span.duration = 10, span.op = static_cast<OpTag>(line);
    span.name = trace.intern("gemm");
    trace.append(stream, span);
  }
  const auto rows = kernel_table(trace, -kAlways, kAlways, GroupBy::Op);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, "fc · aten::mm");
  EXPECT_EQ(rows[0].time.count, 3u);
}

// Time is in steps of some ms, so that a gap is seen.
void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }

void marked_step(int64_t number) {
  ranges().enter("work", 1, kNoOp), nap(), ranges().leave(1);
  ranges().step(number);
}

std::vector<Span> spans_on(const Trace& trace, const std::function<bool(const Track&)>& wanted) {
  std::vector<Span> spans;
  for (const Track& track : trace.tracks())
    if (wanted(track)) each_span(track, -kAlways, kAlways, [&](const Span& span) { spans.push_back(span); });
  return spans;
}

TEST(CaptureRanges, OnlyWhatIsInsideIsRecorded) {
  int64_t number = 0;
  const auto steps = [&number](int count) {
    for (int i = 0; i < count; ++i) marked_step(number++);
  };
  uint64_t captures = 0;
  const Trace trace = gathered(
      [&](Collector& collector) {
        ranges().step(-1), steps(3);
        EXPECT_EQ(ranges().start("unheard"), 0u);
        collector.capture(true), collector.capture(true);
        steps(2);
        ranges().enter("cut", 1, kNoOp), nap();
        collector.capture(false);
        nap(), ranges().leave(1);
        steps(4);
        ranges().enter("around", 1, kNoOp);
        collector.capture(true);
        steps(1);
        ranges().leave(1);  // began outside
        steps(1);
        collector.capture(false), collector.capture(false);
        steps(1);
        captures = collector.status().captures;
      },
      {.level = TraceLevel::Full, .captures = true});
  EXPECT_EQ(captures, 2u);
  std::map<std::string, int> names;
  for (const auto& [depth, name] : drawn(trace)) ++names[name];
  EXPECT_EQ(names, (std::map<std::string, int>{{"work", 4}, {"cut", 1}, {"step 3", 1}, {"step 4", 1}, {"step 9", 1}, {"step 10", 1}}));
  const auto gaps = spans_on(trace, [](const Track& track) { return untraced(track); });
  ASSERT_EQ(gaps.size(), 1u) << "neither before the first range nor after the last one";
  EXPECT_GT(gaps[0].duration, 5u * 3'000'000);
  for (const Span& span : spans_on(trace, [](const Track& track) { return broad_kind(track.kind) == TrackKind::Phases; }))
    EXPECT_TRUE(span.end() <= gaps[0].start || span.start >= gaps[0].end()) << trace.name(span.name);
}

TEST(CaptureRanges, ARangeOfAnotherThreadEndsWithTheCapture) {
  const Trace trace = gathered(
      [&](Collector& collector) {
        std::atomic<int> stage{0};
        const auto reach = [&stage](int next) { stage = next; stage.notify_all(); };
        const auto await = [&stage](int wanted) {
          for (int now = stage; now < wanted; now = stage) stage.wait(now);
        };
        std::thread other([&] {
          await(1), ranges().push("open for long"), reach(2);
          await(3), ranges().pop(), ranges().push("in the second"), ranges().pop(), reach(4);
        });
        collector.capture(true), reach(1), await(2), nap();
        collector.capture(false), nap();
        collector.capture(true), reach(3), await(4);
        collector.capture(false);
        other.join();
      },
      {.level = TraceLevel::Full, .captures = true});
  const auto gaps = spans_on(trace, [](const Track& track) { return untraced(track); });
  ASSERT_EQ(gaps.size(), 1u);
  TimeNs ended = 0;
  for (const Span& span : spans_on(trace, [](const Track& track) { return broad_kind(track.kind) == TrackKind::Phases; }))
    if (trace.name(span.name) == "open for long") ended = span.end();
  EXPECT_EQ(ended, gaps[0].start);
  EXPECT_EQ(drawn(trace).count(0), 2u);
}

// What is freed between two ranges is not recorded.
TEST(CaptureRanges, BlocksEndWithTheirRange) {
  const auto note = [](MemoryAction action, uint64_t address) { Marks::instance().memory({action, address, 64, kNoOp, "PyTorch"}); };
  const Trace trace = gathered(
      [&](Collector& collector) {
        collector.capture(true);
        note(MemoryAction::Allocate, 1), note(MemoryAction::Allocate, 2), note(MemoryAction::Free, 2);
        nap(), collector.capture(false), nap();
        collector.capture(true), note(MemoryAction::Allocate, 1), nap(), collector.capture(false);
      },
      {.level = TraceLevel::Full, .captures = true});
  std::vector<std::pair<MemoryAction, uint64_t>> seen;
  for (const MemoryEvent& event : trace.memory()) seen.emplace_back(event.kind, event.address);
  using enum MemoryAction;
  EXPECT_EQ(seen, (decltype(seen){{Allocate, 1}, {Allocate, 2}, {Free, 2}, {Free, 1}, {Allocate, 1}, {Free, 1}}));
}

TEST(CaptureRanges, WithoutTheOptionEverythingIsRecorded) {
  const Trace trace = gathered(
      [](Collector& collector) {
        ranges().step(-1), marked_step(0);
        collector.capture(true), marked_step(1), collector.capture(false);
        marked_step(2);
      },
      {.level = TraceLevel::Full});
  EXPECT_EQ(spans_on(trace, [](const Track& track) { return track.name == kProgramSteps; }).size(), 3u);
  EXPECT_TRUE(spans_on(trace, [](const Track& track) { return untraced(track); }).empty());
}

}  // namespace
}  // namespace ws::prof
