// One way to call CUDA: every call that can fail goes through a check that throws.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include "engine/cuda/faults.h"
#include "profiling/failure.h"

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

// With fault injection in the build, the chosen call is not made at all and answers with the injected error.
#if WARPSCOPE_FAULTS
#define CUDA_CHECK(call) ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call), #call)
#define CUBLAS_CHECK(call) \
  ::ws::cuda::check(::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call), #call)
#else
#define CUDA_CHECK(call) ::ws::cuda::check((call), #call)
#define CUBLAS_CHECK(call) ::ws::cuda::check((call), #call)
#endif
