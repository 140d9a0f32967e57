// Writes a report as HTML or PDF, by file name extension.
#pragma once
#include <QString>
#include <vector>

#include "app/core/report/report.h"

namespace ws::app {

class Run;
ReportRun report_run(const Run& run);
void write_report(const std::vector<const Run*>& runs, const QString& path);  // throws Failure
void save_report(const std::vector<ReportRun>& runs, const QString& path);

}  // namespace ws::app
