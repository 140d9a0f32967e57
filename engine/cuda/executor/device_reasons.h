// Why a GPU cannot be used, as a sentence from what the driver answered.
#pragma once
#include <driver_types.h>

#include <functional>
#include <string>

namespace ws::cuda {

std::string version_text(int version);  // 13010 → "13.1"

// `code` and `devices` are the answer to how many GPUs there are, `driver` the CUDA version that the driver speaks,
// 0 without one; `needs` is that of this program's runtime.
std::string why_no_device(cudaError_t code, int devices, int driver, int needs);

struct GpuKind {
  std::string name;
  int major = 0, minor = 0;
};
// Empty when it can be used. Only where the list of what was compiled (`made_for`) leaves it open is the driver asked
// whether it can load a kernel: the answer takes a context, which every start would pay for.
std::string why_no_code(const GpuKind& gpu, bool made_for, const std::function<cudaError_t()>& ask);

}  // namespace ws::cuda
