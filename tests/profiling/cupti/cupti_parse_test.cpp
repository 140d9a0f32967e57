// Records become spans; damaged, unordered, unknown and late ones are handled and counted. No GPU is needed.
#include "profiling/cupti/cupti_parse.h"
#include "profiling/collectors/marks.h"
#include "profiling/collectors/program_ranges.h"
#include "profiling/collectors/stamp_spans.h"
#include "profiling/cupti/late_calls.h"
#include "profiling/recording/live_link.h"
#include "tests/support/recorded_here.h"
#include "profiling/trace/kernel_names.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/profiling/cupti/fake_records.h"
#include "profiling/trace/code_places.h"
#include "profiling/trace/span_walk.h"
#include "profiling/trace/track_names.h"

namespace ws::prof {
namespace {

using testing::FakeRecords;

struct Parsed : ::testing::Test {
  TraceContext context;
  RecordParser parser{context};
  FakeRecords records;

  Trace finish() {
    parser.parse(records.data(), records.size(), FakeRecords::next);
    parser.retry_waiting(true);
    Trace trace;
    append(trace, context.batch.finish());
    return trace;
  }
  static std::vector<Span> spans(const Trace& trace, TrackKind kind) {
    std::vector<Span> all;
    for (const Track& track : trace.tracks()) {
      if (track.kind != kind) continue;
      for (const SpanBlock& block : track.blocks) all.insert(all.end(), block.spans.begin(), block.spans.end());
    }
    return all;
  }
};

TEST_F(Parsed, KernelsKeepNameTimesAndLaunchConfiguration) {
  context.origin = 1000;
  context.gpu_clock.offset = 500;
  records.kernel("_Z9my_kernelPfi", 2500, 2800, 3).dynamicSharedMemory = 1024;
  const Trace trace = finish();
  const auto kernels = spans(trace, TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(trace.name(kernels[0].name), "my_kernel(float*, int)");
  EXPECT_EQ(kernels[0].start, 1000);
  EXPECT_EQ(kernels[0].duration, 300u);
  EXPECT_EQ(kernels[0].correlation, 3u);
  EXPECT_EQ(trace.detail(kernels[0].detail).dynamic_shared, 1024);
  EXPECT_EQ(trace.detail(kernels[0].detail).block[0], 128);
  EXPECT_EQ(trace.tracks()[0].name, "stream 7");
  EXPECT_EQ(trace.tracks()[0].group, "GPU 0");
}

// What ran between windows by the clock is recorded all the same, and nobody asked for it.
TEST_F(Parsed, WhatRanBetweenWindowsIsLeftOut) {
  context.origin = 1000;
  context.gpu_clock.offset = 500;
  context.gaps.clock.close(5000);
  context.gaps.clock.open(9000);
  const auto at = [](uint64_t steady) { return steady + 500; };
  records.kernel("in the first", at(4000), at(4900), 1);
  records.kernel("begun in it", at(4950), at(6000), 2);
  records.kernel("between", at(5000), at(5900), 3);
  records.kernel("begun between", at(8900), at(9900), 4);
  records.kernel("in the second", at(9000), at(9100), 5);
  records.graph_run(at(6000), at(7000));
  records.graph_run(at(9500), at(9600));
  const Trace trace = finish();
  std::vector<std::string> names;
  for (const Span& kernel : spans(trace, TrackKind::Stream)) names.push_back(trace.name(kernel.name));
  EXPECT_EQ(names, (std::vector<std::string>{"in the first", "begun in it", "in the second"}));
  EXPECT_EQ(spans(trace, TrackKind::GraphLaunches).size(), 1u);
  EXPECT_EQ(trace.losses.invalid_records + trace.losses.dropped_records, 0u) << "not lost, left out";
}

// The driver gives kernels of a graph that were on their way at a switch the ends of the graph's next run.
TEST_F(Parsed, GraphKernelsThatASwitchCutOffAreLeftOut) {
  const uint32_t before = 0xfffffff0, after = 5;  // numbers of launches go round
  parser.cut({.time = 2000, .launch = before});
  records.kernel("whole", 1000, 1900, before, 11);
  records.kernel("running", 1950, 9000, before, 12);
  records.kernel("queued", 2100, 9500, before, 13);
  records.kernel("eager", 1950, 2200, before);
  records.kernel("next window", 8000, 8500, after, 11);
  records.kernel("much later", 80'000'000'000, 80'000'000'500, 0xf0000000, 11);
  const Trace trace = finish();
  std::vector<std::string> names;
  for (const Span& span : spans(trace, TrackKind::Stream)) names.push_back(trace.name(span.name));
  EXPECT_EQ(names, (std::vector<std::string>{"whole", "eager", "next window", "much later"}));
  EXPECT_EQ(trace.losses.dropped_records, 0u) << "nothing was to be recorded any more";
}

TEST_F(Parsed, GraphKernelsCutOffInTheMiddleAreCountedAsLost) {
  parser.cut({.time = 2000, .launch = 7, .counts = true});
  records.kernel("running", 1950, 9000, 7, 12);
  records.kernel("later", 3000, 3100, 8, 12);
  const Trace trace = finish();
  EXPECT_EQ(spans(trace, TrackKind::Stream).size(), 1u);
  EXPECT_EQ(trace.losses.dropped_records, 1u);
}

// A kernel of many steps: its stamps come after its record, and are drawn inside of it.
TEST_F(Parsed, StampsAreDrawnInsideTheirKernel) {
  const OpTag parts = register_ops({{"forward", "", "fc1", "forward", Meaning::Matrix, 0, 0},
                                    {"wait", "for the others", "", "", Meaning::Sync, 0, 0}});
  const OpTag steps = register_ops({{"steps", "", "", "update", Meaning::Matrix, 0, 0}});
  StampBoard::instance().announce();
  context.expects_ops = true;
  context.join.launched(3, {steps, 8});
  records.kernel("ws_train", 50'000, 60'000, 3);
  records.kernel("late", 70'000, 80'000, 4);
  parser.parse(records.data(), records.size(), FakeRecords::next);
  context.join.launched(4, {steps, 24});  // what explains a record may come behind it
  parser.retry_waiting(false);
  StampSpans inner{context};
  StampedLaunch first{steps, 8, {{900, 8, parts, 0}, {1900, 8, static_cast<OpTag>(parts + 1), 0}, {2900, 0, kNoOp, 0}}, {{"SM 007"}}};
  StampedLaunch second = first;
  second.first_step = 24;
  first.begin = second.begin = 400, first.end = second.end = 10'200;
  inner.draw({first, second}, false);
  const Trace trace = finish();
  const auto spans_inside = spans(trace, TrackKind::Inner);
  ASSERT_EQ(spans_inside.size(), 4u);
  EXPECT_EQ(trace.name(spans_inside[0].name), "forward");
  EXPECT_EQ(spans_inside[0].start, 50'600);  // 500 after a beginning that lies 100 after the record's
  EXPECT_EQ(spans_inside[0].duration, 1000u);
  EXPECT_EQ(spans_inside[1].meaning, static_cast<uint64_t>(Meaning::Sync));
  EXPECT_EQ(spans_inside[2].start, 70'600);
  for (const Track& track : trace.tracks())
    EXPECT_TRUE(track.kind != TrackKind::Inner || track.name == "SM 007") << track.name;
}

TEST_F(Parsed, UnorderedRecordsAreSortedByStart) {
  for (uint64_t start : {500, 100, 900, 300, 700}) records.kernel("k", start, start + 50, 1);
  const auto kernels = spans(finish(), TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 5u);
  EXPECT_TRUE(std::ranges::is_sorted(kernels, {}, &Span::start));
}

TEST_F(Parsed, OverlappingKernelsOfAStreamTakeAFurtherRow) {
  records.kernel("a", 100, 300, 1);
  records.kernel("b", 200, 400, 2);
  records.kernel("c", 310, 500, 3);
  const Trace trace = finish();
  ASSERT_EQ(trace.tracks().size(), 2u);
  EXPECT_EQ(trace.tracks()[0].spans, 2u);
  EXPECT_EQ(trace.tracks()[1].depth, 1);
  EXPECT_EQ(trace.tracks()[1].spans, 1u);
}

// The communication is the first to begin, and moves nevertheless.
TEST_F(Parsed, CommunicationGivesWayToComputation) {
  records.kernel("ncclDevKernel_AllReduce", 10, 20, 1);
  records.kernel("ncclDevKernel_AllReduce", 100, 900, 2);
  for (uint64_t start : {150, 300, 450, 950}) records.kernel("gemm", start, start + 100, 3);
  records.kernel("ncclDevKernel_AllReduce", 1060, 1070, 4);
  records.kernel("ncclDevKernel_AllReduce", 1065, 1080, 5);
  const Trace trace = finish();
  ASSERT_EQ(trace.tracks().size(), 2u);
  std::vector<std::vector<TimeNs>> starts(2);
  for (const Track& track : trace.tracks())
    each_span(track, -kAlways, kAlways, [&](const Span& span) { starts[track.depth].push_back(span.start); });
  const TimeNs origin = starts[0].front() - 10;
  for (auto& row : starts)
    for (TimeNs& start : row) start -= origin;
  EXPECT_THAT(starts[0], ::testing::ElementsAre(10, 150, 300, 450, 950, 1060));
  EXPECT_THAT(starts[1], ::testing::ElementsAre(100, 1065));
}

// The driver gives each branch a stream of its own, here 50, 51 and so on.
TEST_F(Parsed, BranchesOfAGraphAreDrawnWithItsFirstKernel) {
  const auto kernel = [this](uint32_t stream, uint64_t start, uint64_t end, uint32_t correlation, uint64_t node) {
    records.kernel("k", start, end, correlation, node).streamId = stream;
  };
  kernel(50, 100, 200, 30, 71), kernel(51, 150, 250, 30, 72), kernel(52, 210, 300, 30, 73);
  kernel(53, 400, 500, 31, 74);  // another launch
  kernel(9, 600, 700, 32, 0);    // not in a graph
  auto& copy = records.add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.start = 310, copy.end = 320, copy.streamId = 54, copy.correlationId = 30, copy.graphNodeId = 75;
  const Trace trace = finish();
  std::vector<std::string> rows;
  for (const Track& track : trace.tracks())
    rows.push_back(track.name + " " + std::to_string(track.depth) + ": " + std::to_string(track.spans));
  EXPECT_THAT(rows, ::testing::UnorderedElementsAre("stream 50 0: 2", "stream 50 1: 1", "stream 53 0: 1", "stream 9 0: 1",
                                                  "stream 50 copies 0: 1"));
}

TEST_F(Parsed, RecordsWithoutSensibleTimesAreCountedNotDrawn) {
  records.kernel("zero", 0, 0, 1);
  records.kernel("running", 100, 0, 2);
  records.kernel("backwards", 300, 200, 3);
  records.kernel("good", 300, 400, 4);
  const Trace trace = finish();
  EXPECT_EQ(trace.losses.invalid_records, 3u);
  EXPECT_EQ(trace.span_count(), 1u);
}

TEST_F(Parsed, KindsThatAreNotDrawnAreSkipped) {
  records.add<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  records.kernel("k", 100, 200, 1);
  const Trace trace = finish();
  EXPECT_EQ(trace.span_count(), 1u);
  EXPECT_EQ(trace.losses.invalid_records, 0u);
}

TEST_F(Parsed, ATruncatedBufferGivesWhatCameBefore) {
  records.kernel("a", 100, 200, 1);
  records.kernel("b", 300, 400, 2);
  parser.parse(records.data(), records.size() - 8, FakeRecords::next);
  Trace trace;
  append(trace, context.batch.finish());
  EXPECT_EQ(trace.span_count(), 1u);
  EXPECT_EQ(trace.losses.invalid_records, 1u);
}

TEST_F(Parsed, WaitsStandWithTheStreamThatWasWaitedFor) {
  records.kernel("k", 100, 200, 1).contextId = 5;
  records.kernel("k", 100, 200, 2).deviceId = 1;
  auto& sync = records.add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  sync.start = 300, sync.end = 900, sync.contextId = 5, sync.streamId = 7, sync.correlationId = 44;
  auto& event = records.add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  event.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  event.start = 1000, event.end = 1010, event.contextId = 5, event.streamId = 8;
  auto& device = records.add<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  device.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  device.start = 2000, device.end = 2500, device.contextId = 5, device.streamId = 0xffffffff;
  const Trace trace = finish();
  std::map<std::string, std::string> waits;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::StreamWaits) continue;
    const Span& span = track.blocks[0].spans[0];
    EXPECT_EQ(span.span_kind(), SpanKind::Sync);
    waits[track.group + ", " + track.name] = trace.name(span.name);
  }
  EXPECT_EQ(waits, (std::map<std::string, std::string>{{"GPU 0, stream 7 waits", "host waits for the stream"},
                                                       {"GPU 0, stream 8 waits", "stream waits for an event"},
                                                       {"GPU 0, waits", "host waits for the device"}}));
}

TEST_F(Parsed, GarbageEndsTheBufferWithoutHarm) {
  records.kernel("a", 100, 200, 1);
  records.add<CUpti_ActivityMemset4>(static_cast<CUpti_ActivityKind>(0x5a5a5a));
  records.kernel("b", 300, 400, 2);
  const Trace trace = finish();
  EXPECT_EQ(trace.span_count(), 1u);
  EXPECT_EQ(trace.losses.invalid_records, 1u);
}

TEST_F(Parsed, AKernelIsWhatItsOpIsOrElseWhatItsNameMeans) {
  const OpTag tries = register_ops({{"try algorithms", "", "", "", Meaning::Other}});
  const OpTag loss = register_ops({{"output layer", "", "", "", Meaning::Loss}});
  context.join.launched(11, {tries, 0});
  context.join.launched(12, {loss, 0});
  for (const uint32_t call : {11u, 12u}) records.kernel("sm90_xmma_gemm_f32", 100 * call, 100 * call + 50, call);
  const auto kernels = spans(finish(), TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].span_meaning(), Meaning::Matrix);
  EXPECT_EQ(kernels[1].span_meaning(), Meaning::Loss);
}

TEST_F(Parsed, KernelsWaitForTheirOpAndAreJoinedWhenItComes) {
  const OpTag op = register_ops({{"gemm", "", "fc1", "forward", Meaning::Matrix}});
  context.expects_ops = true;
  records.kernel("k", 100, 200, 11);
  parser.parse(records.data(), records.size(), FakeRecords::next);
  EXPECT_TRUE(context.batch.finish().tracks.empty());  // it waits, and its name survives the batch
  context.join.launched(11, {op, 5});
  parser.retry_waiting(false);
  Trace trace;
  append(trace, context.batch.finish());
  const auto kernels = spans(trace, TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].op, op);
  EXPECT_EQ(kernels[0].step, 5u);
  EXPECT_EQ(kernels[0].span_meaning(), Meaning::Matrix);
  EXPECT_EQ(trace.name(kernels[0].name), "k");
  EXPECT_EQ(trace.losses.unjoined_kernels, 0u);
}

TEST_F(Parsed, KernelsThatNobodyExplainsAreShownAsUnjoined) {
  context.expects_ops = true;
  records.kernel("k", 100, 200, 11);
  const Trace trace = finish();
  const auto kernels = spans(trace, TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_TRUE(kernels[0].flags & kUnjoined);
  EXPECT_EQ(trace.losses.unjoined_kernels, 1u);
}

TEST_F(Parsed, GraphKernelsAreJoinedByNode) {
  context.expects_ops = true;
  context.join.node_created(1, 9, 1);
  context.join.node_cloned(1, 77);
  context.join.graph_launched(30, 100, 4);
  records.kernel("k", 100, 200, 30, 77);
  const auto kernels = spans(finish(), TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].op, 9);
  EXPECT_EQ(kernels[0].step, 101u);
  EXPECT_TRUE(kernels[0].flags & kInGraph);
}

TEST_F(Parsed, ANameThatMovedIntoAnothersPlaceIsNotMixedUp) {
  char name[16] = "first";
  records.kernel(name, 100, 200, 1);
  parser.parse(records.data(), records.size(), FakeRecords::next);
  std::strcpy(name, "second");  // a module was unloaded and another took its memory
  FakeRecords later;
  later.kernel(name, 300, 400, 2);
  parser.parse(later.data(), later.size(), FakeRecords::next);
  Trace trace;
  append(trace, context.batch.finish());
  const auto kernels = spans(trace, TrackKind::Stream);
  EXPECT_EQ(trace.name(kernels[0].name), "first");
  EXPECT_EQ(trace.name(kernels[1].name), "second");
}

TEST_F(Parsed, CopiesMemsetsGraphRunsAndOverhead) {
  auto& copy = records.add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 4096, copy.start = 10, copy.end = 20;
  auto& set = records.add<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  set.bytes = 64, set.start = 30, set.end = 35;
  auto& run = records.add<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  run.graphId = 3, run.start = 40, run.end = 90, run.correlationId = 5;
  context.join.graph_launched(5, 12, 1);
  auto& overhead = records.add<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, overhead.start = 1, overhead.end = 2;
  overhead.overheadData = std::malloc(8);  // ours to free
  const Trace trace = finish();
  const auto copies = spans(trace, TrackKind::Copies);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(trace.name(copies[0].name), "copy pageable → device");
  EXPECT_EQ(trace.detail(copies[0].detail).bytes, 4096u);
  EXPECT_EQ(copies[1].span_kind(), SpanKind::Memset);
  ASSERT_EQ(spans(trace, TrackKind::GraphLaunches).size(), 1u);
  EXPECT_EQ(spans(trace, TrackKind::GraphLaunches)[0].step, 12u);
  EXPECT_EQ(spans(trace, TrackKind::Overhead).size(), 1u);
}

// A program that knows nothing of us: what its calls launched belongs to the innermost of its ranges.
struct ParsedRanges : Parsed {
  ParsedRanges() { context.program_ranges = true; }
  ~ParsedRanges() override {
    while (Marks::thread().op_depth > 0) ranges.pop();
  }
  // What the driver's callback does when a call is about to launch something.
  void launch(uint32_t correlation) { context.join.launched(correlation, Marks::thread().at()); }
  std::string op_of(const Trace& trace, const Span& span) {
    const OpInfo& op = trace.ops[span.op];
    return op.layer + " · " + op.name;
  }
  ProgramRanges& ranges = ProgramRanges::instance();
};

TEST_F(ParsedRanges, KernelsCopiesAndGraphNodesBelongToTheInnermostRange) {
  ranges.push("training step 1");
  ranges.push("encoder");
  launch(1);
  ranges.push("attention");
  launch(2), launch(3);
  context.join.node_created(70, Marks::thread().op(), 0);  // captured here, launched elsewhere
  context.join.node_cloned(70, 71);
  ranges.pop(), ranges.pop(), ranges.pop();
  launch(4);
  context.join.graph_launched(5, 0, 1);
  records.kernel("elementwise_kernel", 100, 110, 1);
  records.kernel("sm90_gemm", 120, 130, 2);
  auto& copied = records.add<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copied.start = 200, copied.end = 210, copied.correlationId = 3;
  records.kernel("sm90_gemm", 300, 310, 4);
  records.kernel("sm90_gemm", 400, 410, 5).graphNodeId = 71;
  const Trace trace = finish();
  const auto kernels = spans(trace, TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(op_of(trace, kernels[0]), " · encoder");
  EXPECT_EQ(op_of(trace, kernels[1]), "encoder · attention");
  EXPECT_EQ(kernels[2].op, kNoOp) << "launched outside of any range";
  EXPECT_EQ(op_of(trace, kernels[3]), "encoder · attention") << "captured there";
  EXPECT_EQ(kernels[1].span_meaning(), Meaning::Matrix) << "as its name tells";
  EXPECT_EQ(trace.losses.unjoined_kernels, 0u) << "no loss: the program need not mark everything";
  const auto copies = spans(trace, TrackKind::Copies);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(op_of(trace, copies[0]), "encoder · attention");
}

// The names that torch.autograd.profiler.emit_nvtx gives: the backward function runs on another thread and carries the
// number of the op that made it.
TEST_F(ParsedRanges, ABackwardFunctionHasTheModuleOfItsForwardOp) {
  const OpTag module = ranges.place({"Linear", "", "encoder.fc1", "forward", Meaning::Other, 0, 0, stack_from_text("train.py:41 in step")});
  ranges.push(module);
  ranges.push("aten::linear, seq = 7, op_id = 1");
  ranges.push("aten::addmm, seq = 8, op_id = 3");
  launch(1);
  ranges.pop(), ranges.pop(), ranges.pop();
  std::thread([&] {
    ranges.push("autograd::engine::evaluate_function: AddmmBackward0, seq = 8, op_id = 9");
    ranges.push("AddmmBackward0, seq = 8, op_id = 10");
    ranges.push("aten::mm, op_id = 11");
    launch(2);
    ranges.pop(), ranges.pop(), ranges.pop();
  }).join();
  records.kernel("sm90_gemm", 100, 110, 1);
  records.kernel("sm90_gemm", 120, 130, 2);
  const Trace trace = finish();
  const auto kernels = spans(trace, TrackKind::Stream);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(op_of(trace, kernels[0]), "encoder.fc1 · aten::addmm");
  EXPECT_EQ(trace.ops[kernels[0].op].phase, "forward");
  EXPECT_EQ(op_of(trace, kernels[1]), "encoder.fc1 · aten::mm");
  EXPECT_EQ(trace.ops[kernels[1].op].phase, "backward");
  EXPECT_EQ(line_of(trace.ops[kernels[1].op]), "train.py:41 in step");
}

TEST_F(Parsed, WithoutSpaceRecordsAreDroppedAndCounted) {
  context.full = true;
  records.kernel("k", 100, 200, 1);
  records.kernel("k", 300, 400, 2);
  const Trace trace = finish();
  EXPECT_EQ(trace.span_count(), 0u);
  EXPECT_EQ(trace.losses.dropped_records, 2u);
}

TEST_F(Parsed, SizesOfAllPoolsAreSummed) {
  records.pool_call(0xa0, 50, 1 << 20, 4096);
  records.pool_call(0xb0, 60, 1 << 21, 512);
  records.pool_call(0xa0, 70, 1 << 20, 0);
  auto& gone = records.add<CUpti_ActivityMemoryPool3>(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  gone.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL, gone.timestamp = 80, gone.address = 0xa0;
  gone.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
  auto& imported = records.pool_call(0xc0, 90, 77, 77);
  imported.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED;
  const Trace trace = finish();
  std::map<std::string, std::vector<double>> values;
  for (const CounterTrack& counter : trace.counters())
    for (const CounterPoint& point : counter.points) values[counter.name].push_back(point.value);
  EXPECT_EQ(values, (std::map<std::string, std::vector<double>>{{"pool reserved", {1 << 20, 3 << 20, 3 << 20, 1 << 21}},
                                                                {"pool used", {4096, 4608, 512, 512}}}));
}

// CUPTI's own walker accepts the layout that the tests use.
TEST_F(Parsed, CuptiWalksTheSameBuffer) {
  records.kernel("a", 100, 200, 1);
  records.kernel("b", 300, 400, 2);
  parser.parse(records.data(), records.size(), ::cuptiActivityGetNextRecord);
  EXPECT_EQ(parser.records(), 2u);
  EXPECT_EQ(context.batch.spans(), 2u);
}

TEST(LateCalls, LoadTheLibrariesOrAnswerAnError) {
  ASSERT_EQ(late_library_missing(), "");
  uint32_t late = 0, linked = 0;
  EXPECT_EQ(cuptiGetVersion(&late), CUPTI_SUCCESS);
  EXPECT_EQ(::cuptiGetVersion(&linked), CUPTI_SUCCESS);
  EXPECT_EQ(late, linked);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_EQ((LateCall<cudaError_t (*)(int), CudaRuntimeOrCupti>("cudaOfAnotherVersion")(1)), cudaErrorUnknown);
  EXPECT_EQ((LateCall<CUptiResult (*)(), CudaRuntimeOrCupti>("cuptiOfAnotherVersion")()), CUPTI_ERROR_UNKNOWN);
}

TEST(KernelNames, ShowWhatForeignKernelsDo) {
  EXPECT_EQ(meaning_of_kernel("ampere_sgemm_128x64_tn"), Meaning::Matrix);
  EXPECT_EQ(meaning_of_kernel("void at::native::vectorized_elementwise_kernel<4, ...>"), Meaning::Pointwise);
  EXPECT_EQ(meaning_of_kernel("multi_tensor_apply_kernel<FusedAdamMathFunctor>"), Meaning::Optimizer);
  EXPECT_EQ(meaning_of_kernel("cunn_SoftMaxForward"), Meaning::Loss);
  EXPECT_EQ(meaning_of_kernel("triton_per_fused__to_copy_add_native_layer_norm_backward_view_12"), Meaning::Reduction);
  EXPECT_EQ(meaning_of_kernel("triton_poi_fused_convolution_relu_3"), Meaning::Pointwise) << "what follows the product";
  EXPECT_EQ(meaning_of_kernel("triton_tem_fused_mm_4"), Meaning::Matrix);
  EXPECT_EQ(meaning_of_kernel("triton_red_fused__log_softmax_nll_loss_forward_5"), Meaning::Loss);
  EXPECT_EQ(meaning_of_kernel("at::native::vectorized_layer_norm_kernel<float, converter>"), Meaning::Reduction);
  EXPECT_EQ(meaning_of_kernel("pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>"), Meaning::Matrix);
  EXPECT_EQ(meaning_of_kernel("mystery"), Meaning::Other);
  EXPECT_EQ(readable_kernel_name(nullptr), "(unnamed kernel)");
}

// A training whose host runs ahead of the GPU: the forward and the backward kernel of a step are launched by two threads,
// and each thread's records come in buffers of their own, late.
struct RecordedTraining {
  static constexpr int kBehind = 5;  // steps
  TraceContext context;
  RecordParser parser{context};
  FakeRecords forward, backward;
  std::atomic<int> wanted = 0;
  int made = 0;

  void mark(TrackKind kind, std::string_view row, const char* name, Span span) {
    span.name = context.batch.id(context.batch.name(name));
    context.batch.row(kind, row, "CPU").spans.push_back(span);
  }
  void launch(const char* thread, uint32_t call, TimeNs at) {
    Span span;
    span.start = at, span.duration = 1000, span.correlation = call;
    span.kind = static_cast<uint64_t>(SpanKind::Api), span.meaning = static_cast<uint64_t>(Meaning::Launch);
    mark(TrackKind::Api, thread, "cudaLaunchKernel", span);
    context.join.launched(call, {});
  }
  static TimeNs begin_on_gpu(int step) { return (step + kBehind) * 1'000'000; }
  void flush(FakeRecords& records) {
    parser.parse(records.data(), records.size(), FakeRecords::next);
    records = {};
  }
  TraceBatch step() {
    if (made == wanted) return {};
    const int now = made++;
    Span range;
    range.start = now * 1'000'000, range.duration = 1'000'000, range.kind = static_cast<uint64_t>(SpanKind::Phase);
    mark(TrackKind::ProgramSteps, kProgramSteps, "step #", range);
    launch("thread 1 calls", static_cast<uint32_t>(2 * now + 1), range.start + 1000);
    launch("thread 2 calls", static_cast<uint32_t>(2 * now + 2), range.start + 5000);
    if (const int ran = now - kBehind - 1; ran >= 0) {
      const auto begin = static_cast<uint64_t>(begin_on_gpu(ran));
      forward.kernel("gemm", begin, begin + 300'000, static_cast<uint32_t>(2 * ran + 1));
      backward.kernel("gemm_backward", begin + 300'000, begin + 900'000, static_cast<uint32_t>(2 * ran + 2));
    }
    if (now % 2 == 0) flush(forward);
    if (now % 5 == 0) flush(backward);
    parser.retry_waiting(false);
    return context.batch.finish();
  }
};

TEST(LiveSteps, OfActivityRecordsComeWithTheirKernels) {
  LiveFollower follower;
  RecordedTraining training;
  const std::string path = ::testing::TempDir() + "live-steps-" + std::to_string(getpid()) + ".wsrun";
  test::RecordedHere recorder(path, "made", {.level = TraceLevel::Off}, follower.address(), [&] { return training.step(); });
  for (const uint64_t now : {40, 200}) {
    training.wanted = static_cast<int>(now);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (follower.status().steps < now - 20 && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_GE(follower.status().steps, now - 20);
  }
  Trace live;
  uint64_t shown = 0;
  for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) {
    for (const BatchTrack& track : batch.tracks)
      if (track.kind == TrackKind::Steps && !track.spans.empty()) shown = track.spans.back().step;
    append(live, std::move(batch));
    EXPECT_GE(Parsed::spans(live, TrackKind::Stream).size(), 2 * shown) << "a step comes after its kernels";
  }
  const std::vector<Span> steps = Parsed::spans(live, TrackKind::Steps);
  ASSERT_GE(steps.size(), 180u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, i + 1);
    EXPECT_EQ(steps[i].start, RecordedTraining::begin_on_gpu(static_cast<int>(i)));
    EXPECT_EQ(steps[i].duration, 900'000u);
  }
  recorder.finish();
  for (TraceBatch batch = follower.take(); !batch.empty(); batch = follower.take()) append(live, std::move(batch));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ws::prof
