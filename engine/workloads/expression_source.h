// An expression as CUDA source. Where the argument of a sine or cosine is known to be small, a short polynomial takes
// the place of the library's function, which has to reduce arguments of any size first.
#pragma once
#include "engine/workloads/expression.h"

namespace ws::lab {

// What a value can be, whatever x and y are.
struct Interval {
  double low, high;
};

// sin and cos for |x| <= 1, as the compiled kernels compute them: within two units in the last place.
float short_sine(float x);
float short_cosine(float x);

std::vector<Interval> ranges(const Expression& expression);     // of each step's value
std::vector<bool> short_steps(const Expression& expression);  // sines and cosines of arguments known to be small
// One kernel: everything in registers.
std::string cuda_source(const Expression& expression, std::string_view kernel_name);
std::string identity(const Expression& expression);  // equal for equal meaning; cache key

}  // namespace ws::lab
