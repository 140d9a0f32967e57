// Results against float64 on the CPU. What rounding explains is allowed, by operation and precision; more is wrong.
#pragma once
#include "engine/workloads/workload.h"

namespace ws::lab {

// How far an output may be from float64 in this way:
//   float32       matrix product  (16 + 8·√k) half-units of the last place, of the size of what is added up
//                 sum             (128 + √n / 8)
//                 softmax         128 of the value          add  4 of the value          copy  none
//                 sine, expression  four times what each operation's rounding grows to on the way
//   tf32, fp16    4e-3 of that size on top: inputs are rounded to 11 bits; fp16 also its smallest number
double tolerance(const LabSpec& spec, Way way, const Sample& sample);

// Sets the point's error: the largest, relative to the largest sample; outputs that rounding can make anything of take
// no part. One result that is too far off makes it a point that is not ok, and its note says why.
void check_point(const LabSpec& spec, Workload& work, const std::vector<Sample>& expected, LabPoint& point);
inline constexpr std::string_view kWrong = "The result is wrong:";  // how such a note begins

}  // namespace ws::lab
