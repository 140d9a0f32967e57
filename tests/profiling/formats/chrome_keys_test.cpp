// Chrome traces as PyTorch's versions and other tools write them: the same thing under other keys and types.
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "tests/profiling/formats/interop_support.h"

namespace ws::prof {
namespace {

struct ChromeKeys : Interop {
  RunData import(const std::string& text) const {
    std::ofstream(path("t.json")) << text;
    return import_run(path("t.json"));
  }
  RunData events(const std::string& list) const { return import(R"({"traceEvents": [)" + list + "]}"); }
};

using Lines = std::vector<std::string>;

TEST_F(ChromeKeys, TimesAreNumbersOrTexts) {
  for (const char* times : {R"("ts": 12, "dur": 3)", R"("ts": 12.0, "dur": 3.000)", R"("ts": "12", "dur": "3.0")",
                            R"("ts": 1.2e1, "dur": 3e0)", R"("dur": 3, "ts": 12)"}) {
    const RunData read =
        events(std::string(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 2, )") + times + "}");
    EXPECT_EQ(said(read.trace), Lines{"CPU / thread 2: a 12000+3000"}) << times;
    EXPECT_TRUE(read.problems.empty()) << times;
  }
}

// Nanoseconds of a clock reading survive, which a double would not keep.
TEST_F(ChromeKeys, ClockReadingsKeepTheirNanoseconds) {
  const RunData read =
      events(R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 2, "ts": 1763703634000000.001, "dur": 0.5},
    {"ph": "X", "cat": "cpu_op", "name": "b", "tid": 2, "ts": 1763703634000007.123, "dur": 0.002})");
  EXPECT_EQ(said(read.trace), (Lines{"CPU / thread 2: a 0+500", "CPU / thread 2: b 7122+2"}));
}

TEST_F(ChromeKeys, TheListMayStandAloneOrAnywhere) {
  const std::string one = R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 2, "ts": 1, "dur": 1})";
  for (const std::string& text :
       {"[" + one + "]", R"({"traceEvents": [)" + one + "]}",
        R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 8,
            "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}, "cupti_version": 28, "trace_id": "9A", "with_stack": 1,
            "record_shapes": true, "otherData": {"traceEvents": "no"}, "traceEvents": [)" +
            one +
            R"(], "traceName": "/tmp/t.json", "displayTimeUnit": "ms", "deviceProperties": [], "metadata": null})"}) {
    EXPECT_EQ(said(import(text).trace), Lines{"CPU / thread 2: a 1000+1000"}) << text;
  }
}

TEST_F(ChromeKeys, BeginningsFindTheirEnds) {
  const RunData read = events(R"({"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": 1},
    {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": 2, "args": {"x": 1}}, {"ph": "B", "name": "other", "pid": 1, "tid": 3, "ts": 2},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 5}, {"ph": "E", "pid": 1, "tid": 2, "ts": 9}, {"ph": "E", "pid": 1, "tid": 4, "ts": 9})");
  EXPECT_EQ(said(read.trace), (Lines{"CPU / thread 2: inner 2000+3000", "CPU / thread 2: outer 1000+8000"}));
  ASSERT_EQ(read.problems.size(), 2u);
  EXPECT_EQ(read.problems[0], "1 event without a beginning.");
  EXPECT_EQ(read.problems[1], "1 event without an end.");
}

// Flows, samples, asynchronous events and marks of other tools are no spans, and no damage.
TEST_F(ChromeKeys, OtherPhasesAreLeftOutQuietly) {
  std::string list = R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 2, "ts": 1, "dur": 1})";
  for (const char* phase :
       {"s", "t", "f", "b", "n", "e", "N", "O", "D", "P", "R", "c", "v", "(", "i", "I", "M", "S", "T", "F", ""})
    list += std::string(R"(,{"ph": ")") + phase +
            R"(", "id": 5, "cat": "ac2g", "name": "x", "tid": 2, "ts": 1, "bp": "e"})";
  list += R"(,{"name": "no phase"}, {}, {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler 0", "ts": 0, "dur": 99})";
  const RunData read = events(list);
  EXPECT_EQ(said(read.trace), Lines{"CPU / thread 2: a 1000+1000"});
  EXPECT_TRUE(read.problems.empty());
}

