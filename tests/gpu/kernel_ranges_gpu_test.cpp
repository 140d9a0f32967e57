// Programs that name what their kernels do inside are recorded with these ranges.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "profiling/recording/record_program.h"
#include "profiling/run_file/run_file.h"
#include "profiling/trace/span_walk.h"
#include "tests/support/own_file.h"

namespace ws::prof {
namespace {

class KernelRanges : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    folder_ = std::filesystem::path(::testing::TempDir()) / ("ranges-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    said_ = folder_ / "said";
  }
  void TearDown() override {
    if (!folder_.empty()) test::remove_folder(folder_);
  }
  void record(const std::string& mode) {
    const std::string file = folder_ / "run.wsrun";
    RecordedProgram program({RANGED_PROGRAM, mode, said_}, file,
                            {.level = TraceLevel::Full, .library = INJECT_LIBRARY});
    std::optional<int> status;
    while (!(status = program.wait(100)))
      while (!program.take().empty()) {
      }
    ASSERT_EQ(*status, 0);
    RunFileReader reader(file);
    trace_ = reader.trace();
    reader.fill(trace_);
    const auto& extra = reader.summary().extra;
    problems_ = extra.contains("kernel_ranges") ? extra.at("kernel_ranges") : "";
    for (const Track& track : trace_.tracks())
      each_span(track, -kAlways, kAlways, [&](const Span& span) {
        if (track.kind == TrackKind::Inner) lanes_[track.name].push_back(span);
        if (track.kind == TrackKind::Stream && is_kernel(span)) kernels_.push_back(span);
        copies_ += span.span_kind() == SpanKind::Copy;
      });
  }
  std::vector<double> said() const {
    std::ifstream file(said_);
    std::vector<double> numbers;
    for (double number; file >> number;) numbers.push_back(number);
    return numbers;
  }

  std::filesystem::path folder_, said_;
  Trace trace_;
  std::map<std::string, std::vector<Span>> lanes_;
  std::vector<Span> kernels_;
  size_t copies_ = 0;
  std::string problems_;
};

TEST_F(KernelRanges, FillTheRecordOfTheirKernel) {
  record("planted");
  if (HasFatalFailure()) return;
  EXPECT_EQ(problems_, "");
  EXPECT_EQ(trace_.losses.dropped_records, 0u);
  EXPECT_EQ(copies_, 0u) << "our own copies are not the program's";
  ASSERT_EQ(kernels_.size(), 10u) << "nor is the kernel that reads the clock";
  EXPECT_EQ(lanes_.size() * kernels_.size(), static_cast<size_t>(said()[0])) << "one lane a multiprocessor";
  std::map<std::string, double> planted{{"load", 20}, {"multiply", 60}, {"store", 40}};
  for (const auto& [lane, spans] : lanes_) {
    ASSERT_EQ(spans.size(), 10u * 40 * 3) << lane;
    for (const Span& kernel : kernels_) {
      double sum = 0;
      std::map<std::string, double> parts;
      for (const Span& span : spans) {
        if (span.start < kernel.start || span.end() > kernel.end()) continue;
        sum += static_cast<double>(span.duration), parts[trace_.name(span.name)] += static_cast<double>(span.duration);
      }
      EXPECT_NEAR(sum, static_cast<double>(kernel.duration), 0.01 * static_cast<double>(kernel.duration)) << lane;
      for (const auto& [name, cycles] : planted) EXPECT_NEAR(parts[name] / sum, cycles / 120, 0.005) << lane << name;
    }
    EXPECT_TRUE(std::ranges::none_of(spans, [](const Span& span) { return span.flags & kEstimated; })) << lane;
  }
}

TEST_F(KernelRanges, WarpsHaveLanesOfTheirOwn) {
  record("warps");
  if (HasFatalFailure()) return;
  EXPECT_EQ(problems_, "");
  ASSERT_EQ(lanes_.size() % 4, 0u);
  for (const auto& [lane, spans] : lanes_) {
    ASSERT_EQ(spans.size(), 1u) << lane;
    EXPECT_EQ(trace_.name(spans[0].name), lane.ends_with("warp 00") ? "load" : "multiply") << lane;
  }
}

TEST_F(KernelRanges, TheInnermostRangeIsShown) {
  record("nested");
  if (HasFatalFailure()) return;
  ASSERT_EQ(lanes_.size(), 1u);
  const std::vector<Span>& spans = lanes_.begin()->second;
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(trace_.name(spans[1].name), "inner");
  const double outer = static_cast<double>(spans[0].duration + spans[2].duration);
  EXPECT_NEAR(static_cast<double>(spans[1].duration) / outer, 1, 0.02);
}

// One kernel of 1.5 s writes many times more than the ring holds.
TEST_F(KernelRanges, AreReadWhileTheKernelRuns) {
  record("endless");
  if (HasFatalFailure()) return;
  EXPECT_EQ(problems_, "");
  size_t spans = 0;
  for (const auto& [lane, of] : lanes_) spans += of.size();
  EXPECT_EQ(static_cast<double>(spans), said()[0]);
  EXPECT_GT(2 * spans, 32'768u) << "stamps that the ring holds";
}

// A recorded program pays for the stamps, another one for a branch. Seen on an H200: 56 to 66 ns, and 15 to 22 ns.
TEST_F(KernelRanges, CostLittle) {
  const auto measure = [&](const char* who) {
    const std::vector<double> ms = said();
    const double ns = 1e6 * (ms[1] - ms[0]) / ms[2];
    std::printf("%s: %.4f ms without ranges, %.4f ms with them, %.1f ns a stamp\n", who, ms[0], ms[1], ns);
    return ns;
  };
  ASSERT_EQ(std::system((std::string(RANGED_PROGRAM) + " cost '" + said_.string() + "'").c_str()), 0);
  EXPECT_LT(measure("not recorded"), 40);
  record("cost");
  if (HasFatalFailure()) return;
  EXPECT_LT(measure("recorded"), 120);
}

}  // namespace
}  // namespace ws::prof
