// For calls whose failure is an answer: like CUDA_CHECK a test can make them fail, but the code is handed back.
#pragma once
#include "engine/cuda/check.h"

#if WARPSCOPE_FAULTS
#define CUDA_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? ::ws::cuda::faults::error() : (call))
#define CUBLAS_ATTEMPT(call) (::ws::cuda::faults::hit(#call) ? CUBLAS_STATUS_INTERNAL_ERROR : (call))
#else
#define CUDA_ATTEMPT(call) (call)
#define CUBLAS_ATTEMPT(call) (call)
#endif
