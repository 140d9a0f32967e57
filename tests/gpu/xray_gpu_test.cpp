// Samples find what is planted: the reason and the line, in each kernel. And what sampling costs. WARPSIGHT_XRAY_JSON=FILE keeps the
// results.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "profiling/analysis/stalls.h"
#include "profiling/base/statistics.h"
#include "profiling/collectors/collector.h"
#include "profiling/cupti/gpu_source.h"
#include "tests/gpu/xray_kernels.h"

namespace ws::prof {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) { return std::chrono::duration<double, std::micro>(Clock::now() - begin).count(); }

struct Xray : testing::Test {
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  }
  static ordered_json& json() {
    static ordered_json all;
    return all;
  }
  static void TearDownTestSuite() {
    if (const char* path = std::getenv("WARPSIGHT_XRAY_JSON")) std::ofstream(path) << json().dump(2) << "\n";
  }
};

// The line of the kernel's own file: an intrinsic may be inlined from a header of the toolkit.
int own_line(const std::vector<StallRow>& lines) {
  const auto own = std::ranges::find_if(lines, [](const StallRow& line) { return line.file.ends_with("xray_kernels.cu"); });
  return own == lines.end() ? 0 : own->line;
}

bool is_right(const xray::Planted& planted, const StallRow& kernel, int line) {
  const auto reason = main_reason(kernel);
  if (!reason) return false;
  const std::string wanted = "|" + std::string(planted.waits) + "|";
  return wanted.find("|" + std::string(stall_name(reason->reason)) + "|") != std::string::npos && line == planted.line;
}

ordered_json row_of(const xray::Planted& planted, const StallRow& kernel, const std::vector<StallRow>& lines) {
  const auto reason = main_reason(kernel);
  ordered_json counts;
  for (size_t i = 0; i < kStalls; ++i)
    if (kernel.counts[i] > 0) counts[stall_name(static_cast<Stall>(i))] = kernel.counts[i];
  return {{"kernel", planted.kernel}, {"planted", planted.waits}, {"planted_line", planted.line}, {"samples", kernel.samples},
          {"reason", reason ? stall_name(reason->reason) : ""}, {"reason_share", reason ? reason->share : 0}, {"line", own_line(lines)},
          {"right", is_right(planted, kernel, own_line(lines))}, {"counts", counts}};
}

// Instructions have texts where nvdisasm is installed, and sum to their lines.
void check_instructions(const Trace& trace, const std::string& kernel, const std::vector<StallRow>& lines) {
  const std::vector<SampledCode> codes = code_of(trace, kernel);
  ASSERT_EQ(codes.size(), 1u) << kernel;
  const Disassembly text = disassembled(codes[0]);
  const std::vector<StallRow> rows = stalls_by_instruction(trace, kernel, {text});
  EXPECT_EQ(rows.size(), codes[0].bytes.size() / 16) << kernel << ": " << text.missing;
  std::map<std::pair<std::string, int>, uint64_t> of_lines;
  for (const StallRow& row : rows) of_lines[{row.file, row.line}] += row.samples;
  for (const StallRow& line : lines) EXPECT_EQ((of_lines[{line.file, line.line}]), line.samples) << line.place();
  for (const StallRow& row : rows) EXPECT_EQ(row.instruction.empty(), !text.missing.empty()) << kernel << " " << row.offset;
  ordered_json listed;
  for (const StallRow& row : rows) listed.push_back({row.offset, row.line, row.samples, row.instruction});
  Xray::json()["instructions"][kernel] = {{"missing", text.missing}, {"compute", codes[0].compute}, {"rows", listed}};
}

