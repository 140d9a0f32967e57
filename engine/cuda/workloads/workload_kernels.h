// Launchers of the laboratory's own kernels.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace ws::cuda::lab {

void add(cudaStream_t stream, const float* a, const float* b, float* out, int64_t n);
void sine(cudaStream_t stream, const float* a, float* out, int64_t n);
void copy_array(cudaStream_t stream, const float* a, float* out, int64_t n);
// `depth` sines of each element, which stays in a register in between. From the second level on, the argument is at most 1.
void nested_sine(cudaStream_t stream, const float* a, float* out, int64_t n, int depth);
// `partials` holds kReducePartials floats. The order of additions is the same every time.
constexpr int kReducePartials = 1024;
void reduce(cudaStream_t stream, const float* a, float* partials, float* out, int64_t n);
void softmax_rows(cudaStream_t stream, const float* a, float* out, int64_t n);  // rows of 1024
// Reads and writes the block `repeats` times and bypasses the L1 cache. n is a multiple of four.
void rewrite_block(cudaStream_t stream, float* block, int64_t n, int repeats);
// Runs `repeats` dependent sines per element with almost no memory traffic, to measure arithmetic alone. `small`: uses
// the polynomial for small arguments.
void sine_ceiling(cudaStream_t stream, float* out, int64_t n, int repeats, bool small);

}  // namespace ws::cuda::lab
