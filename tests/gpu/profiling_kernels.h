// Small kernels for tests of the collector.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace ws::prof::testing {

void launch_empty(cudaStream_t stream);
void launch_other(cudaStream_t stream);                       // a second kernel with another name and shape
void launch_spin(cudaStream_t stream, uint64_t nanoseconds);  // by the device's own timer
void launch_fill(cudaStream_t stream, float* out, int n);

struct Stamp {
  uint64_t globaltimer;
  uint32_t step;
  uint16_t op;
  uint16_t block;
};
// A cooperative kernel of `blocks` blocks: `steps` times `ops` phases with a grid barrier after each; block b writes
// stamps[b·(steps·ops + 1) ...]: one at the beginning of each phase and a last one with op 0.
void launch_resident(cudaStream_t stream, int blocks, int steps, int ops, uint16_t first_op, uint32_t first_step,
                     Stamp* stamps);

}  // namespace ws::prof::testing
