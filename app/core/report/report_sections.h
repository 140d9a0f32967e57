// Ranks and the inside of kernels: tables and figures for the window, and sections of a report for each run that has them.
#pragma once
#include "app/core/report/report.h"

namespace ws::app {

// Names of NCCL's kernels without algorithm and protocol: "AllReduce f32". Whole where two of one size would be alike.
std::vector<std::string> short_collective_names(const prof::RankReport& report);
// `wide`: with whole names, and with the share of the peak that each collective reaches, where it is known.
Table collectives_table(const prof::RankReport& report, bool wide);
Table ranks_table(const prof::RankReport& report, bool wide);
StepUnit unit_of(const prof::RankReport& report);  // of the times in both tables
std::string collectives_note(const prof::RankReport& report);  // how to read the columns
// A map of lateness, arrivals and bandwidth for each run of several ranks.
std::vector<ReportFigure> rank_figures(const std::vector<ReportRun>& runs);
std::string ranks_html(const std::vector<ReportRun>& runs);  // empty if no run has several ranks

Table parts_table(const prof::MultiprocessorReport& report);
std::string parts_note(const prof::MultiprocessorReport& report);  // what its numbers are
std::vector<ReportFigure> multiprocessor_figures(const std::vector<ReportRun>& runs);
std::string multiprocessors_html(const std::vector<ReportRun>& runs);  // empty if no kernel shows its inside

}  // namespace ws::app
