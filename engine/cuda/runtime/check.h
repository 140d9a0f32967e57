// One way to call CUDA: every call that can fail goes through a check that throws.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

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

// A sticky error leaves the context useless; after a reset the driver may give this process a new one (580 does not).
bool is_sticky(cudaError_t code);
bool context_is_lost();     // a sticky error was seen and no new context was given
void reset_lost_context();  // does nothing when the context is sound; every handle made before is void

}  // namespace ws::cuda

// A test can choose a call that is then not made at all and answers with an injected error.
#define CUDA_CHECK(call) ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call), #call)
#define CUBLAS_CHECK(call) \
  ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call), #call)

// For calls whose failure is an answer: a test can make them fail as well, but the code is handed back.
#define CUDA_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call))
#define CUBLAS_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call))
