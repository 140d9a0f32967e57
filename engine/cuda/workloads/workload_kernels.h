// Launchers of the laboratory's own kernels.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/workloads/expression.h"

namespace ws::cuda::lab {

// An array, or one number for all elements if `array` is null.
struct Operand {
  const float* array = nullptr;
  float number = 0;
};
// One operation of an expression over n elements; Fn::X copies. Functions of one operand ignore b.
void elementwise(cudaStream_t stream, ws::lab::Fn fn, Operand a, Operand b, float* out, int64_t n);
// `partials` holds kReducePartials floats. The order of additions is the same every time.
constexpr int kReducePartials = 1024;
void reduce(cudaStream_t stream, const float* a, float* partials, float* out, int64_t n);
void softmax_rows(cudaStream_t stream, const float* a, float* out, int64_t n);  // rows of 1024
void copy_array(cudaStream_t stream, const float* a, float* out, int64_t n);
// Reads and writes the block `repeats` times and bypasses the L1 cache. n is a multiple of four.
void rewrite_block(cudaStream_t stream, float* block, int64_t n, int repeats);
// Runs `repeats` dependent sines per element with almost no memory traffic, to measure arithmetic alone. `small`: uses
// the polynomial for small arguments.
void sine_ceiling(cudaStream_t stream, float* out, int64_t n, int repeats, bool small);

}  // namespace ws::cuda::lab
