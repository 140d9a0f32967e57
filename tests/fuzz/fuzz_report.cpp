// What is computed and printed of a run file.
#include "app/core/report/report.h"
#include "profiling/analysis/trace_stats.h"
#include "profiling/formats/convert.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(report) {
  const ws::fuzz::BytesAsFile file(".wsrun", bytes);
  ws::fuzz::accepts([&] {
    const ws::prof::TraceStats stats = ws::prof::run_stats(ws::prof::import_run(file.path()));
    ws::prof::to_text(stats);
    ws::prof::to_json(stats);
    ws::app::report_html({ws::app::report_run_of_file(file.path()), ws::app::report_run_of_file(file.path())});
  });
}
