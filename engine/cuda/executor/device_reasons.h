// Explains in one sentence why a GPU cannot be used, from the driver's answers.
#pragma once
#include <driver_types.h>

#include <functional>
#include <string>

namespace ws::cuda {

std::string version_text(int version);  // 13010 → "13.1"

// `code` and `devices` are the driver's answer to a query for the number of GPUs. `driver` is the CUDA version that the
// driver supports, or 0 without a driver. `needs` is the CUDA version of our runtime.
std::string why_no_device(cudaError_t code, int devices, int driver, int needs);

struct GpuKind {
  std::string name;
  int major = 0, minor = 0;
};
// Returns an empty string if the GPU can be used. Calls `ask`, which lets the driver load a kernel, only if `made_for`
// is false. The call creates a context, which would slow down every start.
std::string why_no_code(const GpuKind& gpu, bool made_for, const std::function<cudaError_t()>& ask);

}  // namespace ws::cuda
