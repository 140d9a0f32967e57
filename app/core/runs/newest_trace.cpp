#include "app/core/runs/newest_trace.h"

#include "profiling/formats/convert.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::app {

prof::RunData newest_data(const std::string& path) {
  if (!path.ends_with(".wsrun")) return prof::import_run(path);
  prof::RunFileReader reader(path);
  prof::RunData data;
  data.summary = reader.summary();
  data.trace = reader.newest_trace();
  data.metrics = reader.metrics();
  data.evaluations = reader.evaluations();
  data.marks = reader.marks();
  data.problems = reader.problems();
  return data;
}

prof::RankReport all_ranks(const std::string& path, const prof::RunData& newest) {
  return path.ends_with(".wsrun") ? prof::StoredSpans(path).ranks() : prof::rank_report(newest);
}

}  // namespace ws::app
