// Run files: what is damaged is left out, what comes back is consistent.
#include "profiling/run_file/run_file.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(run_file) {
  const ws::fuzz::BytesAsFile file(".wsrun", bytes);
  ws::fuzz::accepts([&] {
    ws::prof::RunFileReader reader(file.path());
    ws::prof::Trace trace = reader.trace();
    reader.fill(trace);
    ws::fuzz::check_trace(trace);
    reader.metrics();
    reader.evaluations();
    reader.marks();
    reader.step_windows();
    reader.allocations();
  });
}
