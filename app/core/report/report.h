// A comparison as figures and one self-contained page. No Qt: the command-line program writes the same.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "app/core/comparison/mismatches.h"
#include "app/core/report/step_picture.h"
#include "engine/plan/run_spec.h"
#include "profiling/analysis/waterfall.h"

namespace ws::app {

struct ReportRun {
  std::string title, device, created, status;
  std::vector<RunSpec> spec;  // one, or none for an imported run
  struct Point {
    double step, wall_s, value;
  };
  std::vector<Point> loss, accuracy;  // accuracy in percent
  prof::StepSample sample;            // its newest whole steps; none: not traced
  StepPicture step;                   // a typical one of them
  double half_width_us = 0;           // of a step's time, 95 %, from the run's own spread; 0: not known
  Traced traced = Traced::No;
  bool imported = false;
  std::string losses;                         // records that were dropped, damaged or not matched; empty: none
  double us_per_step = 0, samples_per_s = 0;  // of the sampled steps, as runs are compared: see compared_step.h
  double whole_us_per_step = 0;               // the mean of the whole run
  double wall_s = 0, peak_bytes = 0, allocator_calls_per_step = 0;
  double overhead_share = std::numeric_limits<double>::quiet_NaN(), overhead_spread = 0;  // NaN: not measured
  int64_t steps = 0;
};

ReportRun report_run_of_file(const std::string& path);  // also what can be imported; throws Failure

// Its two times of a step and its throughput, from its sample. `rows`: of a step; 0: not known.
void take_speed(ReportRun& run, double whole_us_per_step, double rows);

struct ReportFigure {
  std::string name, title, caption, svg;  // svg: a whole element, usable as a file
};
// Loss, accuracy, step split and a typical step of all runs; from the first to each other that was traced as closely
// a waterfall by kind and one by op.
std::vector<ReportFigure> figures(const std::vector<ReportRun>& runs);
// Rows of a choice and its value in each run.
std::vector<std::vector<std::string>> choices_that_differ(const std::vector<ReportRun>& runs);
// What the first page says first: how B's step stands to A's, or that the two are not to be laid beside each other.
std::string headline(const std::vector<ReportRun>& runs);
// What makes the comparison with A unfair, and what is left out for it.
std::vector<std::string> unfair(const std::vector<ReportRun>& runs);
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

std::string lost_records(const prof::Losses& losses);  // "3 dropped, 2 damaged"; empty: none

}  // namespace ws::app
