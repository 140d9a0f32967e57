// A trace that was imported can be written in every format and is read again.
#include "profiling/formats/convert.h"
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(round_trip) {
  ws::prof::RunData run;
  if (!ws::fuzz::accepts([&] { run = ws::prof::parse_chrome(bytes); })) return;
  for (const char* ending : {".json", ".wsrun"}) {
    const ws::fuzz::BytesAsFile file(ending);
    ws::prof::export_run(run, file.path());
    ws::fuzz::check_trace(ws::prof::import_run(file.path()).trace);
  }
}
