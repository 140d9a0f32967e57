#include "engine/cuda/runtime/late_libraries.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>
#include <string_view>

#include "profiling/base/failure.h"

namespace ws::cuda {
namespace {

std::string library_of(std::string_view function) {
  const char* const name = function.starts_with("nvrtc") ? "libnvrtc.so." : function.starts_with("nvJitLink") ? "libnvJitLink.so." : "libcublasLt.so.";
  return name + std::to_string(CUDART_VERSION / 1000);
}

}  // namespace

// The libraries stay loaded until the process ends: kernels of cuBLASLt may still run. RTLD_NOW: no function is looked up during a timed call.
void* LateLibraries::find(const char* name) {
  void* const library = dlopen(library_of(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : nullptr;
}

void throw_not_found(const char* function) {
  throw Failure(library_of(function) + " of the CUDA toolkit was not found, and " + function +
                " is part of it: install it, or name its folder in LD_LIBRARY_PATH.");
}

}  // namespace ws::cuda
