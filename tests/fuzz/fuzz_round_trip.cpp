// A trace that was imported can be written in every format and is read again.
#include "profiling/base/failure.h"
#include "profiling/formats/trace_formats.h"
#include "profiling/formats/convert.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(round_trip) {
  const auto* text = reinterpret_cast<const char*>(bytes);
  ws::prof::RunData run;
  try {
    run = ws::prof::parse_chrome({text, count});
  } catch (const ws::Failure&) {
    return 0;
  }
  for (const char* ending : {".json", ".wsrun"}) {
    const ws::fuzz::BytesAsFile file(ending, nullptr, 0);
    ws::prof::export_run(run, file.path());
    const ws::prof::RunData again = ws::prof::import_run(file.path());
    ws::fuzz::check_trace(again.trace);
  }
  return 0;
}
