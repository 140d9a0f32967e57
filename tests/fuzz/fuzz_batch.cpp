// Batches of the live link: what a recorded program sends to the window.
#include "profiling/base/failure.h"
#include "profiling/trace/batch_codec.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(batch) {
  try {
    ws::prof::Trace trace;
    append(trace, ws::prof::decode_batch({reinterpret_cast<const char*>(bytes), count}));
  } catch (const ws::Failure&) {
  }
  return 0;
}
