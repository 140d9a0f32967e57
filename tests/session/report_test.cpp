#include "app/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/report/svg.h"
#include "profiling/formats/run_file.h"
#include "tests/support/graph_run.h"

namespace ws::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

ReportRun made(const std::string& title, double us, int64_t matrix_ns, int64_t allocation_ns) {
  ReportRun run;
  run.title = title;
  run.spec.emplace_back();
  run.us_per_step = us;
  for (int i = 0; i < 5000; ++i) run.loss.push_back({static_cast<double>(i), i * 1e-4, 2.3 / (1 + i * 0.01)});
  run.accuracy = {{1000, 0.1, 90}, {5000, 0.5, 97}};
  run.parts.steps = 10;
  run.parts.times[static_cast<size_t>(prof::Meaning::Matrix)] = 10 * matrix_ns;
  run.parts.times[static_cast<size_t>(prof::Meaning::Allocation)] = 10 * allocation_ns;
  run.parts.end = 10 * (matrix_ns + allocation_ns);
  return run;
}

std::string page() {
  ReportRun a = made("direct <script>alert(1)</script>", 300, 100'000, 200'000),
            b = made("arena & graph", 100, 100'000, 0);
  b.spec[0].exec.allocator = Allocator::Caching;
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

TEST(Report, SaysWhatDiffersAndEscapesWhatPeopleWrote) {
  const std::string html = page();
  EXPECT_THAT(html, HasSubstr("exec.allocator"));
  EXPECT_THAT(html, HasSubstr("<td>arena</td><td>caching</td>"));
  EXPECT_THAT(html, Not(HasSubstr("exec.fusion")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr("33.3 % of A"));
  EXPECT_THAT(html, HasSubstr("100.0 (−66.7 %)"));
  EXPECT_THAT(html, HasSubstr("batch 64, fp32")) << "a figure says what it shows";
}

TEST(Report, FiguresAreWellFormedAndThinned) {
  const auto all = figures({made("a", 300, 100'000, 200'000), made("b", 100, 100'000, 0)});
  ASSERT_EQ(all.size(), 5u);
  for (const ReportFigure& f : all) {
    EXPECT_TRUE(f.svg.starts_with("<svg ") && f.svg.ends_with("</svg>"));
    EXPECT_EQ(std::ranges::count(f.svg, '<'), std::ranges::count(f.svg, '>'));
    EXPECT_LT(f.svg.size(), 100'000u) << f.name;
  }
  EXPECT_THAT(all[4].svg, HasSubstr("−200.0"));  // allocation: the whole difference
}

TEST(Report, AnUntracedOrEmptyRunIsShownWithWhatItHas) {
  ReportRun bare;
  bare.title = "bare";
  EXPECT_THAT(report_html({bare}), HasSubstr("not traced"));
}

// Sixteen steps in one launch: a mark of the host is no step.
TEST(Report, StepsOfAGraphRunAreThoseOfTheGpu) {
  const fs::path file = fs::temp_directory_path() / ("warpscope-graphs-" + std::to_string(::getpid()) + ".wsrun");
  const test::GraphRun truth;
  {
    prof::RunSummary summary;
    summary.name = "graphs";
    RunSpec spec;
    spec.exec.launch = Launch::Graph;
    summary.spec = to_json(spec).dump();
    prof::RunFileWriter writer(file.string(), summary);
    prof::Trace trace;
    test::add_graph_run(trace, truth, 3);
    writer.add(trace);
    writer.finish();
  }
  const ReportRun run = report_run_of_file(file.string());
  ASSERT_GT(run.parts.steps, 700);
  EXPECT_EQ(run.parts.wall(), truth.step_ns() * run.parts.steps);
  EXPECT_EQ(run.parts.times[static_cast<size_t>(prof::Meaning::Matrix)], truth.gemm_ns * run.parts.steps);
  EXPECT_THAT(report_html({run}), HasSubstr(">18.0 µs<"));
  fs::remove(file);
}

TEST(Report, NoHalfFile) {
  const fs::path folder = fs::temp_directory_path() / ("warpscope-report-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  write_whole((folder / "a.html").string(), "whole");
  std::ifstream in(folder / "a.html");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "whole");
  EXPECT_THROW(write_whole((folder / "no" / "a.html").string(), "x"), Failure);
  EXPECT_THROW(write_whole("/dev/full/x", "x"), Failure);
  fs::create_directories(folder / "taken.html");
  EXPECT_THROW(write_whole((folder / "taken.html").string(), "x"), Failure);
  EXPECT_FALSE(fs::exists(folder / "taken.html.part"));
  fs::remove_all(folder);
}

TEST(Svg, TicksAreRound) {
  EXPECT_THAT(ticks(0, 100, false, 5), testing::ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(ticks(0.02, 30, true, 5), testing::ElementsAre(0.1, 1, 10));
}

}  // namespace
}  // namespace ws::app
