// What is computed and printed of a run file.
#include "app/core/report/report.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/base/failure.h"
#include "profiling/formats/convert.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(report) {
  const ws::fuzz::BytesAsFile file(".wsrun", bytes, count);
  try {
    const ws::prof::RunData run = ws::prof::import_run(file.path());
    const ws::prof::TraceStats stats = ws::prof::run_stats(run);
    ws::prof::to_text(stats);
    ws::prof::to_json(stats);
    ws::app::report_html({ws::app::report_run_of_file(file.path()), ws::app::report_run_of_file(file.path())});
  } catch (const ws::Failure&) {
  }
  return 0;
}
