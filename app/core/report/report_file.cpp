// Collects the data of a report from a run file or from another program's trace.
#include <cmath>

#include "app/core/report/report.h"
#include "app/core/runs/newest_trace.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::app {

ReportRun report_run_of_file(const std::string& path) { return report_run_of(newest_data(path), path); }

ReportRun report_run_of(const prof::RunData& data, const std::string& path) {
  ReportRun out;
  out.ranks = all_ranks(path, data);
  out.run = compared_run(data, out.ranks);
  if (out.run.name.empty()) out.run.name = path;
  out.problems = data.problems;
  out.created = data.summary.created, out.status = data.summary.status;
  for (const prof::Metric& m : data.metrics) out.loss.push_back({static_cast<double>(m.step), m.wall_s, m.loss});
  for (const prof::Evaluation& e : data.evaluations)
    if (!std::isnan(e.test_accuracy))
      out.accuracy.push_back({static_cast<double>(e.step), e.wall_s, 100 * e.test_accuracy});
  out.step = step_picture(steps_of(data, out.run).marks(), data.trace, out.run.sample);
  out.inside = path.ends_with(".wsrun") ? prof::StoredSpans(path).multiprocessors() : prof::multiprocessor_report(data.trace);
  return out;
}

}  // namespace ws::app
