// A trace that PyTorch 2.11's profiler wrote on an H200: three steps of a small network, with memory events.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "profiling/analysis/trace_stats.h"
#include "profiling/base/packed_file.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/trace/span_walk.h"
#include "tests/profiling/trace/made_trace.h"

namespace ws::prof {
namespace {

constexpr const char* kFile = WARPSIGHT_TEST_DATA "/torch_steps.json.gz";

std::string text_of_file() {
  PackedStream buffer(kFile, 64 << 20);
  return {std::istreambuf_iterator<char>(&buffer), std::istreambuf_iterator<char>()};
}

RunData without(std::string text, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name)) text.replace(at, 4, "None");
  }
  return parse_chrome(text);
}

TEST(TorchTrace, HasTheCountsThatPyTorchItselfGives) {
  const RunData run = import_chrome(kFile);
  const TraceStats stats = trace_stats(run.trace);
  EXPECT_EQ(stats.kernels, 60u);
  EXPECT_EQ(stats.copies, 6u);
  EXPECT_EQ(stats.memsets, 3u);
  EXPECT_EQ(stats.steps, 3u);
  EXPECT_EQ(stats.by_name.size(), 18u);
  std::map<std::string, uint64_t> by_part;
  for (const KernelRow& row : stats.by_name) {
    for (const char* part :
         {"FillFunctor", "splitKreduce", "softmax_warp_forward", "multi_tensor_apply", "sgemm_largek"})
      if (row.key.find(part) != std::string::npos) by_part[part] += row.time.count;
  }
  EXPECT_EQ(by_part["FillFunctor"], 6u);
  EXPECT_EQ(by_part["splitKreduce"], 6u);
  EXPECT_EQ(by_part["softmax_warp_forward"], 3u);
  EXPECT_EQ(by_part["multi_tensor_apply"], 3u);
  EXPECT_EQ(by_part["sgemm_largek"], 3u);
  EXPECT_TRUE(run.problems.empty()) << run.problems.front();
}

std::string renamed(std::string text, const std::vector<std::pair<std::string, std::string>>& categories) {
  for (const auto& [from, to] : categories) {
    const std::string old = "\"cat\": \"" + from + "\"";
    for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) text.replace(at, old.size(), "\"cat\": \"" + to + "\"");
  }
  return text;
}

// Written as by PyTorch until 2022.
TEST(TorchTrace, OfAnEarlierVersionIsTheSame) {
  const TraceStats now = trace_stats(import_chrome(kFile).trace);
  const RunData before = parse_chrome(renamed(text_of_file(), {{"kernel", "Kernel"},
                                                               {"gpu_memcpy", "Memcpy"},
                                                               {"gpu_memset", "Memset"},
                                                               {"cuda_runtime", "Runtime"},
                                                               {"cpu_op", "Operator"}}));
  const TraceStats stats = trace_stats(before.trace);
  EXPECT_EQ(stats.kernels, now.kernels);
  EXPECT_EQ(stats.copies, now.copies);
  EXPECT_EQ(stats.memsets, now.memsets);
  EXPECT_EQ(stats.steps, now.steps);
  EXPECT_EQ(stats.by_name.size(), now.by_name.size());
  EXPECT_EQ(before.trace.tracks().size(), import_chrome(kFile).trace.tracks().size());
  EXPECT_TRUE(before.problems.empty());
}

// A device of which nothing is known: its events are shown, and it is said that they are no kernels.
TEST(TorchTrace, OfAnotherDeviceReportsWhatIsNotUnderstood) {
  const RunData run = parse_chrome(renamed(text_of_file(), {{"kernel", "new_device_work"}, {"cuda_runtime", "new_runtime"}}));
  EXPECT_EQ(trace_stats(run.trace).kernels, 0u);
  ASSERT_EQ(run.problems.size(), 1u);
  EXPECT_EQ(run.problems[0].rfind("60 events of devices are of unknown kinds (\"new_device_work\").", 0), 0u) << run.problems[0];
}

const Track* row_in(const RunData& run, TrackKind kind, const std::string& group) {
  for (const Track& track : run.trace.tracks())
    if (track.kind == kind && track.group == group) return &track;
  return nullptr;
}

TEST(TorchTrace, WorkOfMtiaIsKernelsOfAnMtia) {
  const RunData run = parse_chrome(renamed(text_of_file(), {{"kernel", "mtia_ccp_events"}, {"cuda_runtime", "mtia_runtime"}}));
  EXPECT_EQ(trace_stats(run.trace).kernels, 60u);
  EXPECT_NE(row_in(run, TrackKind::Stream, "MTIA 0"), nullptr);
  EXPECT_EQ(row_in(run, TrackKind::Stream, "GPU 0"), nullptr);
  EXPECT_TRUE(run.problems.empty());
}

