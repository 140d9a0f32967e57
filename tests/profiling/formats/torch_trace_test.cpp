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

// A device that is no GPU: its events are shown, and it is said that they are no kernels.
TEST(TorchTrace, OfAnotherDeviceSaysWhatIsNotUnderstood) {
  const RunData run = parse_chrome(renamed(text_of_file(), {{"kernel", "mtia_ccp_events"}, {"cuda_runtime", "mtia_runtime"}}));
  EXPECT_EQ(trace_stats(run.trace).kernels, 0u);
  ASSERT_EQ(run.problems.size(), 1u);
  EXPECT_EQ(run.problems[0].rfind("60 events of devices are of unknown kinds (\"mtia_ccp_events\").", 0), 0u) << run.problems[0];
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
