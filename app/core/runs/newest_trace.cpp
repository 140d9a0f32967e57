#include "app/core/runs/newest_trace.h"

#include <algorithm>

#include "profiling/formats/convert.h"
#include "profiling/run_file/stored_spans.h"

namespace ws::app {

prof::Trace newest_trace(prof::RunFileReader& reader) {
  constexpr size_t kMostBlocks = 1000;
  constexpr prof::TimeNs kFirstPiece = 250'000'000;
  prof::Trace trace = reader.trace();
  const prof::TimeNs first = trace.first_time(), last = trace.last_time();
  size_t space = kMostBlocks;
  for (prof::TimeNs begin = last, reach = kFirstPiece; begin > first && space > 0; reach *= 2) {
    begin = std::max(first, last - reach);
    space -= reader.fill(trace, begin, last, space);
  }
  return trace;
}

prof::RunData newest_data(const std::string& path) {
  if (!path.ends_with(".wsrun")) return prof::import_run(path);
  prof::RunFileReader reader(path);
  prof::RunData data;
  data.summary = reader.summary();
  data.trace = newest_trace(reader);
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
