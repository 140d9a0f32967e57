// The functions of cuBLASLt, NVRTC and nvJitLink that we call. Each library is loaded at the first call. Inside ws::cuda these names hide
// the headers' names.
#pragma once
#include <cublasLt.h>
#include <nvrtc.h>

#include <cstdint>

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
WARPSIGHT_LATE(nvrtcGetPTX)
WARPSIGHT_LATE(nvrtcGetPTXSize)
WARPSIGHT_LATE(nvrtcGetProgramLog)
WARPSIGHT_LATE(nvrtcGetProgramLogSize)
WARPSIGHT_LATE(nvrtcVersion)
#undef WARPSIGHT_LATE

// Its header is missing in some installations that have the library.
using JitLink = void*;
#define WARPSIGHT_LATE(name, ...) inline constinit LateCall<int (*)(__VA_ARGS__), LateLibraries> name{#name};
WARPSIGHT_LATE(nvJitLinkCreate, JitLink*, uint32_t, const char**)
WARPSIGHT_LATE(nvJitLinkDestroy, JitLink*)
WARPSIGHT_LATE(nvJitLinkAddData, JitLink, int, const void*, size_t, const char*)
WARPSIGHT_LATE(nvJitLinkComplete, JitLink)
WARPSIGHT_LATE(nvJitLinkGetLinkedCubinSize, JitLink, size_t*)
WARPSIGHT_LATE(nvJitLinkGetLinkedCubin, JitLink, void*)
WARPSIGHT_LATE(nvJitLinkGetErrorLogSize, JitLink, size_t*)
WARPSIGHT_LATE(nvJitLinkGetErrorLog, JitLink, char*)
#undef WARPSIGHT_LATE

}  // namespace ws::cuda
