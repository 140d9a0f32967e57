// A comparison as figures and one self-contained page. No Qt: the command-line program writes the same.
#pragma once
#include <string>
#include <vector>

#include "app/core/comparison/comparison.h"
#include "app/core/report/drawing.h"
#include "app/core/report/step_picture.h"

namespace ws::app {

// A run of a report: its figures, and what is drawn of it.
struct ReportRun {
  ComparedRun run;
  std::string created, status;
  struct Point {
    double step, wall_s, value;
  };
  std::vector<Point> loss, accuracy;  // accuracy in percent
  StepPicture step;                   // a typical one of the sampled steps
  std::vector<std::string> problems;  // what of its file could not be read
};

ReportRun report_run_of_file(const std::string& path);  // also what can be imported; throws Failure

struct ReportFigure {
  std::string name, title, caption;
  Drawing drawing;
};
// Loss, accuracy, step split and a typical step of all runs; from the first to each other that was traced as closely
// a waterfall by kind and one by op.
std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs);
// What the first page says first: how B's speed stands to A's, or that the two are not to be laid beside each other.
std::string headline(const std::vector<ReportRun>& runs);
// What makes the comparison with A unfair, and what is left out for it.
std::vector<std::string> unfair(const std::vector<ReportRun>& runs);
std::vector<ChoiceRow> choices_that_differ(const std::vector<ReportRun>& runs);
// How run i's step time stands to A's: " (−66.7 %)", " (within noise)"; empty where they do different work.
std::string step_against_first(const std::vector<ReportRun>& runs, size_t i);
// From the first to each other that was traced as closely, which kernels take longer or shorter: the largest
// differences.
struct KernelTable {
  std::string title;                    // "From A to B"
  std::vector<prof::KernelDelta> rows;  // largest difference first
  size_t left_out = 0;                  // more of them
  double left_out_us = 0;               // whose differences sum to this
};
std::vector<KernelTable> kernel_tables(const std::vector<ReportRun>& runs, size_t most = 20);
std::string report_html(const std::vector<ReportRun>& runs);

}  // namespace ws::app
