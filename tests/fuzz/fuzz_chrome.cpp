// Chrome trace JSON, all the way to a trace whose sums agree.
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(chrome) {
  ws::fuzz::accepts([&] { ws::fuzz::check_trace(ws::prof::parse_chrome(bytes).trace); });
}
