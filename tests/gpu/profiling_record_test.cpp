// A foreign program, recorded from outside: everything it did is in the file, and its own behaviour is unchanged.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <filesystem>
#include <map>

#include "profiling/collectors/record.h"
#include "profiling/failure.h"
#include "profiling/formats/run_file.h"

namespace ws::prof {
namespace {

class Recording : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("recording-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    file_ = folder_ / "run.wsrun";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void need_gpu() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  }
  int run(const std::string& mode) {
    return record({RECORDED_PROGRAM, mode}, file_, {.level = TraceLevel::Full, .library = INJECT_LIBRARY});
  }

  struct Read {
    RunSummary summary;
    std::map<std::string, int> kernels;
    uint64_t allocations = 0, frees = 0;
    size_t steps = 0, calls = 0;
    std::vector<std::string> problems;
  };
  Read read() {
    RunFileReader reader(file_);
    Trace trace = reader.trace();
    reader.fill(trace);
    Read result;
    result.summary = reader.summary();
    for (const StepAllocations& a : reader.allocations()) result.allocations += a.allocations, result.frees += a.frees;
    for (const Track& track : trace.tracks()) {
      if (track.kind == TrackKind::Steps) result.steps += track.spans;
      if (track.kind == TrackKind::Api) result.calls += track.spans;
      if (track.kind != TrackKind::Stream) continue;
      for (const SpanBlock& block : track.blocks) {
        for (const Span& span : block.spans) ++result.kernels[trace.name(span.name)];
      }
    }
    result.problems = reader.problems();
    return result;
  }

  std::filesystem::path folder_, file_;
};

int count(const std::map<std::string, int>& kernels, const std::string& part) {
  int sum = 0;
  for (const auto& [name, n] : kernels) sum += name.find(part) != std::string::npos ? n : 0;
  return sum;
}

TEST_F(Recording, HoldsEveryKernelCallAndAllocation) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("plain"), 0);
  const Read read_back = read();
  EXPECT_EQ(count(read_back.kernels, "fill_kernel"), 300);
  EXPECT_EQ(count(read_back.kernels, "empty_kernel"), 300);
  EXPECT_EQ(count(read_back.kernels, "other_kernel"), 100);
  EXPECT_EQ(read_back.allocations, 100u);
  EXPECT_EQ(read_back.frees, 100u);
  EXPECT_EQ(read_back.steps, 100u);
  EXPECT_GE(read_back.calls, 700u + 200u + 100u);
  EXPECT_EQ(read_back.summary.status, "finished");
  EXPECT_TRUE(read_back.problems.empty());
}

TEST_F(Recording, SurvivesAFork) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("fork"), 0);
  EXPECT_EQ(count(read().kernels, "other_kernel"), 100);
}

TEST_F(Recording, KeepsWhatWasWrittenWhenTheProgramJustStops) {
  need_gpu();
  if (IsSkipped()) return;
  EXPECT_EQ(run("exit"), 3);
  RunFileReader reader(file_);
  EXPECT_EQ(reader.summary().status, "stopped") << "whoever recorded it has ended the file";
}

TEST_F(Recording, SaysThatAProgramDidNotStartCuda) {
  try {
    run("none");
    FAIL() << "nothing was recorded";
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("exit status 5"), std::string::npos) << failure.what();
  }
}

TEST_F(Recording, SaysThatAProgramCannotBeStarted) {
  EXPECT_THROW(record({"/no/such/program"}, file_, {.library = INJECT_LIBRARY}), Failure);
  EXPECT_THROW(record({}, file_, {.library = INJECT_LIBRARY}), Failure);
}

}  // namespace
}  // namespace ws::prof