RunData of_events(const std::string& events) { return parse_chrome("{\"traceEvents\": [" + events + "]}"); }

TEST(TorchTrace, CopiesFillsAndMarkersOfRocmAreNoKernels) {
  std::string events;
  for (const char* name : {"Cijk_Ailk_Bljk_SB_MT64x64x16", "CopyHostToDevice", "FillBuffer", "Marker", "CopyDeviceToHost"})
    events += std::string(events.empty() ? "" : ", ") + R"({"ph": "X", "cat": "kernel", "name": ")" + name +
              R"(", "ts": 1, "dur": 2, "pid": 0, "tid": 3, "args": {"device": 0, "stream": 3}})";
  const RunData run = of_events(events);
  const TraceStats stats = trace_stats(run.trace);
  EXPECT_EQ(stats.kernels, 1u);
  EXPECT_EQ(stats.copies, 2u);
  EXPECT_EQ(stats.memsets, 1u);
  EXPECT_TRUE(run.trace.knows("copy host → device"));
  EXPECT_TRUE(run.trace.knows("Marker"));
  EXPECT_TRUE(run.problems.empty());
}

// JAX writes this form: processes stand for devices, threads for rows; no event has a category.
TEST(TorchTrace, DevicesOfXlaAreShownAsWhatTheyAre) {
  const auto process = [](int pid, const char* name) { return R"({"ph": "M", "name": "process_name", "pid": )" + std::to_string(pid) + R"(, "args": {"name": ")" + name + "\"}}, "; };
  const auto thread = [](int pid, int tid, const char* name) {
    return R"({"ph": "M", "name": "thread_name", "pid": )" + std::to_string(pid) + ", \"tid\": " + std::to_string(tid) + R"(, "args": {"name": ")" + name + "\"}}, ";
  };
  const auto span = [](int pid, int tid, const char* name, int at, int length) {
    return R"({"ph": "X", "name": ")" + std::string(name) + "\", \"pid\": " + std::to_string(pid) + ", \"tid\": " + std::to_string(tid) +
           ", \"ts\": " + std::to_string(at) + ", \"dur\": " + std::to_string(length) + "}, ";
  };
  const RunData tpu = of_events(process(3, "/device:TPU:1") + thread(3, 1, "Steps") + thread(3, 2, "XLA Modules") + thread(3, 3, "XLA Ops") +
                                span(3, 1, "7", 0, 100) + span(3, 1, "8", 100, 100) + span(3, 2, "jit_step(123)", 0, 90) +
                                span(3, 3, "fusion.12", 0, 40) + span(3, 3, "convolution.3", 40, 50) + R"({"ph": "M", "name": "end"})");
  EXPECT_EQ(trace_stats(tpu.trace).kernels, 2u);
  EXPECT_EQ(trace_stats(tpu.trace).steps, 2u);
  ASSERT_NE(row_in(tpu, TrackKind::Stream, "TPU 1"), nullptr);
  EXPECT_EQ(row_in(tpu, TrackKind::Stream, "TPU 1")->name, "XLA Ops");
  EXPECT_NE(row_in(tpu, TrackKind::Phases, "TPU 1"), nullptr);
  EXPECT_EQ(tpu.summary.device, "TPU");
  const RunData gpu = of_events(process(1, "/device:GPU:0") + thread(1, 2, "XLA Ops") + thread(1, 3, "Stream #13(Compute)") +
                                span(1, 2, "fusion.12", 0, 40) + span(1, 3, "loop_fusion", 0, 40) + span(1, 3, "MemcpyH2D", 50, 4) + R"({"ph": "M", "name": "end"})");
  EXPECT_EQ(trace_stats(gpu.trace).kernels, 1u) << "those of XLA Ops are the same work";
  EXPECT_EQ(trace_stats(gpu.trace).copies, 1u);
  ASSERT_NE(row_in(gpu, TrackKind::Stream, "GPU 0"), nullptr);
  EXPECT_EQ(row_in(gpu, TrackKind::Stream, "GPU 0")->name, "stream 13");
}

TEST(TorchTrace, KnowsDeviceAndWallClock) {
  const RunData run = import_chrome(kFile);
  EXPECT_EQ(run.summary.device, "NVIDIA H200");
  EXPECT_EQ(run.summary.created.substr(0, 10), "2026-11-21");
  EXPECT_EQ(run.trace.first_time(), 0);
  const std::string named = R"({"traceName": "/home/me/torch.json", "traceEvents": []})";
  EXPECT_EQ(parse_chrome(named).summary.name, "torch.json");
  EXPECT_LT(run.trace.last_time(), 10'000'000);
}

