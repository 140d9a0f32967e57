// Perfetto traces: messages of protobuf inside of each other.
#include "profiling/base/failure.h"
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(perfetto) {
  try {
    ws::fuzz::check_trace(
        ws::prof::parse_perfetto({reinterpret_cast<const char*>(bytes), count}, "trace.pftrace").trace);
  } catch (const ws::Failure&) {
  }
  return 0;
}
