// The last seconds of a run, as the contents of a run file of their own.
#pragma once
#include "app/workspace/run.h"
#include "profiling/trace/time_range.h"
#include "profiling/trace/run_data.h"

namespace ws::app {

using prof::TimeRange;

struct KeptSeconds {
  prof::RunData data;
  QString file;  // where the spans are; empty: they are in `data`
  TimeRange range;
};
KeptSeconds last_seconds(const Run& run, double seconds);  // on the window's thread
prof::RunData with_spans(KeptSeconds&& kept);              // on any thread; throws Failure

}  // namespace ws::app