// 20 kernels, two copies and a memset belong to each step, through the calls that launched them.
TEST(TorchTrace, WorkBelongsToTheStepThatLaunchedIt) {
  const RunData run = import_chrome(kFile);
  std::map<uint32_t, int> work;
  for (const SpanKind kind : {SpanKind::Kernel, SpanKind::Copy, SpanKind::Memset}) {
    for (const Span& span : sorted_spans(run.trace, kind)) ++work[span.step];
  }
  EXPECT_EQ(work, (std::map<uint32_t, int>{{4, 23}, {5, 23}, {6, 23}}));  // ProfilerStep#3 and on
}

TEST(TorchTrace, CallsAndKernelsShareTheirNumber) {
  const RunData run = import_chrome(kFile);
  std::set<uint32_t> calls;
  for (const Span& span : sorted_spans(run.trace, SpanKind::Api)) calls.insert(span.correlation);
  for (const Span& span : sorted_spans(run.trace, SpanKind::Kernel)) {
    ASSERT_NE(span.correlation, 0u);
    ASSERT_TRUE(calls.contains(span.correlation)) << span.correlation;
  }
}

TEST(TorchTrace, HasTheFrameworksOpsAndItsMemory) {
  const RunData run = import_chrome(kFile);
  EXPECT_EQ(sorted_spans(run.trace, SpanKind::Op).size(), 300u);
  size_t allocated = 0, freed = 0;
  for (const MemoryEvent& event : run.trace.memory()) {
    allocated += event.kind == MemoryAction::Allocate;
    freed += event.kind == MemoryAction::Free;
  }
  EXPECT_EQ(allocated + freed, 102u);
  EXPECT_EQ(allocated, 51u);
  const auto& counters = run.trace.counters();
  const auto reserved = std::ranges::find(counters, "memory reserved", &CounterTrack::name);
  ASSERT_NE(reserved, counters.end());
  EXPECT_EQ(reserved->points.front().value, 71303168);
}

// By the numbers that PyTorch wrote; and by those that we write where only the times of ops and calls are known.
TEST(TorchTrace, KernelsBelongToTheOpsThatLaunchedThem) {
  const auto kernels = [](const RunData& run) {
    std::map<std::string, int> count;
    for (const Span& span : sorted_spans(run.trace, SpanKind::Kernel)) ++count[run.trace.ops[span.op].name];
    return count;
  };
  const RunData run = import_chrome(kFile);
  const std::map<std::string, int> truth = {
      {"aten::_foreach_add_", 3}, {"aten::_log_softmax", 3},      {"aten::_log_softmax_backward_data", 3},
      {"aten::addmm", 15},        {"aten::clamp_min", 3},         {"aten::fill_", 6},
      {"aten::mm", 12},           {"aten::nll_loss_backward", 3}, {"aten::nll_loss_forward", 3},
      {"aten::sum", 6},           {"aten::threshold_backward", 3}};
  EXPECT_EQ(kernels(run), truth);
  const std::string file = testing::TempDir() + "torch_ids_" + std::to_string(getpid()) + ".json";
  export_chrome(run, file);
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  std::string other = text.str();  // of a program that names no ops
  for (const std::string_view key : {"\"origin\"", "\"op\""})
    for (size_t at = other.find(key); at != std::string::npos; at = other.find(key, at)) other[at + 1] = '_';
  EXPECT_EQ(kernels(parse_chrome(other)), truth);
}

// Recorded without a schedule, such a trace has no ProfilerStep ranges: the optimizer's calls end the steps.
TEST(TorchTrace, StepsEndWithTheOptimizerWhereNoneAreNamed) {
  const RunData run = without(text_of_file(), {"ProfilerStep#"});
  const auto steps = sorted_spans(run.trace, SpanKind::Step);
  ASSERT_EQ(steps.size(), 3u);
  std::map<uint32_t, int> kernels;
  for (const Span& span : sorted_spans(run.trace, SpanKind::Kernel)) ++kernels[span.step];
  EXPECT_EQ(kernels, (std::map<uint32_t, int>{{1, 20}, {2, 20}, {3, 20}}));
  for (const Span& step : steps) EXPECT_TRUE(step.flags & kEstimated);
}

// With no names at all, the pattern of the kernels is left.
TEST(TorchTrace, StepsAreFoundInThePatternOfKernelsWhereNothingIsNamed) {
  const RunData run = without(text_of_file(), {"ProfilerStep#", "Optimizer."});
  std::map<uint32_t, int> kernels;
  for (const Span& span : sorted_spans(run.trace, SpanKind::Kernel)) ++kernels[span.step];
  EXPECT_EQ(kernels, (std::map<uint32_t, int>{{1, 20}, {2, 20}, {3, 20}}));
}

}  // namespace
}  // namespace ws::prof
