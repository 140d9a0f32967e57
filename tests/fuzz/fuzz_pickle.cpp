// PyTorch's memory snapshots, which are pickles: programs, none of which is run.
#include "profiling/formats/trace_formats.h"
#include "tests/fuzz/fuzz_trace.h"

FUZZ_TARGET(pickle) {
  ws::fuzz::accepts([&] {
    const ws::prof::RunData run = ws::prof::parse_memory_snapshot(bytes, "snapshot.pickle");
    ws::fuzz::check_trace(run.trace);
    int64_t last = std::numeric_limits<int64_t>::min();
    for (const ws::prof::MemoryEvent& event : run.trace.memory()) {
      ws::fuzz::require(event.time >= last, "events are in order");
      ws::fuzz::require(event.op < run.trace.ops.size(), "ops are known");
      ws::fuzz::require(event.source < run.trace.memory_sources.size(), "allocators are known");
      last = event.time;
    }
  });
}
