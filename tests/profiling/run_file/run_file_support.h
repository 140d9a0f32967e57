// A run file in a folder of the test's own, and what is written into it.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "profiling/run_file/run_file.h"
#include "tests/profiling/trace/made_trace.h"

namespace ws::prof {

class RunFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("run_file_test_" + std::to_string(getpid()));
  std::string path = (folder / "a.wsrun").string();
};

inline RunSummary summary_of_test() {
  RunSummary summary;
  summary.name = "arena · graph";
  summary.device = "NVIDIA H200";
  summary.status = "finished";
  summary.spec = R"({"launch":"graph"})";
  summary.tags = {"fast", "it's \"quoted\""};
  summary.steps = 3000;
  summary.test_loss = 0.0625;
  summary.peak_bytes = 1ull << 34;
  summary.us_per_step = 12.3;
  summary.extra["later"] = "kept";
  return summary;
}

inline void expect_same_trace(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.tracks().size(), b.tracks().size());
  for (size_t t = 0; t < a.tracks().size(); ++t) {
    const auto left = spans_of(a.tracks()[t]), right = spans_of(b.tracks()[t]);
    ASSERT_EQ(left.size(), right.size());
    for (size_t i = 0; i < left.size(); ++i) {
      ASSERT_TRUE(same(left[i], right[i])) << t << " " << i;
      ASSERT_EQ(a.name(left[i].name), b.name(right[i].name));
      ASSERT_EQ(a.detail(left[i].detail), b.detail(right[i].detail));
    }
  }
}

inline void write_run(const std::string& path, const Trace& trace) {
  RunFileWriter writer(path, summary_of_test());
  writer.add(trace);
  writer.finish();
}

inline TraceBatch batch_of(int from, int count) {
  TraceBatch batch;
  batch.names = {"gemm", "relu"};
  BatchTrack track{TrackKind::Stream, "stream 7", "GPU 0", 0, {}};
  for (int i = from; i < from + count; ++i) {
    Span span;
    span.start = TimeNs{i} * 1000;
    span.duration = 500;
    span.name = NameId{static_cast<uint32_t>(i % 2)};
    span.step = static_cast<uint32_t>(i + 1);
    track.spans.push_back(span);
  }
  batch.tracks.push_back(std::move(track));
  batch.counters.push_back({"memory used", "B", CounterKind::MemoryUsed, {{from, 1.0 * from}}});
  StepAllocations calls;
  calls.step = static_cast<uint32_t>(from + 1);
  calls.allocations = 20;
  batch.allocations.push_back(calls);
  return batch;
}

}  // namespace ws::prof
