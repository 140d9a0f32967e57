// Crops, mirrors and normalises pictures.
#pragma once
#include "engine/cpu/cpu_ops.h"

namespace ws::cpu {

// `pictures`: how many, and their height, width and channels.
template <class Real>
void prepare(const Preparation& how, const Window& pictures, uint64_t seed, int64_t step, Matrix<Real> x, Matrix<Real> y);

}  // namespace ws::cpu
