// Samples by kernel, by line and by reason, on made samples.
#include "profiling/analysis/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "profiling/base/failure.h"
#include "tests/support/made_stalls.h"

namespace ws::prof {
namespace {

using testing::AnyOf;
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
  inlined.add("bias_relu(float*)", 1, "/toolkit/math.h", 96, 99, {{Stall::MathPipe, 70}});
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

TEST(Stalls, InstructionsSumToTheirLinesAndToTheirKernel) {
  const MadeStalls made;
  Disassembly text{1, {}, {}};
  for (const uint32_t offset : {0u, 16u, 32u, 48u, 64u}) text.instructions.push_back({offset, "FADD R" + std::to_string(offset), {}, 0});
  for (const StallRow& kernel : stalls_by_kernel(made.run.trace)) {
    const std::vector<StallRow> rows = stalls_by_instruction(made.run.trace, kernel.kernel, {text});
    EXPECT_EQ(sum(rows), kernel.samples) << kernel.kernel;
    std::map<std::pair<std::string, int>, uint64_t> of_lines;
    for (const StallRow& row : rows) of_lines[{row.file, row.line}] += row.samples;
    for (const StallRow& line : stalls_by_line(made.run.trace, kernel.kernel)) EXPECT_EQ((of_lines[{line.file, line.line}]), line.samples) << line.place();
  }
  const std::vector<StallRow> rows = stalls_by_instruction(made.run.trace, "bias_relu(float*)", {text});
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[2].offset, 32u);
  EXPECT_EQ(rows[2].instruction, "FADD R32");
  EXPECT_EQ(rows[4].samples, 0u);
  EXPECT_EQ(rows[4].place(), "my.cu:18") << "an instruction without samples has its line";
  EXPECT_EQ(stalls_by_line(made.run.trace, "bias_relu(float*)").size(), 3u) << "and adds no row of a line";
}

TEST(Stalls, CallsSumToTheirKernel) {
  const MadeStalls made;
  const std::vector<StallRow> rows = stalls_by_call(made.run.trace, "bias_relu(float*)");
  std::vector<std::string> shown;
  for (const StallRow& row : rows) shown.push_back(std::string(static_cast<size_t>(row.depth), '>') + row.place() + " " + row.function + " " + std::to_string(row.samples));
  EXPECT_THAT(shown, testing::ElementsAre("my.cu:30  750", ">my.cu:18 add(float*) 750", "my.cu:31  200", ">my.cu:12 meet() 200", "my.cu:14  50"));
  EXPECT_TRUE(stalls_by_call(made.run.trace, "library_gemm").empty());
  EXPECT_THAT(to_text(stall_report(made.run, "bias")), HasSubstr("  my.cu:18 in add\n"));
}

TEST(Stalls, TheReportHasInstructionsWhenTheyAreAskedFor) {
  const MadeStalls made;
  EXPECT_TRUE(stall_report(made.run, "bias").instructions.empty());
  const StallReport report = stall_report(made.run, "library", true);
  EXPECT_THAT(report.no_instructions, HasSubstr("keeps no machine code"));
  EXPECT_THAT(to_text(report), HasSubstr("0x0000"));
  const auto json = nlohmann::json::parse(to_json(stall_report(made.run, "bias", true)));
  ASSERT_EQ(json["instructions"].size(), 5u);
  EXPECT_EQ(json["instructions"][2]["offset"], 32);
  EXPECT_EQ(json["instructions"][2]["line"], "my.cu:12");
  EXPECT_EQ(json["instructions"][2]["barrier"], 200);
}

TEST(Stalls, ARunWithoutSamplesShowsHowToGetThem) {
  RunData run;
  EXPECT_THAT(to_text(stall_report(run)), HasSubstr("No samples yet"));
  run.summary.extra[kXrayKey] = "No X-ray: another profiler is reading them.";
  EXPECT_EQ(to_text(stall_report(run)), "No X-ray: another profiler is reading them.\n");
}

RunData two_lines(uint64_t first, uint64_t second, const char* folder = "/home") {
  MadeStalls made;
  made.run = RunData();
  const std::string file = std::string(folder) + "/my.cu";
  made.add("mine(float*)", 1, file.c_str(), 0, 14, {{Stall::GlobalMemory, first}});
  made.add("mine(float*)", 1, file.c_str(), 16, 20, {{Stall::MathPipe, second}});
  return std::move(made.run);
}

StallComparison compared(const RunData& a, const RunData& b) { return compare_stalls(stalls_of_run(a.trace), stalls_of_run(b.trace)); }

TEST(StallComparison, TheSharesOfARunSumToOneAndLinesToTheirKernel) {
  const MadeStalls made;
  const RunStalls run = stalls_of_run(made.run.trace);
  ASSERT_EQ(run.kernels.size(), 3u);
  double kernels = 0;
  std::map<std::string, double> lines;
  for (const StallRow& row : run.kernels) kernels += row.share;
  for (const StallRow& row : run.lines) lines[row.kernel] += row.share;
  EXPECT_NEAR(kernels, 1, 1e-12);
  for (const StallRow& row : run.kernels) {
    EXPECT_NEAR(lines[row.kernel], row.file.empty() ? 0 : row.share, 1e-12) << row.kernel << ": a library has no lines";
  }
}

// Newcombe's example: 56 of 70 and 48 of 80 differ by 0.2, with the interval 0.0524 to 0.3339.
TEST(StallComparison, TheIntervalIsNewcombes) {
  const auto lines = compared(two_lines(48, 32), two_lines(56, 14)).lines;
  ASSERT_EQ(lines.size(), 2u);
  const StallDelta& line = lines[0].row().line == 14 ? lines[0] : lines[1];
  EXPECT_NEAR(line.delta(), 0.2, 1e-12);
  EXPECT_NEAR(line.low, 0.0524, 1e-4);
  EXPECT_NEAR(line.high, 0.3339, 1e-4);
  EXPECT_FALSE(line.differs) << "fewer than 100 samples";
}

TEST(StallComparison, ALineThatWaitsLessIsNamedAndTooFewSamplesAreNot) {
  const StallComparison clear = compared(two_lines(6000, 4000, "/before"), two_lines(4140, 5860, "/after"));
  ASSERT_EQ(clear.lines.size(), 2u) << "the same line, wherever its file is";
  for (const StallDelta& line : clear.lines) EXPECT_TRUE(line.differs);
  EXPECT_THAT(headline(clear), AnyOf("my.cu:14 has 31 % less of the samples in B", "my.cu:20 has 46 % more of the samples in B"));
  const std::string text = to_text(stall_delta_table(clear.lines, true));
  EXPECT_THAT(text, HasSubstr("-31"));
  EXPECT_THAT(text, HasSubstr("global memory"));
  EXPECT_FALSE(clear.kernels[0].differs) << "its one kernel has all samples of both";
  const StallComparison few = compared(two_lines(60, 40), two_lines(41, 59));
  EXPECT_EQ(headline(few), "");
  EXPECT_THAT(to_text(stall_delta_table(few.lines, true)), HasSubstr("cannot tell"));
  EXPECT_FALSE(compared(two_lines(500, 500), two_lines(505, 495)).lines[0].differs) << "an interval that holds 0";
}

TEST(StallComparison, WhatOnlyOneRunHasIsARowToo) {
  const StallComparison c = compared(two_lines(5000, 0), two_lines(5000, 5000));
  ASSERT_EQ(c.lines.size(), 2u);
  EXPECT_TRUE(c.lines[0].differs && c.lines[1].differs);
  EXPECT_TRUE(std::isnan(c.lines[0].row().line == 20 ? c.lines[0].change() : c.lines[1].change()));
  EXPECT_FALSE(compared(two_lines(5, 5), RunData()).any()) << "a run without samples is not compared";
}

}  // namespace
}  // namespace ws::prof
