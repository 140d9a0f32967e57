// Samples by kernel, by line and by reason, on made samples.
#include "profiling/analysis/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "tests/support/made_stalls.h"

namespace ws::prof {
namespace {

using testing::HasSubstr;

uint64_t sum(const std::vector<StallRow>& rows) {
  uint64_t all = 0;
  for (const StallRow& row : rows) all += row.samples;
  return all;
}

TEST(Stalls, LinesSumToTheirKernelAndGroupsToTheirLine) {
  const MadeStalls made;
  const std::vector<StallRow> kernels = stalls_by_kernel(made.run.trace);
  ASSERT_EQ(kernels.size(), 3u);
  for (const StallRow& kernel : kernels) {
    const std::vector<StallRow> lines = stalls_by_line(made.run.trace, kernel.kernel);
    EXPECT_EQ(sum(lines), kernel.samples) << kernel.kernel;
    for (const StallRow& line : lines) {
      uint64_t groups = 0;
      for (const uint64_t count : by_group(line.counts)) groups += count;
      EXPECT_EQ(groups, line.samples);
    }
  }
  EXPECT_EQ(kernels[0].kernel, "bias_relu(float*)");
  EXPECT_EQ(kernels[0].samples, 1000u);
  EXPECT_NEAR(kernels[0].share, 1000.0 / 1900, 1e-9);
  uint64_t of_windows = 0;
  for (const SampledWindow& window : made.run.trace.stalls.windows()) of_windows += window.samples;
  EXPECT_EQ(sum(kernels), of_windows);
}

TEST(Stalls, KernelsOfOneNameAreTheirModules) {
  MadeStalls made;
  made.add("bias_relu(float*)", 2, "/home/other.cu", 0, 3, {{Stall::Barrier, 50}});
  const std::vector<StallRow> kernels = stalls_by_kernel(made.run.trace);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].kernel, "bias_relu(float*) · my.cu");
  EXPECT_EQ(kernels[3].kernel, "bias_relu(float*) · other.cu");
  EXPECT_EQ(sum(stalls_by_line(made.run.trace, kernels[3].kernel)), 50u);
}

TEST(Stalls, LinesOfAFileAreInOrder) {
  const MadeStalls made;
  for (const char* name : {"my.cu", "/home/my.cu", "/elsewhere/home/my.cu"}) {
    if (name[1] == 'e') {
      EXPECT_TRUE(stalls_of_file(made.run.trace, name).empty());
      continue;
    }
    const std::vector<StallRow> lines = stalls_of_file(made.run.trace, name);
    ASSERT_EQ(lines.size(), 3u) << name;
    EXPECT_EQ(lines[0].line, 12);
    EXPECT_EQ(lines[2].line, 18);
  }
  MadeStalls inlined;
  inlined.add("bias_relu(float*)", 1, "/toolkit/math.h", 64, 99, {{Stall::MathPipe, 70}});
  const std::vector<StallRow> lines = stalls_of_file(inlined.run.trace, "my.cu");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].line, 0);
  EXPECT_EQ(lines[0].samples, 70u);
  EXPECT_EQ(sum(lines), 1070u);
  EXPECT_TRUE(stalls_of_file(made.run.trace, "y.cu").empty());
  EXPECT_TRUE(stalls_of_file(made.run.trace, "").empty());
}

TEST(Stalls, TheMainReasonIsOneThatWaits) {
  const MadeStalls made;
  const std::vector<StallRow> kernels = stalls_by_kernel(made.run.trace);
  const auto reason = main_reason(kernels[0]);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->reason, Stall::GlobalMemory);
  EXPECT_NEAR(reason->share, 0.6, 1e-9);
  StallRow busy;
  busy.counts[static_cast<size_t>(Stall::Issued)] = busy.samples = 10;
  EXPECT_FALSE(main_reason(busy));
}

TEST(Stalls, ATableIsPrintedWithItsLines) {
  const MadeStalls made;
  const std::string all = to_text(stall_report(made.run));
  EXPECT_THAT(all, HasSubstr("waits most for"));
  EXPECT_THAT(all, HasSubstr("--kernel"));
  const std::string one = to_text(stall_report(made.run, "bias"));
  EXPECT_THAT(one, HasSubstr("my.cu:18"));
  EXPECT_THAT(one, HasSubstr("global memory"));
  EXPECT_THAT(to_text(stall_report(made.run, "library")), HasSubstr("line not known"));
  EXPECT_THROW(stall_report(made.run, "absent"), Failure);
  const auto json = nlohmann::json::parse(to_json(stall_report(made.run, "bias")));
  EXPECT_EQ(json["by_stall"][0]["samples"], 1000);
  EXPECT_EQ(json["by_stall"][0]["global_memory"], 600);
  EXPECT_EQ(json["lines"][0]["line"], "my.cu:18");
  EXPECT_EQ(json["windows"][0]["steps"], 20);
  EXPECT_EQ(json["windows"][0]["cycles"], 1024);
}

TEST(Stalls, ARunWithoutSamplesShowsHowToGetThem) {
  RunData run;
  EXPECT_THAT(to_text(stall_report(run)), HasSubstr("Not sampled yet"));
  run.summary.extra[kXrayKey] = "No X-ray: another profiler is reading them.";
  EXPECT_EQ(to_text(stall_report(run)), "No X-ray: another profiler is reading them.\n");
}

}  // namespace
}  // namespace ws::prof
