// The inside of the kernels of each run in a report: a sentence, the figure of a typical step and a table.
#pragma once
#include "app/core/report/report.h"

namespace ws::app {

Table parts_table(const prof::MultiprocessorReport& report);
extern const char* const kPartsNote;  // what its numbers are

std::vector<ReportFigure> multiprocessor_figures(const std::vector<ReportRun>& runs);
std::string multiprocessors_html(const std::vector<ReportRun>& runs);  // empty if no kernel shows its inside

}  // namespace ws::app
