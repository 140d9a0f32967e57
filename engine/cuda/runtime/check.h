// Checks CUDA calls: every call that can fail goes through a check that throws.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "engine/cuda/runtime/faults.h"
#include "profiling/base/failure.h"

namespace ws::cuda {

[[noreturn]] void throw_failure(cudaError_t code, const char* call);
[[noreturn]] void throw_failure(cublasStatus_t code, const char* call);

inline void check(cudaError_t code, const char* call) {
  if (code != cudaSuccess) [[unlikely]]
    throw_failure(code, call);
}
inline void check(cublasStatus_t code, const char* call) {
  if (code != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    throw_failure(code, call);
}

// A sticky error makes the context unusable. After a reset the driver may give this process a new one (580 does not).
bool is_sticky(cudaError_t code);
bool context_is_lost();     // true after a sticky error until there is a new context
void reset_lost_context();  // does nothing if the context works; invalidates every handle made before

}  // namespace ws::cuda

// A test can select a call. The call is then not made and returns an injected error instead.
#define CUDA_CHECK(call) ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call), #call)
#define CUBLAS_CHECK(call) \
  ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call), #call)

// For calls whose failure is a valid result: returns the error code instead of throwing. Tests can make these calls
// fail too.
#define CUDA_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call))
#define CUBLAS_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call))
