// Databases as Nsight Systems exports them.
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(nsys) {
  const ws::fuzz::BytesAsFile file(".sqlite", bytes);
  ws::fuzz::accepts([&] { ws::fuzz::check_trace(ws::prof::import_nsys(file.path()).trace); });
}
