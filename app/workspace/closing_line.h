// The result of a run in one line, when it ends, and its speed beside another run.
#pragma once
#include "app/workspace/run.h"

namespace ws::app {

// True if the choices of a new run make sense beside the choices of `baseline`: both train on the same data.
bool comparable(const Run& baseline, const Run& run);
// "98.20 % in 0.09 s, step time 18.1 µs, 17.8 % faster than A: every-op → on-read". `baseline`: nullptr
// if there is none. `pinned`: the pinned baseline, which judges the run beside another baseline; nullptr if there is none.
QString closing_line(const Run& run, const Run* baseline, const Run* pinned = nullptr);
// How a step of the run compares with the pinned baseline, in the words of the gate:
// "pinned baseline A: slower by 2.30 % (+1.90 % to +2.70 %)". Empty if both do other work.
QString judged_by(const Run& run, const Run& pinned);
// "17.8 % faster than B", "as fast as B, within noise"; empty if a step time is unknown or a step of both does other work.
QString speed_against(const Run& run, const Run& baseline, const QString& name);

}  // namespace ws::app
