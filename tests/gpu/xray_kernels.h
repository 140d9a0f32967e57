// Kernels that wait for one thing each, at one line that is known.
#pragma once
#include <cuda_runtime_api.h>

#include <span>

namespace ws::xray {

struct Planted {
  const char* kernel;   // its name
  const char* waits;    // names of the reasons that are right, separated by '|', see stall_name()
  int line;             // of xray_kernels.cu
  void (*launch)(cudaStream_t stream, int rounds);
};
std::span<const Planted> planted();
void prepare();                              // allocates; throws nothing, later launches fail
void launch_small(cudaStream_t stream);      // a kernel of a launch-bound step

}  // namespace ws::xray
