// What the process of a first call writes down comes into the sweep's trace, on rows of its own.
#include "app/core/lab/first_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/workloads/workload.h"
#include "profiling/base/clock.h"
#include "profiling/base/failure.h"

namespace ws::app {
namespace {

namespace fs = std::filesystem;

class FirstCall : public testing::Test {
 protected:
  void SetUp() override { fs::remove(file_); }
  void TearDown() override {
    unsetenv(lab::kChildTrace);
    unsetenv("WARPSIGHT_LAB_COLD");
    fs::remove(file_);
  }
  bool make_one(int64_t origin_ns) {
    setenv(lab::kChildTrace, first_call_order(file_, origin_ns).c_str(), 1);
    setenv("WARPSIGHT_LAB_COLD", R"({"operation":"add","sizes":[64]})", 1);
    return run_first_call_if_asked();
  }
  const std::string file_ = testing::TempDir() + "/warpsight first call " + std::to_string(getpid());
};

TEST_F(FirstCall, NobodyAsksWithoutTheVariable) {
  EXPECT_FALSE(run_first_call_if_asked());
  EXPECT_TRUE(take_first_calls(file_).empty());
}

#ifdef WARPSIGHT_HAVE_CUDA
// With a GPU or without: making the context is what it begins with.
TEST_F(FirstCall, ItsPhasesStandOnRowsOfTheirOwnInTheSweepsTime) {
  const int64_t origin = prof::steady_ns() - 5'000'000'000;
  ASSERT_TRUE(make_one(origin));
  ASSERT_TRUE(make_one(origin));
  const auto batches = take_first_calls(file_);
  EXPECT_FALSE(fs::exists(file_));
  int contexts = 0;
  for (const prof::TraceBatch& batch : batches)
    for (const prof::BatchTrack& track : batch.tracks) {
      EXPECT_THAT(track.group, testing::StartsWith(kFirstCallRows));
      for (const prof::Span& span : track.spans) {
        if (track.kind == prof::TrackKind::Phases && batch.names[static_cast<size_t>(span.name)] == "context")
          ++contexts;
        EXPECT_GT(span.start, 4'900'000'000);
        EXPECT_LT(span.end(), prof::steady_ns() - origin);
      }
    }
  EXPECT_EQ(contexts, 2);
}

TEST_F(FirstCall, AFileThatBreaksOffGivesWhatIsWhole) {
  ASSERT_TRUE(make_one(prof::steady_ns()));
  std::ofstream(file_, std::ios::binary | std::ios::app) << "12345678901";
  EXPECT_FALSE(take_first_calls(file_).empty());
  ASSERT_TRUE(make_one(prof::steady_ns()));
  fs::resize_file(file_, 12);
  EXPECT_TRUE(take_first_calls(file_).empty());
  std::ofstream(file_, std::ios::binary) << std::string("\x08\0\0\0\0\0\0\0", 8) << "no batch";
  EXPECT_THROW(take_first_calls(file_), Failure);
}
#endif

}  // namespace
}  // namespace ws::app
