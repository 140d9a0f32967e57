// The functions of cuBLASLt and NVRTC that we call. Each library is loaded at the first call. Inside ws::cuda these names hide
// the headers' names.
#pragma once
#include <cublasLt.h>
#include <nvrtc.h>

#include "profiling/base/late_call.h"

namespace ws::cuda {

[[noreturn]] void throw_not_found(const char* function);

struct LateLibraries {
  static void* find(const char* name);
  template <class Result>
  [[noreturn]] static Result missing(const char* name) {
    throw_not_found(name);
  }
};

#define WARPSIGHT_LATE(name) inline constinit LateCall<decltype(&::name), LateLibraries> name{#name};
WARPSIGHT_LATE(cublasLtCreate)
WARPSIGHT_LATE(cublasLtDestroy)
WARPSIGHT_LATE(cublasLtGetStatusName)
WARPSIGHT_LATE(cublasLtGetStatusString)
WARPSIGHT_LATE(cublasLtMatmul)
WARPSIGHT_LATE(cublasLtMatmulAlgoGetHeuristic)
WARPSIGHT_LATE(cublasLtMatmulDescCreate)
WARPSIGHT_LATE(cublasLtMatmulDescDestroy)
WARPSIGHT_LATE(cublasLtMatmulDescSetAttribute)
WARPSIGHT_LATE(cublasLtMatmulPreferenceCreate)
WARPSIGHT_LATE(cublasLtMatmulPreferenceDestroy)
WARPSIGHT_LATE(cublasLtMatmulPreferenceSetAttribute)
WARPSIGHT_LATE(cublasLtMatrixLayoutCreate)
WARPSIGHT_LATE(cublasLtMatrixLayoutDestroy)
WARPSIGHT_LATE(nvrtcCompileProgram)
WARPSIGHT_LATE(nvrtcCreateProgram)
WARPSIGHT_LATE(nvrtcDestroyProgram)
WARPSIGHT_LATE(nvrtcGetCUBIN)
WARPSIGHT_LATE(nvrtcGetCUBINSize)
WARPSIGHT_LATE(nvrtcGetErrorString)
WARPSIGHT_LATE(nvrtcGetProgramLog)
WARPSIGHT_LATE(nvrtcGetProgramLogSize)
WARPSIGHT_LATE(nvrtcVersion)
#undef WARPSIGHT_LATE

}  // namespace ws::cuda
