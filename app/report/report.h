// A comparison as figures and one self-contained page. No Qt: the command-line program writes the same.
#pragma once
#include <string>
#include <vector>

#include "engine/run_spec.h"
#include "profiling/analysis/compare.h"

namespace ws::app {

struct ReportRun {
  std::string title, device, created, status;
  std::vector<RunSpec> spec;  // one, or none for an imported run
  struct Point {
    double step, wall_s, value;
  };
  std::vector<Point> loss, accuracy;  // accuracy in percent
  prof::Breakdown parts;              // of the sampled steps; steps 0: not traced
  double us_per_step = 0, samples_per_s = 0, wall_s = 0, peak_bytes = 0, allocator_calls_per_step = 0,
         overhead_share = 0;
  int64_t steps = 0;
};

ReportRun report_run_of_file(const std::string& path);  // throws Failure

struct ReportFigure {
  std::string name, title, caption, svg;  // svg: a whole element, usable as a file
};
// Loss, accuracy, step split of all runs; the waterfall from the first to the second.
std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs);
// Rows of a choice and its value in each run.
std::vector<std::vector<std::string>> choices_that_differ(const std::vector<ReportRun>& runs);
std::string report_html(const std::vector<ReportRun>& runs);

// Under a temporary name first: a full disk leaves no half file. Throws Failure.
void write_whole(const std::string& path, const std::string& text);

}  // namespace ws::app
