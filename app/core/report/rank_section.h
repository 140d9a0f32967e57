// The ranks of each run in a report: a sentence, figures and tables.
#pragma once
#include "app/core/report/report.h"

namespace ws::app {

// A map of lateness, arrivals and bandwidth for each run of several ranks.
std::vector<ReportFigure> rank_figures(const std::vector<ReportRun>& runs);
std::string ranks_html(const std::vector<ReportRun>& runs);  // empty if no run has several ranks

}  // namespace ws::app
