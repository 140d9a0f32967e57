// Perfetto traces: messages of protobuf inside of each other.
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(perfetto) {
  ws::fuzz::accepts([&] { ws::fuzz::check_trace(ws::prof::parse_perfetto(bytes, "trace.pftrace").trace); });
}
