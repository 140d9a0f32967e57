#include "app/core/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/core/report/drawing.h"
#include "app/core/report/report_figures.h"
#include "profiling/analysis/gpu_steps.h"
#include "profiling/analysis/kernel_table.h"
#include "profiling/base/whole_file.h"
#include "profiling/run_file/run_file.h"
#include "tests/support/graph_run.h"

namespace ws::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

ReportRun made(const std::string& title, double us, int64_t matrix_ns, int64_t allocation_ns) {
  ReportRun run;
  run.run.name = title;
  run.run.spec.emplace();
  if (us > 0) run.run.time = {{us, 0.5}, us - 1, us + 1};
  run.run.traced = Traced::Kernels;
  for (int i = 0; i < 5000; ++i) run.loss.push_back({static_cast<double>(i), i * 1e-4, 2.3 / (1 + i * 0.01)});
  run.accuracy = {{1000, 0.1, 90}, {5000, 0.5, 97}};
  prof::Breakdown& parts = run.run.sample.median_parts;
  parts.steps = 10;
  parts.times[static_cast<size_t>(prof::Meaning::Matrix)] = 10 * matrix_ns;
  parts.times[static_cast<size_t>(prof::Meaning::Allocation)] = 10 * allocation_ns;
  parts.end = 10 * (matrix_ns + allocation_ns);
  run.run.sample.parts = parts;
  return run;
}