TEST_F(Xray, FindsWhatIsPlanted) {
  Collector collector;
  Trace trace;
  CollectorStatus status = collector.start({.gpu = cupti_gpu_source(), .level = TraceLevel::Kernels, .xray = xray_steps("40")});
  xray::prepare();  // now, because a module has lines only if it is loaded while the collector runs
  for (int64_t step = 0; step < 100; ++step) {
    const StepScope scope(step);
    for (const xray::Planted& one : xray::planted()) one.launch(nullptr, 64);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  collector.stop();
  for (TraceBatch batch = collector.take(); !batch.empty(); batch = collector.take()) append(trace, std::move(batch));
  status = collector.status();
  ASSERT_FALSE(status.xray_refused) << status.xray;
  const std::vector<StallRow> kernels = stalls_by_kernel(trace);
  size_t right = 0;
  auto rows = ordered_json::array();
  uint64_t of_kernels = 0;
  for (const StallRow& kernel : kernels) of_kernels += kernel.samples;
  for (const xray::Planted& planted : xray::planted()) {
    const auto at = std::ranges::find_if(kernels, [&](const StallRow& row) { return row.kernel.find(std::string(planted.kernel) + "(") != std::string::npos; });
    if (at == kernels.end()) {
      rows.push_back({{"kernel", planted.kernel}, {"right", false}});
      continue;
    }
    const std::vector<StallRow> lines = stalls_by_line(trace, at->kernel);
    uint64_t of_lines = 0;
    for (const StallRow& line : lines) of_lines += line.samples;
    EXPECT_EQ(of_lines, at->samples) << planted.kernel;
    check_instructions(trace, at->kernel, lines);
    rows.push_back(row_of(planted, *at, lines));
    right += rows.back()["right"].get<bool>();
  }
  uint64_t of_windows = 0;
  for (const SampledWindow& window : trace.stalls.windows()) of_windows += window.samples;
  EXPECT_EQ(of_kernels, of_windows);
  size_t recorded = 0;  // kernels before and after the window
  for (const Track& track : trace.tracks())
    if (track.kind == TrackKind::Stream) recorded += track.spans;
  json()["xray"] = status.xray, json()["planted"] = rows, json()["right"] = right, json()["kernels_recorded"] = recorded;
  EXPECT_EQ(trace.stalls.windows().size(), 1u);
  EXPECT_GT(recorded, 50 * xray::planted().size()) << "kernel records resume";
  EXPECT_GE(right + 2, xray::planted().size()) << rows.dump(2);
}

// Steps with and without sampling take turns. Without it nothing else is recorded, so the difference is the sampling.
void measure(const char* name, const std::function<void()>& work) {
  constexpr int64_t kSampled = 200, kEvery = 400, kSteps = 24'400, kSettles = 40;
  Collector collector;
  collector.start({.gpu = cupti_gpu_source(), .level = TraceLevel::Steps, .xray = xray_steps(std::to_string(kSampled) + "/" + std::to_string(kEvery))});
  const XrayWindow window = xray_steps("200/400");
  std::vector<double> with, without, switches;
  std::vector<double> steps;
  bool open = false;
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto begun = Clock::now();
    const StepScope scope(step);
    const double marked = us_since(begun);
    if (window.open(step) != open) {
      switches.push_back(marked);
      if (steps.size() == kSampled - kSettles) (open ? with : without).push_back(median_with_interval(steps).value);
      open = !open, steps.clear();
    }
    const auto begin = Clock::now();
    work();
    cudaStreamSynchronize(nullptr);
    if (const int64_t at = (step - XrayWindow::kFirstStep) % kSampled; step >= XrayWindow::kFirstStep && at >= kSettles) steps.push_back(us_since(begin));
  }
  collector.stop();
  std::vector<double> added;
  for (size_t i = 0; i + 1 < with.size() && i + 1 < without.size(); ++i)  // between two stretches without
    added.push_back(with[i + 1] / ((without[i] + without[i + 1]) / 2) - 1);
  const Interval cost = median_with_interval(added);
  Xray::json()["cost"][name] = {{"step_us_without", median_with_interval(without).value}, {"step_us_with", median_with_interval(with).value},
                                {"added_share", cost.value}, {"half_width", cost.half_width}, {"turns", added.size()},
                                {"switch_ms_median", median_with_interval(switches).value / 1000}, {"first_switch_ms", switches.empty() ? 0 : switches[0] / 1000},
                                {"said", collector.status().xray}};
}

TEST_F(Xray, CostsLittle) {
  measure("launch bound: 30 small kernels", [] {
    for (int i = 0; i < 30; ++i) xray::launch_small(nullptr);
  });
  measure("GPU bound: 1 kernel", [] { xray::planted()[1].launch(nullptr, 64); });
  for (const auto& [name, cost] : Xray::json()["cost"].items()) EXPECT_LT(cost["added_share"].get<double>() - cost["half_width"].get<double>(), 0.30) << name;
}

}  // namespace
}  // namespace ws::prof
