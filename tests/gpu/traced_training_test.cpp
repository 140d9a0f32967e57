// MNIST as a user trains it, traced in every launch mode: each kernel of the run has its op, and none takes longer than
// the run.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "profiling/analysis/stalls.h"
#include "profiling/trace/span_walk.h"
#include "profiling/formats/convert.h"

namespace ws::prof {
namespace {

struct Mode {
  const char* name;
  const char* choices;
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

class SampledTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    folder_ = std::filesystem::path(::testing::TempDir()) / ("traced-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  RunData train(const std::string& arguments) {
    const std::string file = folder_ / "run.wsrun";
    const std::string command =
        std::string(WARPSIGHT_CLI) + " train mnist --set exec.device=cuda --set train.epochs=2 " + arguments +
        " --run " + file + " --out " + (folder_ / "out").string() + " >" + (folder_ / "log").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return import_run(file);
  }

  std::filesystem::path folder_;
};
class TracedTraining : public SampledTraining, public ::testing::WithParamInterface<Mode> {};

// The persistent kernel under X-ray: its calls name the roles, and below each the phases of its step.
TEST_F(SampledTraining, ThePersistentKernelHasRolesAndPhases) {
  const RunData run = train("--set exec.launch=persistent --set exec.fusion=epilogue --set exec.precision=tf32 --xray 40");
  const std::vector<StallRow> kernels = stalls_by_kernel(run.trace);
  const auto kernel = std::ranges::find_if(kernels, [](const StallRow& row) { return row.kernel.find("ws_train") != std::string::npos; });
  ASSERT_NE(kernel, kernels.end()) << run.summary.said(kXrayKey);
  uint64_t of_roots = 0;
  std::map<std::string, std::set<int>> phases;  // lines, by role
  std::string text;
  for (const StallRow& row : stalls_by_call(run.trace, kernel->kernel)) {
    if (row.depth == 0) of_roots += row.samples;
    if (row.depth == 1) phases[row.function].insert(row.line);
    const auto reason = main_reason(row);
    if (row.depth < 3) text += std::string(2 * static_cast<size_t>(row.depth), ' ') + row.place() + " " + row.function + " " + std::to_string(row.samples) + " " + (reason ? stall_name(reason->reason) : "") + "\n";
  }
  std::printf("%s\n%s", run.summary.said(kXrayKey).c_str(), text.c_str());
  EXPECT_GE(static_cast<double>(of_roots), 0.9 * static_cast<double>(kernel->samples)) << text;
  EXPECT_GE(phases.size(), 2u) << text;
  EXPECT_TRUE(std::ranges::any_of(phases, [](const auto& role) { return role.second.size() >= 3; })) << text;
}

constexpr int64_t kMillisecond = 1'000'000;

struct Kernels {
  uint64_t count = 0, without_op = 0;
  int64_t longest = 0, time = 0;
};

Kernels kernels_of(const Trace& trace) {
  Kernels k;
  for (const Track& track : trace.tracks()) {
    if (track.kind != TrackKind::Stream) continue;
    each_span(track, trace.first_time(), trace.last_time() + 1, [&](const Span& span) {
      if (!is_kernel(span)) return;
      ++k.count;
      k.without_op += span.op == kNoOp;
      k.longest = std::max(k.longest, static_cast<int64_t>(span.duration));
      k.time += static_cast<int64_t>(span.duration);
    });
  }
  return k;
}

TEST_P(TracedTraining, EveryKernelHasItsOpAndItsOwnTime) {
  const RunData run = train(std::string("--trace full ") + GetParam().choices);
  const Kernels k = kernels_of(run.trace);
  EXPECT_GE(k.count, 1000u);
  EXPECT_LE(k.without_op, k.count / 1000);
  EXPECT_LE(run.trace.losses.unjoined_kernels, k.count / 1000);
  EXPECT_EQ(run.trace.losses.dropped_records, 0u);
  EXPECT_EQ(run.trace.losses.invalid_records, 0u);
  EXPECT_LT(k.longest, 2 * kMillisecond);
  // Kernels that overlap their neighbours count twice, not more.
  EXPECT_LE(k.time, 2 * (run.trace.last_time() - run.trace.first_time()));
}

// Kernels of graphs, in windows of some steps only.
TEST_P(TracedTraining, WindowsHoldWholeKernels) {
  const RunData run = train(std::string("--trace graph --trace-window 20/500 ") + GetParam().choices);
  const Kernels k = kernels_of(run.trace);
  EXPECT_GE(k.count, 50u);
  EXPECT_LE(k.without_op, k.count / 1000);
  EXPECT_LT(k.longest, 2 * kMillisecond);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, TracedTraining,
    ::testing::Values(Mode{"eager", "--set exec.launch=eager"}, Mode{"graph", "--set exec.launch=graph"},
                      Mode{"one_step_a_graph", "--set exec.launch=graph --set exec.graph_steps=1"},
                      Mode{"naive",
                           "--set exec.launch=eager --set exec.allocator=direct --set exec.fusion=off "
                           "--set exec.sync=every-op"},
                      Mode{"pool", "--set exec.launch=eager --set exec.allocator=stream-ordered"},
                      Mode{"wide", "--set exec.launch=eager --set model.hidden=1536,1536 --set train.batch=256"}),
    [](const auto& mode) { return std::string(mode.param.name); });

}  // namespace
}  // namespace ws::prof