std::string page() {
  ReportRun a = made("direct <script>alert(1)</script>", 300, 100'000, 200'000),
            b = made("arena & graph", 100, 100'000, 0);
  b.run.spec->exec.allocator = Allocator::Caching;
  return report_html({a, b});
}

TEST(Report, StandsAlone) {
  std::string html = page();
  size_t at = 0;
  while ((at = html.find("http", at)) !=
         std::string::npos) {  // only the name of the SVG language may look like an address
    EXPECT_EQ(html.substr(at, 26), "http://www.w3.org/2000/svg");
    at += 4;
  }
  for (const char* loader : {"<link", "<script", "src=", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(loader)));
}

TEST(Report, ReportsWhatDiffersAndEscapesWhatPeopleWrote) {
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("exec.allocator"));
  EXPECT_THAT(html, HasSubstr("<td>arena</td><td>caching</td>"));
  EXPECT_THAT(html, Not(HasSubstr("exec.fusion")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("B is 3.00× faster per step"));
  EXPECT_THAT(html, HasSubstr("100.0, 99.0 to 101.0 (−66.7 %)"));
  EXPECT_THAT(html, HasSubstr("batch 64, fp32")) << "a figure says what it shows";
}

// The first steps of a run are slow; it is laid beside others by those that were sampled.
TEST(Report, AStepComesFromTheSampleAndTheWholeRunIsNamed) {
  ReportRun a = made("a", 300, 100'000, 200'000), b = made("b", 100, 100'000, 0), bare = made("bare", 0, 0, 0);
  bare.run.sample = {};
  a.run.whole_run_us = 350, b.run.whole_run_us = 170, bare.run.whole_run_us = 150;
  bare.run.time = prof::step_time({}, {}, 150);
  EXPECT_DOUBLE_EQ(measure(measures_of(b.run), MeasureKind::Throughput).value.value, 640'000);
  EXPECT_DOUBLE_EQ(bare.run.time.us.value, 150) << "nothing was sampled";
  EXPECT_EQ(headline({a, b}), "B is 3.00× faster per step");
  const std::string html = report_html({a, b, bare});
  EXPECT_THAT(html, HasSubstr("<th>step time, µs</th><th>mean with pauses, µs</th>"));
  EXPECT_THAT(html, HasSubstr("<td>300.0, 299.0 to 301.0</td><td>350.0</td>"));
  EXPECT_THAT(html, HasSubstr("<td>100.0, 99.0 to 101.0 (−66.7 %)</td><td>170.0</td>"));
  EXPECT_THAT(html, HasSubstr("median of the traced steps, without the first ones"));
}

TEST(Report, LargeNumbersAreReadInThousands) {
  EXPECT_EQ(figure::grouped(3418765), "3\u202F418\u202F765");
  EXPECT_EQ(figure::grouped(214701.4), "214\u202F701");
  EXPECT_EQ(figure::grouped(123456789), "123\u202F456\u202F789");
  EXPECT_EQ(figure::grouped(9999), "9\u202F999");
  EXPECT_EQ(figure::grouped(0), "–");
  EXPECT_EQ(figure::fixed(-0.001, 2), "0.00");
  EXPECT_EQ(figure::signed_fixed(0.001, 2), "0.00");
  EXPECT_EQ(figure::signed_fixed(-1.5, 1), "−1.5");
  EXPECT_EQ(prof::shortened("momentum W₁ of fc2", 12), "moment…f fc2");
  EXPECT_EQ(prof::shortened("fc2", 3), "fc2");
}

TEST(Report, FiguresAreWellFormedAndThinned) {
  const auto all = figures({made("a", 300, 100'000, 200'000), made("b", 100, 100'000, 0)});
  ASSERT_EQ(all.size(), 5u);
  for (const ReportFigure& f : all) {
    const std::string svg = to_svg(f.drawing);
    EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    EXPECT_EQ(std::ranges::count(svg, '<'), std::ranges::count(svg, '>'));
    EXPECT_LT(svg.size(), 100'000u) << f.name;
  }
  EXPECT_THAT(to_svg(all[4].drawing), HasSubstr("−200.0"));  // allocation: the whole difference
}

TEST(Report, WhatCannotBeComparedIsReported) {
  ReportRun a = made("mnist", 30, 20'000, 10'000), b = made("iris", 26'000, 20'000, 0);
  EXPECT_THAT(report_html({a, a}), Not(HasSubstr("Read with care")));
  b.run.spec->data.name = "iris";
  std::string html = report_html({a, b});
  EXPECT_THAT(html, HasSubstr("<h1>A and B train different things</h1>"));
  EXPECT_THAT(html, HasSubstr("the data sets differ"));
  EXPECT_THAT(html, HasSubstr("<td>26000.0, 25999.0 to 26001.0</td>")) << "no share of a step that does something else";
  b = made("batch", 60, 20'000, 0);
  b.run.spec->train.batch = 256;
  html = report_html({a, b});
  EXPECT_THAT(html, HasSubstr("B trains 2.00× as many samples per second as A"));
  EXPECT_THAT(html, HasSubstr("the batches differ"));
  b = made("slow", 26'000, 20'000, 0);
  EXPECT_EQ(headline({a, b}), "B is 867× slower per step");
  b = made("as fast", 30.4, 20'400, 10'000);
  html = report_html({a, b});
  EXPECT_THAT(html, HasSubstr("B is as fast as A: within noise"));
  EXPECT_THAT(html, HasSubstr("30.4, 29.4 to 31.4 (within noise)"));
  EXPECT_THAT(html, HasSubstr("The difference is within noise."));
  b.run.time.us.half_width = a.run.time.us.half_width = 0.1;
  EXPECT_THAT(report_html({a, b}), Not(HasSubstr("within noise")));
}

TEST(Report, AWaterfallForEachRunThatWasTracedAsCloselyAsTheFirst) {
  ReportRun a = made("a", 300, 100'000, 200'000), steps = made("steps", 200, 0, 0), bare = made("bare", 150, 0, 0);
  const ReportRun c = made("c", 100, 100'000, 0);
  steps.run.traced = Traced::StepsOnly;
  bare.run.traced = Traced::No, bare.run.sample = {};
  std::vector<std::string> titles;
  for (const ReportFigure& f : figures({a, steps, c, bare})) {
    if (!f.name.starts_with("waterfall")) continue;
    titles.push_back(f.title);
    EXPECT_THAT(to_svg(f.drawing), HasSubstr("−200.0"));
  }
  EXPECT_THAT(titles, testing::ElementsAre("From A to C"));
  const std::string html = report_html({a, steps, c, bare});
  EXPECT_THAT(html, HasSubstr("A and B: one was traced by kernels, the other traced by steps only"));
  EXPECT_THAT(html, HasSubstr("A and D: the causes are not known"));
  EXPECT_THAT(html, HasSubstr("4 runs side by side"));
}

// A report of the window names each run with the letters that the run has there.
TEST(Report, RunsKeepTheirLetters) {
  ReportRun a = made("a", 300, 100'000, 0), b = made("b", 100, 50'000, 0);
  a.letter = 3, b.letter = 25;
  a.run.sample.work["gemm"] = {1, 2.0}, b.run.sample.work["gemm"] = {1, 1.0};
  EXPECT_THAT(headline({a, b}), testing::StartsWith("AB is "));
  const std::string html = report_html({a, b});
  for (const char* text : {"<td>D</td><td>a</td>", "<td>AB</td><td>b</td>", "From D to AB", "D, µs per step", "AB − D, µs"})
    EXPECT_THAT(html, HasSubstr(text));
  EXPECT_THAT(html, Not(HasSubstr("From A")));
  EXPECT_THAT(to_svg(figures({b})[0].drawing), Not(HasSubstr(">A<")));
  EXPECT_THAT(headline({made("a", 300, 0, 0), made("b", 100, 0, 0)}), testing::StartsWith("B is ")) << "by place";
}

// A run of two kernels per step, each of a known length, and of so many bytes handed out between them.
ReportRun drawn(const std::string& title, int64_t gemm_ns, uint64_t bytes) {
  ReportRun run = made(title, 0, 0, 0);
  prof::Trace trace;
  test::GraphRun shape;
  shape.gemm_ns = gemm_ns;
  test::add_graph_run(trace, shape, 3);
  prof::GpuSteps steps;
  steps.finish(trace);
  run.run.sample = prof::StepsOfRun(steps.trace(), trace).sample();
  const prof::TimeNs begin = run.run.sample.median_step.begin;
  trace.memory_sources = {"direct"};
  trace.append_memory({begin - 50, 0x1000, bytes / 2, 1, 0, prof::MemoryAction::Allocate, 0});
  trace.append_memory({begin + 1000, 0x900000, bytes / 2, 1, 0, prof::MemoryAction::Allocate, 0});
  trace.append_memory({begin + 5000, 0x900000, 0, 1, 0, prof::MemoryAction::Free, 0});
  run.step = step_picture(steps.trace(), trace, run.run.sample);
  run.run.time.us.value = static_cast<double>(shape.step_ns()) * 1e-3;
  return run;
}

TEST(Report, AStepOfEachRunIsDrawnOnOneScale) {
  const ReportRun a = drawn("slow", 39'000, 2 << 20), b = drawn("fast", 9'000, 1 << 20);
  EXPECT_EQ(a.step.length, 48'000);
  const auto stream = std::ranges::find(a.step.lanes, "stream 13", &StepPicture::Lane::name);
  ASSERT_NE(stream, a.step.lanes.end());
  ASSERT_EQ(stream->blocks.size(), 2u);
  EXPECT_EQ(stream->blocks[0].name, "gemm");
  EXPECT_EQ(stream->blocks[0].end - stream->blocks[0].begin, 39'000);
  ASSERT_EQ(a.step.memory.size(), 3u);
  EXPECT_EQ(a.step.memory[0].time, 0) << "what was handed out before the step counts";
  EXPECT_EQ(a.step.memory[1].bytes, 2 << 20);
  EXPECT_EQ(a.step.memory[2].bytes, 1 << 20);
  const auto all = figures({a, b});
  const auto steps = std::ranges::find(all, "steps", &ReportFigure::name);
  ASSERT_NE(steps, all.end());
  for (const char* text : {">gemm<", "median 48.0 µs", "median 18.0 µs", "peak 2.00 MiB",
                           "peak 1.00 MiB", ">slow<", "matrix product"})
    EXPECT_THAT(to_svg(steps->drawing), HasSubstr(text));
  for (const size_t count : {3U, 8U}) EXPECT_EQ(figures(std::vector<ReportRun>(count, a)).size(), 3 + 2 * count);
}

TEST(Report, WaterfallsByOpSumToTheSame) {
  const auto all = figures({drawn("slow", 39'000, 0), drawn("fast", 9'000, 0)});
  const auto ops = std::ranges::find(all, "waterfall-ops", &ReportFigure::name);
  ASSERT_NE(ops, all.end());
  for (const char* text : {">gemm<", ">−30.0<", ">48.0<", ">18.0<"}) EXPECT_THAT(to_svg(ops->drawing), HasSubstr(text));
}

TEST(Report, KernelsStandByTheirDifference) {
  ReportRun a = made("a", 300, 100'000, 0), b = made("b", 100, 50'000, 0);
  for (int i = 0; i < 30; ++i) {
    a.run.sample.work["kernel " + std::to_string(i)] = {1, 1.0};
    b.run.sample.work["kernel " + std::to_string(i)] = {2, 1.0 + (i % 2 ? -0.1 : 0.1) * i};
  }
  const auto tables = kernel_tables({a, b, b}, 10);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[1].b, "C");
  ASSERT_EQ(tables[0].rows.size(), 10u);
  EXPECT_EQ(tables[0].rows[0].name, "kernel 29");
  EXPECT_EQ(tables[0].rows[1].name, "kernel 28");
  EXPECT_EQ(tables[0].left_out, 20u);
  double all = tables[0].left_out_us, known = 0;
  for (const auto& row : tables[0].rows) all += row.delta_us();
  for (int i = 0; i < 30; ++i) known += (i % 2 ? -0.1 : 0.1) * i;
  EXPECT_NEAR(all, known, 1e-9);
  EXPECT_THAT(report_html({a, b}), HasSubstr("<td>kernel 29</td><td>1.00</td><td>2.00</td><td>1.00</td><td>−1.90</td>"
                                             "<td>−2.90</td>"));
  EXPECT_THAT(report_html({a, b}), HasSubstr("<td>10 more</td>"));
}

TEST(Report, ARunWhoseChoicesAreNotKnownDiffersInNone) {
  ReportRun a = made("a", 300, 100'000, 0), b = made("b", 100, 50'000, 0), other = made("other", 500, 50'000, 0);
  b.run.spec->exec.allocator = Allocator::Caching;
  other.run.spec.reset();
  const auto rows = choices_that_differ({a, b, other});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, "exec.allocator");
  EXPECT_THAT(rows[0].values, testing::ElementsAre("arena", "caching", "–"));
  EXPECT_TRUE(choices_that_differ({a, other}).empty());
}

TEST(Report, NoAxisOfSharesGoesBeyondAll) {
  ReportRun a = made("a", 300, 100'000, 200'000);
  a.accuracy = {{1000, 0.1, 100}, {5000, 0.5, 100}};
  for (const ReportFigure& f : figures({a}))
    if (f.name == "accuracy") {
      EXPECT_THAT(to_svg(f.drawing), HasSubstr(">98<"));
      for (const char* more : {">102<", ">105<", ">110<"}) EXPECT_THAT(to_svg(f.drawing), Not(HasSubstr(more)));
    }
}

TEST(Report, TracingCostsAreSaidOnlyWhenTheyWereMeasured) {
  ReportRun a = made("a", 300, 100'000, 200'000);
  EXPECT_THAT(report_html({a}), HasSubstr("<td>–</td></tr>"));
  a.run.tracing_cost = {0.042, 0.01};
  EXPECT_THAT(report_html({a}), HasSubstr("<td>≥ 4.2 ± 1.0 %</td></tr>"));
}

TEST(Report, AnUntracedOrEmptyRunIsShownWithWhatItHas) {
  ReportRun bare;
  bare.run.name = "bare";
  EXPECT_THAT(report_html({bare}), HasSubstr("not traced"));
}

// Sixteen steps in one launch: a mark of the host is no step.
TEST(Report, StepsOfAGraphRunComeFromTheGpu) {
  const fs::path file = fs::temp_directory_path() / ("warpsight-graphs-" + std::to_string(::getpid()) + ".wsrun");
  const test::GraphRun truth;
  {
    prof::RunSummary summary;
    summary.name = "graphs";
    RunSpec spec;
    spec.exec.launch = Launch::Graph;
    summary.spec = spec_text(spec);
    prof::RunFileWriter writer(file.string(), summary);
    prof::Trace trace;
    test::add_graph_run(trace, truth, 3);
    writer.add(trace);
    writer.finish();
  }
  const ReportRun run = report_run_of_file(file.string());
  ASSERT_GT(run.run.sample.parts.steps, 700);
  EXPECT_EQ(run.run.sample.parts.wall(), truth.step_ns() * run.run.sample.parts.steps);
  EXPECT_EQ(run.run.sample.parts.times[static_cast<size_t>(prof::Meaning::Matrix)], truth.gemm_ns * run.run.sample.parts.steps);
  EXPECT_THAT(report_html({run}), HasSubstr(">18.0 µs<"));
  fs::remove(file);
}

TEST(Report, NoHalfFile) {
  const fs::path folder = fs::temp_directory_path() / ("warpsight-report-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  prof::write_whole((folder / "a.html").string(), "whole");
  std::ifstream in(folder / "a.html");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "whole");
  EXPECT_THROW(prof::write_whole((folder / "no" / "a.html").string(), "x"), Failure);
  EXPECT_THROW(prof::write_whole("/dev/full/x", "x"), Failure);
  fs::create_directories(folder / "taken.html");
  EXPECT_THROW(prof::write_whole((folder / "taken.html").string(), "x"), Failure);
  EXPECT_FALSE(fs::exists(folder / ".part-taken.html"));
  fs::remove_all(folder);
}

TEST(Drawing, TicksAreRound) {
  EXPECT_THAT(ticks(0, 100, false, 5), testing::ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(ticks(0.02, 30, true, 5), testing::ElementsAre(0.1, 1, 10));
}

}  // namespace
}  // namespace ws::app
