// The result of a run in one line, when it ends.
#pragma once
#include "app/workspace/run.h"

namespace ws::app {

// "98.20 % in 0.09 s, step time 18.1 µs, 1.2× faster than the run before: on-read ← every-op". `before`: the run
// that ended before it, or nullptr.
QString closing_line(const Run& run, const Run* before);

}  // namespace ws::app