TEST_F(ChromeKeys, EachCategoryHasItsRow) {
  const auto event = [](const char* category, const char* name, const char* thread, const char* args) {
    return std::string(R"({"ph": "X", "cat": ")") + category + R"(", "name": ")" + name + R"(", "pid": 0, "tid": )" +
           thread + R"(, "ts": 1, "dur": 1, "args": )" + args + "}";
  };
  const std::string gpu = R"({"device": 1, "stream": 20, "correlation": 4, "External id": 3})";
  const RunData read = events(
      R"({"ph": "M", "name": "thread_name", "pid": 0, "tid": 9, "args": {"name": "thread 9, python3"}},)" +
      event("kernel", "k", "20", gpu.c_str()) + "," +
      event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "20", gpu.c_str()) + "," +
      event("gpu_memset", "Memset (Device)", "20", gpu.c_str()) + "," +
      event("gpu_user_annotation", "forward", "20", gpu.c_str()) + "," +
      event("cuda_sync", "Stream Sync", "20", gpu.c_str()) + "," +
      event("cuda_runtime", "cudaLaunchKernel", "9", R"({"cbid": 211, "correlation": 4})") + "," +
      event("cuda_driver", "cuLaunchKernelEx", "9", "{}") + "," +
      event("user_annotation", "ProfilerStep#7", "9", "{}") + "," + event("user_annotation", "forward", "9", "{}") +
      "," +
      event("python_function", "nn.Module: Linear_0", "9",
            R"({"Python parent id": null, "Python id": 4, "Python module id": 0})") +
      "," +
      event(
          "cpu_op", "aten::mm", "9",
          R"({"Sequence number": 1, "Fwd thread id": 0, "Input Dims": [[64, 784], [], [[2], 3]], "Concrete Inputs": ["", "1"],
                "Input type": ["float", "Scalar"], "Call stack": "a;b", "Ev Idx": 4})") +
      "," + event("overhead", "Command Buffer Full", "\"0\"", "{}"));
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(
      said(read.trace),
      (Lines{"CPU / CUDA API, thread 9, python3: cuLaunchKernelEx 1000+1000 step 7",
             "CPU / CUDA API, thread 9, python3: cudaLaunchKernel 1000+1000 step 7",
             "CPU / profiler: Command Buffer Full 1000+1000 step 7", "CPU / steps: step 1000+1000 step 7",
             "CPU / thread 9, python3 ranges: forward 1000+1000 step 7",
             "CPU / thread 9, python3: aten::mm 1000+1000 step 7",
             "CPU / thread 9, python3: nn.Module: Linear_0 1000+1000 step 7",
             "GPU 1 / stream 20 copies: copy device → pinned 1000+1000 step 7",
             "GPU 1 / stream 20 copies: memset 1000+1000 step 7", "GPU 1 / stream 20 ranges: forward 1000+1000 step 7",
             "GPU 1 / stream 20 waits: Stream Sync 1000+1000 step 7", "GPU 1 / stream 20: k 1000+1000 step 7"}));
}

// Numbers of arguments come as texts too, and a missing one is no other's.
TEST_F(ChromeKeys, ArgumentsAreNumbersOrTexts) {
  const RunData read = events(R"({"ph": "X", "cat": "kernel", "name": "k0", "pid": 0, "tid": 7, "ts": 1, "dur": 1,
      "args": {"device": "0", "stream": "7", "correlation": "12", "registers per thread": "32", "grid": [4, 2, 1], "block": [256, 1, 1]}},
    {"ph": "X", "cat": "kernel", "name": "k1", "pid": 0, "tid": 7, "ts": 3, "dur": 1, "args": {"occupancy": {"grid": 9}}},
    {"ph": "X", "cat": "kernel", "name": "k2", "pid": "GPU 0", "tid": "stream 7 Default", "ts": 5, "dur": 1, "args": null})");
  EXPECT_EQ(said(read.trace), (Lines{"GPU 0 / stream 7: k0 1000+1000", "GPU 0 / stream 7: k1 3000+1000",
                                     "GPU 0 / stream 7: k2 5000+1000"}));
  const auto& spans = read.trace.tracks().at(0).blocks.at(0).spans;
  EXPECT_EQ(spans[0].correlation, 12u);
  EXPECT_EQ(read.trace.detail(spans[0].detail).registers, 32);
  EXPECT_EQ(read.trace.detail(spans[0].detail).grid[1], 2);
  EXPECT_EQ(spans[2].correlation, 0u);
  EXPECT_EQ(read.trace.detail(spans[2].detail).grid[0], 0);
}

TEST_F(ChromeKeys, MemoryEventsSayWhereAndHowMuch) {
  const auto event = [](const char* name, const char* args) {
    return std::string(R"({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": ")") + name +
           R"(", "pid": 1, "tid": 1, "ts": 1, "args": )" + args + "},";
  };
  const RunData read = events(
      event(
          "[memory]",
          R"({"Bytes": 512, "Addr": 140300000000000, "Device Type": 1, "Device Id": 0, "Total Allocated": 512, "Total Reserved": 2097152})") +
      event(
          "[memory]",
          R"({"Bytes": -512, "Addr": 140300000000000, "Device Type": 1, "Device Id": 0, "Total Allocated": 0, "Total Reserved": 2097152})") +
      event("[memory]",
            R"({"Bytes": 64, "Addr": 94000000000000, "Device Type": 0, "Device Id": -1, "Total Allocated": 64})") +
      event("[OutOfMemory]", R"({"Bytes": 99})") +
      R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 1, "ts": 1, "dur": 1})");
  ASSERT_EQ(read.trace.memory().size(), 2u) << "the host's memory is none of the GPU's";
  EXPECT_EQ(read.trace.memory()[0].kind, MemoryAction::Allocate);
  EXPECT_EQ(read.trace.memory()[1].kind, MemoryAction::Free);
  EXPECT_EQ(read.trace.memory()[1].bytes, 512u);
  ASSERT_EQ(read.trace.counters().size(), 2u);
  EXPECT_EQ(read.trace.counters()[0].points.size(), 2u);
}

