// The functions of CUDA's runtime and of CUPTI that this folder calls. Their libraries are loaded at the first call: a
// Python program that we record from its start must be able to load its own ones first, because a process has only one
// library of each name. Inside ws::prof these names hide those of the headers.
#pragma once
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <atomic>
#include <string>
#include <type_traits>

namespace ws::prof {

std::string late_library_missing();      // empty, or a sentence that names the library
void* late_function(const char* name);  // nullptr if there is none

template <class Function>
class LateCall;

template <class Result, class... Arguments>
class LateCall<Result (*)(Arguments...)> {
 public:
  explicit constexpr LateCall(const char* name) : name_(name) {}

  Result operator()(Arguments... arguments) const {
    auto* function = function_.load(std::memory_order_acquire);
    if (!function) {
      function = reinterpret_cast<Result (*)(Arguments...)>(late_function(name_));
      function_.store(function, std::memory_order_release);
    }
    return function ? function(arguments...) : not_found();
  }

 private:
  static Result not_found() {
    if constexpr (std::is_pointer_v<Result>)
      return "not found";
    else
      return static_cast<Result>(999);  // both libraries call it an unknown error
  }

  const char* name_;
  mutable std::atomic<Result (*)(Arguments...)> function_{nullptr};
};

#define WARPSCOPE_LATE(name) inline constinit LateCall<decltype(&::name)> name{#name};
WARPSCOPE_LATE(cudaDeviceGetGraphMemAttribute)
WARPSCOPE_LATE(cudaDeviceGetMemPool)
WARPSCOPE_LATE(cudaDeviceSynchronize)
WARPSCOPE_LATE(cudaDriverGetVersion)
WARPSCOPE_LATE(cudaFreeHost)
WARPSCOPE_LATE(cudaGetDevice)
WARPSCOPE_LATE(cudaGetDeviceCount)
WARPSCOPE_LATE(cudaGetDeviceProperties)
WARPSCOPE_LATE(cudaGetDriverEntryPointByVersion)
WARPSCOPE_LATE(cudaGetErrorString)
WARPSCOPE_LATE(cudaGetLastError)
WARPSCOPE_LATE(cudaLaunchKernel)
WARPSCOPE_LATE(cudaLibraryGetKernel)
WARPSCOPE_LATE(cudaLibraryLoadData)
WARPSCOPE_LATE(cudaMallocHost)
WARPSCOPE_LATE(cudaMemGetInfo)
WARPSCOPE_LATE(cudaMemPoolGetAttribute)
WARPSCOPE_LATE(cudaMemcpyAsync)
WARPSCOPE_LATE(cudaPointerGetAttributes)
WARPSCOPE_LATE(cudaSetDevice)
WARPSCOPE_LATE(cudaStreamCreateWithFlags)
WARPSCOPE_LATE(cudaStreamDestroy)
WARPSCOPE_LATE(cudaStreamSynchronize)
WARPSCOPE_LATE(cudaThreadExchangeStreamCaptureMode)
WARPSCOPE_LATE(cuptiActivityDisable)
WARPSCOPE_LATE(cuptiActivityEnable)
WARPSCOPE_LATE(cuptiActivityFlushAll)
WARPSCOPE_LATE(cuptiActivityGetNextRecord)
WARPSCOPE_LATE(cuptiActivityGetNumDroppedRecords)
WARPSCOPE_LATE(cuptiActivityRegisterCallbacks)
WARPSCOPE_LATE(cuptiActivitySetAttribute)
WARPSCOPE_LATE(cuptiDeviceGetChipName)
WARPSCOPE_LATE(cuptiEnableCallback)
WARPSCOPE_LATE(cuptiFinalize)
WARPSCOPE_LATE(cuptiGetCallbackName)
WARPSCOPE_LATE(cuptiGetContextId)
WARPSCOPE_LATE(cuptiGetDeviceId)
WARPSCOPE_LATE(cuptiGetGraphExecId)
WARPSCOPE_LATE(cuptiGetGraphId)
WARPSCOPE_LATE(cuptiGetGraphNodeId)
WARPSCOPE_LATE(cuptiGetResultString)
WARPSCOPE_LATE(cuptiGetStreamIdEx)
WARPSCOPE_LATE(cuptiGetTimestamp)
WARPSCOPE_LATE(cuptiGetVersion)
WARPSCOPE_LATE(cuptiPmSamplingCounterDataGetSampleInfo)
WARPSCOPE_LATE(cuptiPmSamplingCounterDataImageInitialize)
WARPSCOPE_LATE(cuptiPmSamplingDecodeData)
WARPSCOPE_LATE(cuptiPmSamplingDisable)
WARPSCOPE_LATE(cuptiPmSamplingEnable)
WARPSCOPE_LATE(cuptiPmSamplingGetCounterAvailability)
WARPSCOPE_LATE(cuptiPmSamplingGetCounterDataInfo)
WARPSCOPE_LATE(cuptiPmSamplingGetCounterDataSize)
WARPSCOPE_LATE(cuptiPmSamplingSetConfig)
WARPSCOPE_LATE(cuptiPmSamplingStart)
WARPSCOPE_LATE(cuptiPmSamplingStop)
WARPSCOPE_LATE(cuptiProfilerDeInitialize)
WARPSCOPE_LATE(cuptiProfilerDeviceSupported)
WARPSCOPE_LATE(cuptiProfilerHostConfigAddMetrics)
WARPSCOPE_LATE(cuptiProfilerHostDeinitialize)
WARPSCOPE_LATE(cuptiProfilerHostEvaluateToGpuValues)
WARPSCOPE_LATE(cuptiProfilerHostGetConfigImage)
WARPSCOPE_LATE(cuptiProfilerHostGetConfigImageSize)
WARPSCOPE_LATE(cuptiProfilerHostGetNumOfPasses)
WARPSCOPE_LATE(cuptiProfilerHostInitialize)
WARPSCOPE_LATE(cuptiProfilerInitialize)
WARPSCOPE_LATE(cuptiSetThreadIdType)
WARPSCOPE_LATE(cuptiSubscribe_v2)
WARPSCOPE_LATE(cuptiUnsubscribe)
#undef WARPSCOPE_LATE

}  // namespace ws::prof
