// Launchers of the laboratory's own kernels.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/lab/expression.h"

namespace ws::cuda::lab {

// One operation of an expression over n elements; b may be null for one-operand functions.
void elementwise(cudaStream_t stream, ws::lab::Fn fn, const float* a, const float* b, float* out, int64_t n);
void fill(cudaStream_t stream, float value, float* out, int64_t n);
// partials holds kReducePartials floats; the same order of sums every time.
constexpr int kReducePartials = 1024;
void reduce(cudaStream_t stream, const float* a, float* partials, float* out, int64_t n);
void softmax_rows(cudaStream_t stream, const float* a, float* out, int64_t n);  // rows of 1 024
void copy_array(cudaStream_t stream, const float* a, float* out, int64_t n);
// `repeats` dependent sines an element, no memory traffic to speak of: what the arithmetic alone can do. `small`: the
// polynomial for small arguments.
void sine_ceiling(cudaStream_t stream, float* out, int64_t n, int repeats, bool small);

}  // namespace ws::cuda::lab