// Each GPU has an allocator of its own with its own totals; the curves are of all of them.
TEST_F(ChromeKeys, BlocksOfSeveralGpusAreKeptApart) {
  const auto event = [](int time, int bytes, int gpu, int total) {
    return R"({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": )" +
           std::to_string(time) + R"(, "args": {"Bytes": )" + std::to_string(bytes) + R"(, "Addr": 4096, "Device Type": 1, "Device Id": )" +
           std::to_string(gpu) + R"(, "Total Allocated": )" + std::to_string(total) + "}},";
  };
  const RunData read = events(event(1, 512, 0, 512) + event(2, 100, 1, 100) + event(3, -512, 0, 0) + event(4, 50, 1, 150) +
                              R"({"ph": "X", "cat": "cpu_op", "name": "a", "tid": 1, "ts": 1, "dur": 1})");
  EXPECT_EQ(read.trace.memory_sources, (Lines{"PyTorch", "PyTorch GPU 1"}));
  std::vector<int> sources;
  for (const MemoryEvent& block : read.trace.memory()) sources.push_back(block.source);
  EXPECT_EQ(sources, (std::vector<int>{0, 1, 0, 1}));
  ASSERT_EQ(read.trace.counters().size(), 1u);
  EXPECT_EQ(read.trace.counters()[0].name, "memory used");
  std::vector<double> used;
  for (const CounterPoint& point : read.trace.counters()[0].points) used.push_back(point.value);
  EXPECT_EQ(used, (std::vector<double>{512, 612, 100, 150}));
}

// Which op a kernel belongs to, and through it which step, only its number says where its call is not in the trace.
TEST_F(ChromeKeys, ExternalIdsJoinKernelsToTheirOps) {
  const auto op = [](const char* name, int id, int ts, int dur) {
    return std::string(R"({"ph": "X", "cat": "cpu_op", "name": ")") + name + R"(", "pid": 9, "tid": 9, "ts": )" +
           std::to_string(ts) + R"(, "dur": )" + std::to_string(dur) + R"(, "args": {"External id": )" +
           std::to_string(id) + "}},";
  };
  const auto kernel = [](const char* name, int ts, const std::string& args) {
    return std::string(R"({"ph": "X", "cat": "kernel", "name": ")") + name + R"(", "pid": 0, "tid": 7, "ts": )" +
           std::to_string(ts) + R"(, "dur": 1, "args": {"device": 0, "stream": 7, )" + args + "}},";
  };
  // Kernels before the ops that launched them: a file has them in any order.
  const RunData read = events(
      kernel("k1", 300, R"("External id": 3)") + kernel("k2", 310, R"("External id": "4", "correlation": 12)") +
      kernel("k3", 320, R"("correlation": 13)") + kernel("k4", 330, R"("external id": 3, "correlation": 14)") +
      kernel("k5", 340, R"("External id": 3, "correlation": 15)") + kernel("k6", 350, R"("External id": 8)") +
      kernel("k7", 360, R"("External id": 99)") + kernel("k8", 150, R"("External id": 5)") +
      op("aten::mm", 3, 110, 20) + op("aten::add", 4, 210, 20) + op("aten::late", 5, 220, 5) +
      op("aten::one", 8, 110, 1) + op("aten::other", 8, 120, 1) +
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 212, "dur": 2, "args": {"correlation": 15}},
         {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 9, "tid": 9, "ts": 100, "dur": 99},
         {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#2", "pid": 9, "tid": 9, "ts": 200, "dur": 90},
         {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 290, "dur": 90})");
  Lines lines;
  for (const Track& track : read.trace.tracks())
    for (const Span& s : spans_of(track))
      if (track.kind == TrackKind::Stream)
        lines.push_back(read.trace.name(s.name) + ": " + read.trace.ops[s.op].name + " step " +
                        std::to_string(s.step - 1));
  std::ranges::sort(lines);
  EXPECT_EQ(lines, (Lines{"k1: aten::mm step 1", "k2: aten::add step 2", "k3:  step 3", "k4: aten::mm step 1",
                          "k5:  step 2",  // its call came after that op: a number that means nothing
                          "k6:  step 3",  // two ops of one number
                          "k7:  step 3", "k8:  step 1"}));
}

// Some versions write what a division by nothing gives, which no JSON knows.
TEST_F(ChromeKeys, WhatIsNoJsonIsRefusedWithItsPlace) {
  try {
    events(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"blocks per SM": nan}})");
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("not valid JSON at byte"), std::string::npos) << failure.what();
  }
}

}  // namespace
}  // namespace ws::prof
