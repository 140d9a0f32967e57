// Databases as Nsight Systems exports them.
#include "profiling/base/failure.h"
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(nsys) {
  const ws::fuzz::BytesAsFile file(".sqlite", bytes, count);
  try {
    ws::fuzz::check_trace(ws::prof::import_nsys(file.path()).trace);
  } catch (const ws::Failure&) {
  }
  return 0;
}
