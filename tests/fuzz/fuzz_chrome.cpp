// Chrome trace JSON, all the way to a trace whose sums agree.
#include "profiling/base/failure.h"
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(chrome) {
  try {
    const auto* text = reinterpret_cast<const char*>(bytes);
    ws::fuzz::check_trace(ws::prof::parse_chrome({text, count}).trace);
  } catch (const ws::Failure&) {
  }
  return 0;
}
