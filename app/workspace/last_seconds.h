// The last seconds of a run, as the content of a separate run file.
#pragma once
#include "app/workspace/run.h"
#include "profiling/trace/trace.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

using prof::TimeRange;

struct KeptSeconds {
  prof::RunData data;
  QString file;  // file with the spans; empty: they are in `data`
  TimeRange range;
};
KeptSeconds last_seconds(const Run& run, double seconds);  // on the window's thread
prof::RunData with_spans(KeptSeconds&& kept);              // on any thread; throws Failure

}  // namespace ws::app
