// The tables of the page Own kernel: the check by shape, and the times beside built-in kernels and limits.
#pragma once
#include <vector>

#include "app/core/kernels/kernel_check_process.h"
#include "engine/plan/run_spec.h"
#include "profiling/base/table.h"

namespace ws::app {

Table check_table(const std::vector<ShapeResult>& results);
// Yours, built in, and what memory and arithmetic allow at best. `measured`: the first shape.
Table time_table(const OwnKernelVerdict& measured, Precision precision);

}  // namespace ws::app
