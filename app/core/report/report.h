// A comparison as figures and as one self-contained page. No Qt: the command-line program writes the same.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/comparison.h"
#include "app/core/report/drawing.h"
#include "app/core/report/step_picture.h"
#include "profiling/analysis/multiprocessors.h"
#include "profiling/analysis/ranks.h"

namespace ws::app {

// A run in a report: its figures and the data of its drawings.
struct ReportRun {
  ComparedRun run;
  int letter = -1;  // number of its letters and colour in the window; -1: from its place in the report
  std::string created, status;
  struct Point {
    double step, wall_s, value;
  };
  std::vector<Point> loss, accuracy;  // accuracy in percent
  StepPicture step;                   // a typical one of the sampled steps
  prof::RankReport ranks;             // empty for a run of one rank
  prof::MultiprocessorReport inside;  // of its kernels; empty if they do not show it
  std::vector<std::string> problems;  // parts of its file that could not be read
};

ReportRun report_run_of_file(const std::string& path);  // also reads files that can be imported; throws Failure
ReportRun report_run_of(const prof::RunData& data, const std::string& path);  // `data` was read from that file

struct ReportFigure {
  std::string name, title, caption;
  Drawing drawing;
};
std::string letter(const std::vector<ReportRun>& runs, size_t i);
std::string from_to(const std::string& a, const std::string& b);  // "From A to B"
// Figures of loss, accuracy, step split and a typical step of all runs. For each other run with the same trace detail
// as the first there are two waterfalls: by kind and by op.
std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs);
// The first sentence of the page: the speed of B relative to A, or that the two runs should not be compared.
std::string headline(const std::vector<ReportRun>& runs);
// What makes the comparison with A unfair, and what is left out because of it.
std::vector<std::string> unfair(const std::vector<ReportRun>& runs);
std::vector<ChoiceRow> choices_that_differ(const std::vector<ReportRun>& runs);
// Step time of run i relative to A: " (−66.7 %)", " (within noise)"; empty if they do different work.
std::string step_against_first(const std::vector<ReportRun>& runs, size_t i);
// The kernels with the largest differences between the first run and each other run with the same trace detail.
struct KernelTable {
  std::string a, b;                     // letters of the two runs
  std::vector<prof::KernelDelta> rows;  // largest difference first
  size_t left_out = 0;                  // number of further rows
  double left_out_us = 0;               // sum of their differences
};
std::vector<KernelTable> kernel_tables(const std::vector<ReportRun>& runs, size_t most = 20);
std::string report_html(const std::vector<ReportRun>& runs);

}  // namespace ws::app
