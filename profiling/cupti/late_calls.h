// The functions of CUDA's runtime and of CUPTI that this folder calls. Their libraries are loaded at the first call: a
// Python program that we record from its start must be able to load its own ones first, because a process has only one
// library of each name. Inside ws::prof these names hide the headers' names.
#pragma once
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <string>
#include <type_traits>

#include "profiling/base/late_call.h"

namespace ws::prof {

std::string late_library_missing();  // empty, or a sentence that names the library

struct CudaRuntimeOrCupti {
  static void* find(const char* name);
  template <class Result>
  static Result missing(const char*) {
    if constexpr (std::is_pointer_v<Result>)
      return "not found";
    else
      return static_cast<Result>(999);  // both libraries call it an unknown error
  }
};

#define WARPSIGHT_LATE(name) inline constinit LateCall<decltype(&::name), CudaRuntimeOrCupti> name{#name};
WARPSIGHT_LATE(cudaDeviceGetGraphMemAttribute)
WARPSIGHT_LATE(cudaDeviceGetMemPool)
WARPSIGHT_LATE(cudaDeviceSynchronize)
WARPSIGHT_LATE(cudaDriverGetVersion)
WARPSIGHT_LATE(cudaFreeHost)
WARPSIGHT_LATE(cudaGetDevice)
WARPSIGHT_LATE(cudaGetDeviceCount)
WARPSIGHT_LATE(cudaGetDeviceProperties)
WARPSIGHT_LATE(cudaGetDriverEntryPointByVersion)
WARPSIGHT_LATE(cudaGetErrorString)
WARPSIGHT_LATE(cudaGetLastError)
WARPSIGHT_LATE(cudaLaunchKernel)
WARPSIGHT_LATE(cudaLibraryGetKernel)
WARPSIGHT_LATE(cudaLibraryLoadData)
WARPSIGHT_LATE(cudaMallocHost)
WARPSIGHT_LATE(cudaMemGetInfo)
WARPSIGHT_LATE(cudaMemPoolGetAttribute)
WARPSIGHT_LATE(cudaMemcpyAsync)
WARPSIGHT_LATE(cudaPointerGetAttributes)
WARPSIGHT_LATE(cudaSetDevice)
WARPSIGHT_LATE(cudaStreamCreateWithFlags)
WARPSIGHT_LATE(cudaStreamDestroy)
WARPSIGHT_LATE(cudaStreamSynchronize)
WARPSIGHT_LATE(cudaThreadExchangeStreamCaptureMode)
WARPSIGHT_LATE(cuptiActivityDisable)
WARPSIGHT_LATE(cuptiActivityEnable)
WARPSIGHT_LATE(cuptiActivityFlushAll)
WARPSIGHT_LATE(cuptiActivityGetNextRecord)
WARPSIGHT_LATE(cuptiActivityGetNumDroppedRecords)
WARPSIGHT_LATE(cuptiActivityRegisterCallbacks)
WARPSIGHT_LATE(cuptiActivitySetAttribute)
WARPSIGHT_LATE(cuptiDeviceGetChipName)
WARPSIGHT_LATE(cuptiEnableCallback)
WARPSIGHT_LATE(cuptiFinalize)
WARPSIGHT_LATE(cuptiGetCallbackName)
WARPSIGHT_LATE(cuptiGetContextId)
WARPSIGHT_LATE(cuptiGetCubinCrc)
WARPSIGHT_LATE(cuptiGetDeviceId)
WARPSIGHT_LATE(cuptiGetGraphExecId)
WARPSIGHT_LATE(cuptiGetGraphId)
WARPSIGHT_LATE(cuptiGetGraphNodeId)
WARPSIGHT_LATE(cuptiGetResultString)
WARPSIGHT_LATE(cuptiGetSassToSourceCorrelation)
WARPSIGHT_LATE(cuptiGetStreamIdEx)
WARPSIGHT_LATE(cuptiGetTimestamp)
WARPSIGHT_LATE(cuptiGetVersion)
WARPSIGHT_LATE(cuptiPCSamplingDisable)
WARPSIGHT_LATE(cuptiPCSamplingEnable)
WARPSIGHT_LATE(cuptiPCSamplingGetData)
WARPSIGHT_LATE(cuptiPCSamplingGetNumStallReasons)
WARPSIGHT_LATE(cuptiPCSamplingGetStallReasons)
WARPSIGHT_LATE(cuptiPCSamplingSetConfigurationAttribute)
WARPSIGHT_LATE(cuptiPCSamplingStart)
WARPSIGHT_LATE(cuptiPCSamplingStop)
WARPSIGHT_LATE(cuptiPmSamplingCounterDataGetSampleInfo)
WARPSIGHT_LATE(cuptiPmSamplingCounterDataImageInitialize)
WARPSIGHT_LATE(cuptiPmSamplingDecodeData)
WARPSIGHT_LATE(cuptiPmSamplingDisable)
WARPSIGHT_LATE(cuptiPmSamplingEnable)
WARPSIGHT_LATE(cuptiPmSamplingGetCounterAvailability)
WARPSIGHT_LATE(cuptiPmSamplingGetCounterDataInfo)
WARPSIGHT_LATE(cuptiPmSamplingGetCounterDataSize)
WARPSIGHT_LATE(cuptiPmSamplingSetConfig)
WARPSIGHT_LATE(cuptiPmSamplingStart)
WARPSIGHT_LATE(cuptiPmSamplingStop)
WARPSIGHT_LATE(cuptiProfilerDeInitialize)
WARPSIGHT_LATE(cuptiProfilerDeviceSupported)
WARPSIGHT_LATE(cuptiProfilerHostConfigAddMetrics)
WARPSIGHT_LATE(cuptiProfilerHostDeinitialize)
WARPSIGHT_LATE(cuptiProfilerHostEvaluateToGpuValues)
WARPSIGHT_LATE(cuptiProfilerHostGetConfigImage)
WARPSIGHT_LATE(cuptiProfilerHostGetConfigImageSize)
WARPSIGHT_LATE(cuptiProfilerHostGetNumOfPasses)
WARPSIGHT_LATE(cuptiProfilerHostInitialize)
WARPSIGHT_LATE(cuptiProfilerInitialize)
WARPSIGHT_LATE(cuptiSetThreadIdType)
WARPSIGHT_LATE(cuptiSubscribe_v2)
WARPSIGHT_LATE(cuptiUnsubscribe)
#undef WARPSIGHT_LATE

}  // namespace ws::prof
