// Run files: what is damaged is left out, what comes back is consistent.
#include "profiling/failure.h"
#include "profiling/formats/convert.h"
#include "tests/fuzz/fuzz_trace.h"

int fuzz_one(const uint8_t* bytes, size_t count) {
  const ws::fuzz::BytesAsFile file(".wsrun", bytes, count);
  try {
    ws::fuzz::check_trace(ws::prof::import_run(file.path()).trace);
  } catch (const ws::Failure&) {
  }
  return 0;
}
