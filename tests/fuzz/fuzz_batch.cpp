// Batches of the live link: what a recorded program sends to the window.
#include "profiling/trace/batch_codec.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(batch) {
  ws::prof::Trace trace;
  ws::fuzz::accepts([&] { append(trace, ws::prof::decode_batch(bytes)); });
}
