// A run on a page to share.
#pragma once
#include <string>

#include "app/core/report/report.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

struct PageRun {
  std::string path;
  prof::RunData data;
  ReportRun report;
};

}  // namespace ws::app
