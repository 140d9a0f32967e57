// Compares results with float64 on the CPU. An error that rounding explains for the operation and precision is allowed.
#pragma once
#include "engine/lab/lab.h"
#include "engine/workloads/workload.h"

namespace ws::lab {

// Returns how far an output may be from float64 in this way. A unit here is half a unit in the last place of float32:
//   matrix product    (16 + 8·√k) units of the size of the terms that are added up
//   sum               (128 + √n / 8) units of that size
//   softmax           128 units of the value
//   add               4 units of the value
//   copy              none
//   sine              four times the propagated rounding of each level
//   tf32, fp16        4e-3 of that size in addition, because inputs are rounded to 11 bits;
//                     fp16 also adds its smallest number
//   a person's kernel at least 2e-5 of the largest result, 1e-4 for a product, about as its check
// `scale`: the size of the largest result.
double tolerance(const LabSpec& spec, Way way, const Sample& sample, double scale = 0);

// Sets the point's error: the largest error, relative to the largest sample. If one result is too far off, the point is
// not ok and its note says why.
void check_point(const LabSpec& spec, Workload& work, const std::vector<Sample>& expected, LabPoint& point);
inline constexpr std::string_view kWrong = "The result is wrong:";  // every such note begins with this

}  // namespace ws::lab
