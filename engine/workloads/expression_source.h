// Writes an expression as CUDA source. A sine or cosine with a small argument becomes a short polynomial, because the
// library function must first reduce an argument of any size.
#pragma once
#include "engine/workloads/expression.h"

namespace ws::lab {

// The range of a value over all x and y.
struct Interval {
  double low, high;
};

// sin and cos for |x| <= 1 as the compiled kernels compute them, with an error of at most two units in the last place.
float short_sine(float x);
float short_cosine(float x);

std::vector<Interval> ranges(const Expression& expression);     // one per step
std::vector<bool> short_steps(const Expression& expression);  // true for sines and cosines whose argument is small
// Returns the source of one kernel that keeps every intermediate in registers.
std::string cuda_source(const Expression& expression, std::string_view kernel_name);
std::string identity(const Expression& expression);  // equal if the meaning is equal; a cache key

}  // namespace ws::lab
